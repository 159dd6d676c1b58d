// Package simulate is the command kubectl proffer simulate: what a change would do, without making
// it.
package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/complete"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/exit"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/outcome"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/internal/policy"
)

// The values of --world besides files.
const (
	worldOperator = "operator"
	worldCluster  = "cluster"
)

// The output formats besides JSON and YAML.
const (
	formatTable    = "table"
	formatMarkdown = "markdown"
)

var long = `Show what a change of policies or nodes would do, without making it.

Each ResourcePolicy goes through a dry run of the API server, so its defaults and rules apply. A
file replaces a policy of the same name. The operator then evaluates the change with the code that
evaluates what is in force, and writes nothing. The answer lists offers, policies and grants that
would be different, and the consumers whose pods would be evicted. It begins and ends with a
sentence that sums it up. Consumers with the same change share a row. Amounts are rounded down.
With -o wide they are exact, and each change has a row.

With --world=cluster, no operator is needed: the plugin itself reads the objects that an operator
reads, with your rights, and evaluates them with the same code. With --world=FILE, the plugin
evaluates the change on a file that kubectl proffer snapshot has written, and asks neither the
operator nor the API server. The answer says what the cluster's objects or the file do not hold.

Exit status: 0 if nothing changes, 1 if something does, 2 if pods would be evicted, 3 for an error.

It needs Role ` + operatorclient.Simulator.Role + ` in the namespace of the operator, and the right to
write policies, as in ClusterRole proffer-resourcepolicy-editor, if policies change.`

const examples = `  # What applying a policy would change
  kubectl proffer simulate -f policy.yaml

  # All policies of a directory, as Markdown for a merge request
  kubectl proffer simulate -f policies/ -o markdown

  # A policy from standard input
  kubectl proffer simulate -f - < policy.yaml

  # Without a policy, and without two nodes
  kubectl proffer simulate --delete standard --drain worker-1 --drain worker-2

  # With three more nodes
  kubectl proffer simulate --add-nodes 3=cpu=8,memory=32Gi,pods=110,label=pool=gold

  # Without an operator
  kubectl proffer simulate --world cluster -f policy.yaml

  # On a snapshot, without a cluster
  kubectl proffer snapshot > w.json && kubectl proffer simulate --world w.json -f policy.yaml`

type simulateOptions struct {
	flags   *operatorclient.Flags
	streams genericiooptions.IOStreams

	files    resource.FilenameOptions
	deleted  []string
	drained  []string
	addNodes []string
	// world names the world of the simulation: worldOperator, worldCluster or a snapshot file.
	world  string
	format string
}

// NewCommand returns the command.
func NewCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &simulateOptions{flags: flags, streams: streams, format: formatTable}
	cmd := &cobra.Command{
		Use:               "simulate",
		Short:             "Show what a change of policies or nodes would do, without making it",
		Long:              long,
		Example:           examples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	exit.IsAnswer(cmd)
	set := cmd.Flags()
	set.StringSliceVarP(&o.files.Filenames, "filename", "f", nil,
		"A file, directory or URL with ResourcePolicies; - is standard input.")
	set.BoolVarP(&o.files.Recursive, "recursive", "R", false, "Read the directories of --filename recursively.")
	set.StringSliceVar(&o.deleted, "delete", nil, "The name of a ResourcePolicy to delete.")
	set.StringSliceVar(&o.drained, "drain", nil,
		"The name of a node that leaves all pools. Its pods count nowhere, and are not listed as evicted.")
	set.StringArrayVar(&o.addNodes, "add-nodes", nil, "Nodes that join, Ready and without taints: "+addNodesForm+".")
	set.StringVar(&o.world, "world", worldOperator,
		"What to evaluate the change on: operator, cluster, or a file of kubectl proffer snapshot.")
	complete.FormatFlag(cmd, &o.format, formatTable, output.Wide, output.JSON, output.YAML, formatMarkdown)
	complete.Flag(cmd, "delete", complete.Policies(flags))
	complete.Flag(cmd, "drain", complete.Nodes(flags))
	complete.Flag(cmd, "add-nodes", complete.Words())
	complete.Flag(cmd, "world",
		cobra.FixedCompletions([]string{worldOperator, worldCluster}, cobra.ShellCompDirectiveDefault))
	return cmd
}

