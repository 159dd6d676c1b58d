package providers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/complete"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/exit"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/live"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/peering"
	"proffer.dev/proffer/internal/source/federation"
)

const long = `Show the providers to which each broker of this cluster may send its pods on, and choose among them.

This command is for consumers: it runs against the cluster whose pods a broker runs on providers of
its own. With the identity that Liqo v1 keeps for the broker, it reads and writes this cluster's one
ProviderChoice there.

WHY has the score of a chosen provider, or who rejects another and for which reason. A provider that
is no longer chosen is drained first. A broker shows its providers once there is a ProviderChoice:
choose --all writes one that leaves the choice to the broker.

It needs the rights of kubectl proffer catalog. Exit status 1: some broker could not be read.`

const examples = `  # The providers of each broker
  kubectl proffer providers

  # What changes at one broker, until Ctrl-C
  kubectl proffer providers --broker milan --watch

  # For a script
  kubectl proffer providers -o json`

const requireLong = `Require a minimum or maximum of KPIs of a provider, instead of what was required before:

  uptime=99.5           at least this uptime, in percent
  latency=50            at most this latency, in milliseconds
  price.cpu=0.03        at most this price of a resource for an hour, in the broker's currency
  remaining.cpu=4       at least this free amount of a resource
  measured.NAME<=BOUND  at most, or with >= at least, this value that the broker's admin has
                        measured; write it in quotes`

const preferLong = `Rank the providers by the KPIs of require, with weights (default 1), instead of what was preferred
before. Less is better of latency, price and measured.NAME, more of uptime, remaining and
measured.NAME.higher.`

// answerLimit bounds what a command waits for the broker to follow a choice.
const answerLimit = 30 * time.Second

type options struct {
	flags   *operatorclient.Flags
	streams genericiooptions.IOStreams
	// period is the time between two reads, of --watch and of a broker that has not answered yet.
	period time.Duration

	broker string
	format string
	watch  bool
	// clear removes the field, and wait has the answer of the broker shown.
	clear, wait bool
}

// NewCommand returns the command with those that write.
func NewCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{flags: flags, streams: streams, period: live.Period}
	cmd := &cobra.Command{
		Use:               "providers",
		Short:             "On a consumer of a broker, show and choose the providers for its pods",
		Long:              long,
		Example:           examples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.show(cmd.Context()) },
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false,
		"After the table, show each change as \"old -> new\", until Ctrl-C.")
	complete.FormatFlag(cmd, &o.format, output.JSON, output.YAML)
	cmd.MarkFlagsMutuallyExclusive("watch", "output")
	cmd.AddCommand(
		o.setter("providers", parseProviders, "all", cobra.Command{
			Use: "choose ID... | --all", Short: "Choose among these providers only",
			Example: "  kubectl proffer providers choose oslo paris",
		}),
		o.setter("require", parseRequire, "none", cobra.Command{
			Use:   "require KPI=BOUND[,KPI=BOUND...] | --none",
			Short: "Require a minimum or maximum of KPIs of a provider",
			Long:  requireLong,
			Example: "  kubectl proffer providers require " +
				"uptime=99.5,latency=50,price.cpu=0.03,remaining.cpu=4",
		}),
		o.setter("prefer", parsePrefer, "none", cobra.Command{
			Use: "prefer KPI[=WEIGHT][,KPI[=WEIGHT]...] | --none", Short: "Rank the providers by KPIs",
			Long:    preferLong,
			Example: "  kubectl proffer providers prefer price.cpu=2,uptime",
		}),
		o.setter("count", func(args []string) (any, error) { return parseCount(strings.Join(args, " ")) }, "none",
			cobra.Command{
				Use: "count NUMBER | --none", Short: "Choose at most so many providers",
				Example: "  kubectl proffer providers count 2",
			}),
		&cobra.Command{
			Use: "reset", Short: "Leave the choice to the broker, and delete the ProviderChoice",
			Example: "  kubectl proffer providers reset", Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
			RunE: func(cmd *cobra.Command, _ []string) error { return o.reset(cmd.Context()) },
		},
	)
	for _, c := range append(cmd.Commands(), cmd) { // The help of a command does not show the flags of its parents.
		c.Flags().StringVar(&o.broker, "broker", "", "The broker, by its cluster ID.")
		complete.Flag(c, "broker", peering.Complete(flags))
	}
	return cmd
}

// setter returns a command that sets a field of the spec to what parse makes of the arguments, or removes it with a
// flag of this name.
func (o *options) setter(
	field string, parse func(args []string) (any, error), none string, cmd cobra.Command,
) *cobra.Command {
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (len(args) == 0) != o.clear {
			return fmt.Errorf("write either arguments or --%s: see %s --help", none, cmd.CommandPath())
		}
		var value any
		if !o.clear {
			var err error
			if value, err = parse(args); err != nil {
				return err
			}
		}
		return o.set(cmd.Context(), field, value)
	}
	cmd.Flags().BoolVar(&o.clear, none, false, "Remove what was set, and leave it to the broker.")
	cmd.Flags().BoolVar(&o.wait, "wait", true, "Wait up to 30 s for what the broker makes of it.")
	return &cmd
}

