// Package status is the command kubectl proffer status: what needs somebody.
package status

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/cmd/kubectl-proffer/check"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/complete"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/exit"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// NewCommand returns the command.
func NewCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what needs you, the worst first",
		Long: `Show what needs you, the worst first: no leader, a silent watch, policies that are not Ready, pools
with nothing left, ResourceSlices that are denied, wait or are capped, pods that request more than
was granted, and books that are behind. Each has the command to type next. The first page of
kubectl proffer dashboard shows the same.

STATUS is wrong for what does not work, and warning for what works, but perhaps not as you expect.
AGE is the time for which it has been so; for a ResourceSlice that waits, the time since it was
made; for one that is capped, the time since it was accepted.

Exit status: 0 if nothing needs you, 1 for warnings, 2 if something is wrong, 3 for an error.

It needs Role ` + operatorclient.Reader.Role + ` in the namespace of the operator.`,
		Example: `  # What needs you
  kubectl proffer status

  # The same for a script
  kubectl proffer status -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), flags, streams, format)
		},
	}
	exit.IsAnswer(cmd)
	complete.FormatFlag(cmd, &format, output.JSON, output.YAML)
	return cmd
}

func run(
	ctx context.Context, flags *operatorclient.Flags, streams genericiooptions.IOStreams, format string,
) error {
	done := output.Slow(streams.ErrOut, "Waiting for the operator")
	all, err := flags.Client(operatorclient.Reader).Overview(ctx)
	done()
	if err != nil {
		return err
	}
	p := output.For(streams.Out)
	if err := p.Answer(format, all, lines(all, p.Width, p.Color)...); err != nil {
		return err
	}
	return exit.With(check.Status(all.Status).ExitStatus())
}
