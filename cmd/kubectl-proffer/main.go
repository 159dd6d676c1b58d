// Command kubectl-proffer is a plugin of kubectl: what does each consumer get, why, and what if.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/exit"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// version is set by the linker.
var version string

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(run(context.Background(), os.Args[1:], streams))
}

// run runs the command with these arguments and returns the exit status of the process.
func run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	root := newRootCommand(streams)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	status, printed := exit.Of(cmd, err)
	if printed {
		fmt.Fprintln(streams.ErrOut, "error:", output.Clean(suggested(err.Error())))
	}
	return status
}

// suggested writes the names that cobra suggests, which it lists on lines of their own, in the line of the
// error.
func suggested(message string) string {
	message, names, found := strings.Cut(message, "\n\nDid you mean this?\n")
	if found {
		message += ": did you mean " + strings.Join(strings.Fields(names), " or ") + "?"
	}
	return message
}
