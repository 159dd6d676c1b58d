package catalog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/complete"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/exit"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/peering"
	"proffer.dev/proffer/internal/source/federation"
)

// The exit statuses that are an answer. A later one outweighs the earlier ones.
const (
	statusIncomplete = 1
	statusNoFit      = 2
)

const long = `Show what the providers of this cluster would grant to a new ResourceSlice, and how to ask for it.

This command is for consumers: it runs against the cluster that asks. With the identity that Liqo
v1 keeps for each provider, it reads the Offers that the provider publishes to this cluster. CPU,
MEMORY and PODS are what a new ResourceSlice of the class would be granted now. LARGEST-POD starts
on some node now; -o wide counts the nodes by what is free on each. AGE is how long ago the provider
worked the amounts out, and after VALID-UNTIL nobody keeps them up to date. Amounts are rounded
down; -o wide prints them exactly. 0 means that nothing is left, and - that the class does not have
the resource.

Below the table is the liqoctl command that asks for all that is available. With --fits, only
the Offers are shown that can grant a ResourceSlice of these amounts in full, and the commands ask
for these. NODES is how many nodes have room now for one pod of these amounts, or less than that.
With --nodes N, N commands ask each of these Offers for as many ResourceSlices, and so for as many
virtual nodes, of these amounts.

A provider that does not answer, or answers nonsense, is left out, and a warning says why.

It needs the rights to list identities of Liqo and to get their Secrets. With --federation it asks
the operator in this cluster, which reads the providers if it has the component federation, and
needs Role proffer-plugin-reader in the namespace of the operator instead. --roles prints the Roles
with which the operator can get the Secrets, and names those to delete, if you may list roles.

Exit status: 0 if everything could be read, 1 if some provider or Offer is missing or expired, 2 if
nothing fits, 3 for an error.`

const examples = `  # What each provider would grant
  kubectl proffer catalog

  # With other resources, what is held, prices and the words of one provider
  kubectl proffer catalog --provider milan -o wide

  # Who can grant a ResourceSlice of this size, and the command that asks for it
  kubectl proffer catalog --fits cpu=2,memory=4Gi

  # Three nodes of this size
  kubectl proffer catalog --fits cpu=2,memory=4Gi --nodes 3

  # What the operator in this cluster has read, without rights to Secrets
  kubectl proffer catalog --federation

  # Let the operator read each provider
  kubectl proffer catalog --roles > roles.yaml

  # For a script
  kubectl proffer catalog -o json`

type catalogOptions struct {
	flags   *operatorclient.Flags
	streams genericiooptions.IOStreams
	liqoctl federation.Liqoctl
	now     func() time.Time

	provider string
	fits     v1alpha1.Quantities
	// nodes is the number of nodes with these amounts, 0 for none in particular.
	nodes  int
	format string
	// federation asks the operator, and roles prints what lets it read the providers.
	federation, roles bool
}

// NewCommand returns the command.
func NewCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &catalogOptions{flags: flags, streams: streams, now: time.Now}
	var fits string
	cmd := &cobra.Command{
		Use:               "catalog",
		Short:             "On a consumer, show what each provider would grant, and how to ask",
		Long:              long,
		Example:           examples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.fits, err = federation.ParseAmounts(fits); err != nil {
				return fmt.Errorf("--fits=%s: %w", fits, err)
			}
			if cmd.Flags().Changed("nodes") {
				if err := o.checkNodes(); err != nil {
					return err
				}
			}
			if o.roles {
				return o.printRoles(cmd.Context())
			}
			o.liqoctl = liqoctlFor(flags)
			return o.run(cmd.Context())
		},
	}
	exit.IsAnswer(cmd)
	cmd.Flags().StringVar(&o.provider, "provider", "", "Show only the provider with this cluster ID.")
	cmd.Flags().StringVar(&fits, "fits", "",
		"Show only what can grant a ResourceSlice of these amounts, such as cpu=4,memory=8Gi.")
	cmd.Flags().IntVar(&o.nodes, "nodes", 0,
		fmt.Sprintf("Print the commands that ask for this many nodes of the amounts of --fits, 1 to %d.", maxNodes))
	cmd.Flags().BoolVar(&o.federation, "federation", false,
		"Show what the operator in this cluster has read of the providers.")
	cmd.Flags().BoolVar(&o.roles, "roles", false,
		"Print the Roles with which the operator in this cluster can read the providers.")
	complete.FormatFlag(cmd, &o.format, output.Wide, output.JSON, output.YAML)
	for _, name := range []string{"federation", "fits", "nodes", "output"} {
		cmd.MarkFlagsMutuallyExclusive(name, "roles")
	}
	complete.Flag(cmd, "provider", peering.Complete(flags))
	complete.Flag(cmd, "fits", cobra.NoFileCompletions)
	complete.Flag(cmd, "nodes", cobra.NoFileCompletions)
	return cmd
}

