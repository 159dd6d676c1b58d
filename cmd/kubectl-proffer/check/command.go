package check

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/complete"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/exit"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

const (
	// requestTimeout bounds each request to the API server.
	requestTimeout = 10 * time.Second
	// timeout bounds the whole command.
	timeout = time.Minute
)

const long = `Check an installation of Proffer, and say what to do about each thing that is not right.

It checks the CRDs, the rights of the operator, its replicas, its leader and the age of its news,
whether the control plane reaches the operator, the books, the versions of Liqo, the address and the
settings of Liqo v0.x, the admission policies, the ResourcePolicies, and whether pods request more
than was granted. It reads with your own rights and writes nothing. A check that you have no right
for is skipped, and its finding names the right.

It also sends each admission policy what the policy has to refuse, as a dry run. Where a policy is
for consumers, the request is from the user of a consumer, so you need the right to impersonate it.

Exit status: 0 if everything is ok, 1 for warnings or skipped checks, 2 if something is wrong, 3 for
an error.`

const examples = `  # The installation in namespace proffer-system
  kubectl proffer check

  # An installation in another namespace, with Liqo in namespace liqo-system
  kubectl proffer check --operator-namespace=other --liqo-namespace=liqo-system

  # The report for a script
  kubectl proffer check -o json`

// NewCommand returns the command.
func NewCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	var liqoNamespace, format string
	cmd := &cobra.Command{
		Use:               "check",
		Short:             "Check the installation, and say what to do",
		Long:              long,
		Example:           examples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), flags, streams, liqoNamespace, format)
		},
	}
	exit.IsAnswer(cmd)
	cmd.Flags().StringVar(&liqoNamespace, "liqo-namespace", "liqo", "The namespace of Liqo.")
	complete.FormatFlag(cmd, &format, output.JSON, output.YAML)
	return cmd
}

func run(
	ctx context.Context, flags *operatorclient.Flags, streams genericiooptions.IOStreams, liqoNamespace, format string,
) error {
	report, err := examine(ctx, flags, streams, liqoNamespace)
	if err != nil {
		return err
	}
	p := output.For(streams.Out)
	if err := p.Answer(format, report, report.table().Lines(p.Width, p.Color)...); err != nil {
		return err
	}
	return exit.With(report.Status.ExitStatus())
}

// examine makes all checks. Its error says that the API server cannot be asked at all.
func examine(
	ctx context.Context, flags *operatorclient.Flags, streams genericiooptions.IOStreams, liqoNamespace string,
) (Report, error) {
	config, err := flags.RESTConfig()
	if err != nil {
		return Report{}, err
	}
	config.Timeout = cmp.Or(config.Timeout, requestTimeout)
	config.QPS, config.Burst = -1, 0 // The requests are few, and the API server limits them itself.
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer output.Slow(streams.ErrOut, "Checking the installation")()
	c, err := newCluster(config)
	if err != nil {
		return Report{}, fmt.Errorf("connecting to the API server: %w", err)
	}
	operator := flags.Client(operatorclient.Reader)
	c.version, c.overview = operator.Version, operator.Overview
	return c.report(ctx, flags.Namespace, liqoNamespace, time.Now())
}
