// Package version is the command kubectl proffer version: the versions of the plugin and of the
// operator.
package version

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// timeout bounds the wait for the operator.
const timeout = 10 * time.Second

// NewCommand returns the command of a plugin of this version.
func NewCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams, plugin string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the plugin and of the operator",
		Long: `Print the versions of the plugin and of the operator.

An operator that cannot be reached is not an error: the second line has the reason then.

It needs Role ` + operatorclient.Reader.Role + ` in the namespace of the operator.`,
		Example: `  # Both versions
  kubectl proffer version`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			done := output.Slow(streams.ErrOut, "Waiting for the operator")
			operator, err := flags.Client(operatorclient.Reader).Version(ctx)
			done()
			if err != nil {
				operator = "unknown: " + err.Error()
			}
			return output.For(streams.Out).Lines("Plugin:    "+plugin, "Operator:  "+operator)
		},
	}
}
