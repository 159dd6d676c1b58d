// Package exit has the exit statuses of the commands. A command whose status is an answer (status,
// simulate, check and catalog) ends with 0, 1 or 2 for the answer and with Failed for an error. Any
// other command ends with 0, or with 1 for an error, and with Failed if --known refuses a consumer.
package exit

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// StatusError only sets the exit status of the process: nothing is printed.
type StatusError int

func (s StatusError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// With returns an error that ends the process with this status, nil for 0.
func With(status int) error {
	if status == 0 {
		return nil
	}
	return StatusError(status)
}

const (
	// Failed is the exit status of an error of a command whose status is an answer.
	Failed = 3
	// usualError is the exit status of an error of any other command, as of kubectl.
	usualError = 1
)

// answers annotates a command whose status is an answer.
const answers = "proffer.dev/exit-status-is-an-answer"

// IsAnswer marks a command whose status is an answer: all its errors end it with Failed, including
// errors of its flags and arguments.
func IsAnswer(cmd *cobra.Command) { cmd.Annotations = map[string]string{answers: "true"} }

// Of returns the exit status of a command that ended with err, and whether the error has to be
// printed.
func Of(cmd *cobra.Command, err error) (status int, printed bool) {
	if err == nil {
		return 0, false
	}
	if own, ok := errors.AsType[StatusError](err); ok {
		return int(own), false
	}
	if cmd != nil && cmd.Annotations[answers] != "" {
		return Failed, true
	}
	return usualError, true
}