func (o *simulateOptions) run(ctx context.Context) error {
	change, err := o.change(ctx)
	if err != nil {
		return err
	}
	simulation, err := o.simulate(ctx, change)
	if err != nil {
		return err
	}
	if err := o.print(simulation); err != nil {
		return err
	}
	return exit.With(outcome.Status(simulation))
}

// simulate evaluates the change through the operator, or on a snapshot.
func (o *simulateOptions) simulate(ctx context.Context, change *rest.Change) (*rest.Simulation, error) {
	switch o.world {
	case worldOperator:
	case worldCluster:
		defer output.Slow(o.streams.ErrOut, "Reading the cluster and evaluating the change")()
		return o.onCluster(ctx, change)
	default:
		defer output.Slow(o.streams.ErrOut, "Evaluating the change on "+o.world)()
		return offline(ctx, o.world, change)
	}
	defer output.Slow(o.streams.ErrOut, "The operator is evaluating the change")()
	simulation, err := o.flags.Client(operatorclient.Simulator).Simulate(ctx, change)
	if errors.Is(err, operatorclient.ErrNotInstalled) {
		return nil, fmt.Errorf("%w: without an operator, write --world=%s", err, worldCluster)
	}
	return simulation, err
}

func (o *simulateOptions) print(simulation *rest.Simulation) error {
	p := output.For(o.streams.Out)
	lines := outcome.Lines(simulation, o.format, p.Width, p.Color)
	if o.format == formatMarkdown {
		lines = outcome.Markdown(simulation)
	}
	return p.Answer(o.format, simulation, lines...)
}

// change returns what the flags ask for: as the API server would store it, or, without a cluster, as
// the files have it.
func (o *simulateOptions) change(ctx context.Context) (*rest.Change, error) {
	if len(o.files.Filenames)+len(o.deleted)+len(o.drained)+len(o.addNodes) == 0 {
		return nil, errors.New("there is no change to simulate: write -f FILE, --delete, --drain or --add-nodes")
	}
	change := &rest.Change{Delete: o.deleted, Drain: o.drained}
	for _, text := range o.addNodes {
		nodes, err := parseAddNodes(text)
		if err != nil {
			return nil, err
		}
		change.AddNodes = append(change.AddNodes, nodes)
	}
	var manifests []manifest
	if len(o.files.Filenames) > 0 {
		var err error
		if manifests, err = readManifests(&o.files, o.streams.ErrOut); err != nil {
			return nil, err
		}
	}
	var errs []error
	for _, m := range manifests {
		if err := policy.CheckWritten(m.object.Object); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.name(), err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, m := range manifests {
		if slices.Contains(o.deleted, m.object.GetName()) {
			return nil, fmt.Errorf("%s is also to be deleted: leave out --delete=%s or the file", m.name(), m.object.GetName())
		}
	}
	if o.world == worldOperator || o.world == worldCluster {
		return change, o.dryRun(ctx, change, manifests)
	}
	for i := range manifests {
		// The operator's parser has the defaults and most of the rules.
		object, err := manifests[i].typed(manifests[i].object, (*json.Decoder).DisallowUnknownFields)
		if err != nil {
			return nil, err
		}
		change.Apply = append(change.Apply, *object)
	}
	return change, nil
}

// dryRun has the API server check the change of policies, and adds to the change what it would store.
// It reports the errors of all policies together.
func (o *simulateOptions) dryRun(ctx context.Context, change *rest.Change, manifests []manifest) error {
	if len(manifests)+len(o.deleted) == 0 {
		return nil
	}
	policies, err := o.flags.Policies()
	if err != nil {
		return err
	}
	defer output.Slow(o.streams.ErrOut, "The API server is checking the policies")()
	var errs []error
	for i := range manifests {
		object, err := manifests[i].dryRun(ctx, policies)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		change.Apply = append(change.Apply, *object)
	}
	for _, name := range o.deleted {
		errs = append(errs, dryRunDelete(ctx, policies, name))
	}
	return errors.Join(errs...)
}