func (o *catalogOptions) run(ctx context.Context) error {
	c, err := o.read(ctx)
	if err != nil {
		return err
	}
	fit := federation.Fit(c.Providers, o.fits, o.nodes, o.liqoctl)
	if err := o.print(c); err != nil {
		return err
	}
	status := 0
	for _, p := range c.Providers {
		if len(p.Problems) > 0 {
			status = statusIncomplete
		}
	}
	if len(o.fits) > 0 && !fit {
		status = statusNoFit
	}
	return exit.With(status)
}

// read asks all providers, or the operator.
func (o *catalogOptions) read(ctx context.Context) (*rest.Federation, error) {
	if o.federation {
		return o.readOperator(ctx)
	}
	c, err := peering.Connect(o.flags)
	if err != nil {
		return nil, err
	}
	defer output.Slow(o.streams.ErrOut, "Asking the providers")()
	ids, err := c.Identities(ctx, "provider", o.provider)
	if err != nil {
		return nil, err
	}
	return &rest.Federation{Providers: peering.Each(ids, func(id federation.Identity) rest.FederationProvider {
		return o.ask(ctx, c, id)
	})}, nil
}

// ask asks one provider. What is wrong with it is in the result.
func (o *catalogOptions) ask(ctx context.Context, c *peering.Client, id federation.Identity) rest.FederationProvider {
	read, err := federation.Ask(ctx, id, c.Secrets, c.Limit, o.now)
	if err != nil {
		read.Problem(peering.Explain(id, err))
	}
	return rest.FederationProvider{
		ClusterID: peering.ShownID(id.Provider), Publishes: err == nil, Offers: read.Offers, Problems: read.Problems,
	}
}

// readOperator asks the operator in this cluster what it has read.
func (o *catalogOptions) readOperator(ctx context.Context) (*rest.Federation, error) {
	all, err := o.flags.Client(operatorclient.Reader).Federation(ctx)
	if err != nil || o.provider == "" {
		return all, err
	}
	all.Providers = slices.DeleteFunc(all.Providers, func(p rest.FederationProvider) bool {
		return p.ClusterID != o.provider
	})
	if len(all.Providers) == 0 {
		return nil, fmt.Errorf("the operator knows no provider %q: leave --provider out to see all", o.provider)
	}
	return all, nil
}

// print prints the table and the commands, or the value, and all warnings.
func (o *catalogOptions) print(c *rest.Federation) error {
	p, offers := output.For(o.streams.Out), 0
	for _, provider := range c.Providers {
		offers += len(provider.Offers)
		for _, problem := range provider.Problems {
			fmt.Fprintf(o.streams.ErrOut, "warning: %s: %s\n", provider.ClusterID, problem)
		}
		for i := range provider.Offers {
			if lack := shortage(&provider.Offers[i], o.fits, o.nodes); lack != "" {
				fmt.Fprintf(o.streams.ErrOut, "warning: %s: %s\n", provider.ClusterID, lack)
			}
		}
	}
	if output.IsValue(o.format) {
		return p.Value(o.format, c)
	}
	switch {
	case len(c.Providers) == 0:
		fmt.Fprintln(o.streams.ErrOut, "This cluster has no provider: peer it with one.")
		return nil
	case offers == 0 && len(o.fits) > 0:
		fmt.Fprintf(o.streams.ErrOut, "Nothing fits %s.\n", amounts(o.fits))
		return nil
	case offers == 0:
		fmt.Fprintln(o.streams.ErrOut, "No Offers.")
		return nil
	}
	if err := p.Table(table(c, o.format, len(o.fits) > 0, o.now())); err != nil {
		return err
	}
	if o.nodes > 0 {
		return p.Lines(commandsForNodes(c, o.fits)...)
	}
	return p.Lines(commands(c, o.fits)...)
}

// commands returns the commands with a heading, nothing if there are none.
func commands(c *rest.Federation, fits v1alpha1.Quantities) []string {
	asked := "all that is available"
	if len(fits) > 0 {
		asked = amounts(fits)
	}
	lines := []string{"", "To ask for " + asked + ":"}
	for _, p := range c.Providers {
		for i := range p.Offers {
			if command := p.Offers[i].Command; command != "" {
				lines = append(lines, "  "+command)
			}
		}
	}
	if len(lines) == 2 {
		return nil
	}
	return lines
}