// brokers asks the brokers of this cluster, or the one that --broker names. Providers that are none are left out.
func (o *options) brokers(ctx context.Context) ([]broker, error) {
	c, err := peering.Connect(o.flags)
	if err != nil {
		return nil, err
	}
	ids, err := c.Identities(ctx, "broker", o.broker)
	if err != nil {
		return nil, err
	}
	all := peering.Each(ids, func(id federation.Identity) broker { return ask(ctx, c, id) })
	served := slices.DeleteFunc(slices.Clone(all), func(b broker) bool {
		return errors.Is(b.err, federation.ErrNotServed)
	})
	if len(served) > 0 {
		return served, nil
	}
	if len(all) == 0 {
		return nil, errors.New("this cluster has no provider: peer it with a broker")
	}
	reasons := output.Texts(all[:min(len(all), maxReasons)], func(b broker) string {
		return b.ClusterID + ": " + b.Problem
	})
	if more := len(all) - maxReasons; more > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more", more))
	}
	return nil, errors.New("no provider of this cluster lets it choose: " + strings.Join(reasons, "; "))
}

// maxReasons bounds the providers that an error explains.
const maxReasons = 5

// only returns the one broker to write to.
func (o *options) only(ctx context.Context) (broker, error) {
	defer output.Slow(o.streams.ErrOut, "Asking the brokers")()
	all, err := o.brokers(ctx)
	if err != nil {
		return broker{}, err
	}
	first := max(0, slices.IndexFunc(all, func(b broker) bool { return b.err == nil }))
	if len(all) == 1 && all[0].err != nil {
		return broker{}, fmt.Errorf("%s: %s", all[0].ClusterID, all[0].Problem)
	}
	if len(all) == 1 {
		return all[0], nil
	}
	names := make([]string, len(all))
	for i := range all {
		if names[i] = all[i].ClusterID; all[i].err != nil {
			names[i] += " (" + all[i].Problem + ")"
		}
	}
	return broker{}, fmt.Errorf("this cluster may have several brokers: %s: write which one, such as --broker %s",
		strings.Join(names, ", "), all[first].ClusterID)
}

// set sets a field at the broker, and shows what that makes of it.
func (o *options) set(ctx context.Context, field string, value any) error {
	b, err := o.only(ctx)
	if err != nil {
		return err
	}
	written, err := b.at.Choose(ctx, field, value)
	if err != nil {
		return fmt.Errorf("%s: %w", b.ClusterID, err)
	}
	if err := output.For(o.streams.Out).Lines(b.ClusterID + ": " + wish(&written.Spec)); err != nil || !o.wait {
		return err
	}
	if b.Choice, err = o.await(ctx, b, written.Generation); err != nil {
		return fmt.Errorf("%s: %w", b.ClusterID, err)
	}
	if err := o.print([]broker{b}); err != nil {
		return err
	}
	if ready := readyOf(b.Choice); ready == nil || ready.Status != "True" {
		return exit.With(1)
	}
	return nil
}

// await reads the choice until the broker has answered this generation of it.
func (o *options) await(ctx context.Context, b broker, generation int64) (*federation.Choice, error) {
	defer output.Slow(o.streams.ErrOut, "Waiting for the broker")()
	var c *federation.Choice
	var latest error
	answered := func(ctx context.Context) (done bool, err error) {
		c, latest = b.at.Choice(ctx)
		if c == nil && latest == nil {
			err = errors.New("somebody has deleted the ProviderChoice")
		}
		return c != nil && latest == nil && c.Status.ObservedGeneration >= generation, err
	}
	err := wait.PollUntilContextTimeout(ctx, o.period, answerLimit, true, answered)
	switch {
	case !wait.Interrupted(err):
		return c, err
	case latest != nil && !errors.Is(latest, context.DeadlineExceeded):
		return nil, latest
	}
	return nil, fmt.Errorf("it has stored the choice, and has not answered within %s: "+
		"see kubectl proffer providers later", answerLimit)
}

// reset deletes the ProviderChoice.
func (o *options) reset(ctx context.Context) error {
	b, err := o.only(ctx)
	if err != nil {
		return err
	}
	found, err := b.at.Reset(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", b.ClusterID, err)
	}
	text := ": there was no ProviderChoice."
	if found {
		text = ": the ProviderChoice is deleted, and the broker chooses."
	}
	return output.For(o.streams.Out).Lines(b.ClusterID + text)
}
