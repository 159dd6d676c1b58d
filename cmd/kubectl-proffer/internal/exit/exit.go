// Package exit has the exit statuses of the commands. A command whose status is an answer (simulate,
// check and catalog) ends with 0, 1 or 2 for the answer and with Failed for an error. Any other
// command ends with 0, or with 1 for an error.
package exit

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

// StatusError only sets the exit status of the process: nothing is printed.
type StatusError int

func (s StatusError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ExitStatus returns the status.
func (s StatusError) ExitStatus() int { return int(s) }

// withStatus is an error with a status of its own, of any package.
type withStatus interface {
	error
	ExitStatus() int
}

const (
	// Failed is the exit status of an error of a command whose status is an answer.
	Failed = 3
	// usualError is the exit status of an error of any other command, as of kubectl.
	usualError = 1
)

// annotation holds the exit status of a command's errors.
const annotation = "proffer.dev/exit-status-of-errors"

// ErrorsAre sets the exit status of all errors of a command, including errors of its flags and
// arguments.
func ErrorsAre(cmd *cobra.Command, status int) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[annotation] = strconv.Itoa(status)
}

// Of returns the exit status of a command that ended with err, and whether the error has to be
// printed.
func Of(cmd *cobra.Command, err error) (status int, printed bool) {
	if err == nil {
		return 0, false
	}
	if own, ok := errors.AsType[withStatus](err); ok {
		return own.ExitStatus(), false
	}
	if cmd != nil {
		if status, err := strconv.Atoi(cmd.Annotations[annotation]); err == nil {
			return status, true
		}
	}
	return usualError, true
}
