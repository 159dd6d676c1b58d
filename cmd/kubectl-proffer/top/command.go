// Package top is the command kubectl proffer top: capacity and its use, by policy, consumer or node.
package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/complete"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/internal/capacity"
)

// What the command can show.
const (
	byPolicies  = "policies"
	byConsumers = "consumers"
	byNodes     = "nodes"
)

// NewCommand returns the command.
func NewCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top [policies|consumers|nodes]",
		Short: "Show capacity and its use by policy, consumer or node",
		Long: `Show capacity and its use by policy (the default), consumer or node.

policies: CAPACITY is the policy's pool, COMMITTED what its consumers hold of it, REMAINING what is
left. OFFERED is the sum over its consumers of what each may use, and OFFERED% the part of the
capacity that this is: above 100% the policy is oversubscribed. A policy of fixed amounts has no
pool.

consumers: the consumers that use most of an offer come first. WAITING is what their ResourceSlices
have asked for and were not granted.

nodes: LOCAL is what this cluster's own pods request, USED what pods of consumers request, and POOLS
are the policies that offer the node. The sums below are over all nodes in pools, and over the
offers of all classes. FREE-ON-EACH is free on each of NODES nodes of a policy now, or more.

Amounts are rounded down; -o wide prints them exactly, and -o json the rows for a script. 0 is
nothing; - stands for what there is not, such as the pool of a policy of fixed amounts.

policies needs Role ` + operatorclient.Reader.Role + ` in the namespace of the operator, consumers and
nodes need Role ` + operatorclient.Simulator.Role + ` there.`,
		Example: `  # Capacity, commitments and oversubscription of each policy
  kubectl proffer top

  # Who uses most, and who waits
  kubectl proffer top consumers

  # Who waits for most memory
  kubectl proffer top consumers --sort waiting --resource memory

  # Which pools each node is in
  kubectl proffer top nodes

  # For a script
  kubectl proffer top consumers -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || cobra.OnlyValidArgs(cmd, args) != nil {
				return errors.New("write one of " + byPolicies + ", " + byConsumers + " and " + byNodes)
			}
			return nil
		},
		ValidArgs: []cobra.Completion{byPolicies, byConsumers, byNodes},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.by = kindOf(args)
			if err := output.CheckOrder(cmp.Or(o.order, orders[o.by][0]), orders[o.by]); err != nil {
				return err
			}
			return o.run(cmd.Context(), flags, streams)
		},
	}
	by := func(kind string) string { return kind + " by " + output.OrdersText(orders[kind]) }
	cmd.Flags().StringVar(&o.order, "sort", "", "Sort "+by(byPolicies)+"; "+by(byConsumers)+"; "+by(byNodes)+
		". The first of each is the default. The largest amounts of --resource, or else of cpu, come first.")
	cmd.Flags().StringVar(&o.resource, "resource", "", "Show only this resource, such as cpu or nvidia.com/gpu.")
	complete.FormatFlag(cmd, &o.format, output.Wide, output.JSON, output.YAML)
	complete.Flag(cmd, "resource", complete.Words(capacity.CPU, capacity.Memory, capacity.Pods))
	complete.Flag(cmd, "sort", completeOrder)
	return cmd
}

// kindOf returns what the arguments show.
func kindOf(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return byPolicies
}

// topOptions are the argument and the flags of the command.
type topOptions struct{ by, format, order, resource string }

func (o *topOptions) run(
	ctx context.Context, flags *operatorclient.Flags, streams genericiooptions.IOStreams,
) error {
	rows, tables, err := o.read(ctx, flags, streams)
	if err != nil {
		return err
	}
	p := output.For(streams.Out)
	if output.IsValue(o.format) {
		return p.Value(o.format, rows)
	}
	if len(tables[0].Rows) == 0 {
		fmt.Fprintln(streams.ErrOut, "There is nothing to show: the operator has no "+o.subject()+".")
		return nil
	}
	lines := tables[0].Lines(p.Width, p.Color)
	for _, t := range tables[1:] {
		if len(t.Rows) > 0 {
			lines = append(append(lines, ""), t.Lines(p.Width, p.Color)...)
		}
	}
	return p.Lines(append(lines, lostSeats(rows.Policies, p.Width)...)...)
}

// subject says what is shown.
func (o *topOptions) subject() string {
	if o.resource != "" {
		return o.by + " with " + o.resource
	}
	return o.by
}

// top holds the rows of one kind, the others are nil: the JSON of kubectl proffer top -o json.
type top struct {
	Policies  []policyRow   `json:"policies,omitzero"`
	Consumers []consumerRow `json:"consumers,omitzero"`
	Nodes     []nodeRow     `json:"nodes,omitzero"`
	// Total are the sums over Nodes.
	Total []totalRow `json:"total,omitzero"`
	// Shapes are those of the nodes of each policy.
	Shapes []shapeRow `json:"shapes,omitzero"`
}

// read asks the operator for the rows, and arranges them.
func (o *topOptions) read(
	ctx context.Context, flags *operatorclient.Flags, streams genericiooptions.IOStreams,
) (rows top, tables []*output.Table, err error) {
	account := operatorclient.Simulator
	if o.by == byPolicies {
		account = operatorclient.Reader
	}
	client := flags.Client(account)
	defer output.Slow(streams.ErrOut, "Waiting for the operator")()
	offers, err := client.Offers(ctx)
	if err != nil {
		return rows, nil, err
	}
	if o.by == byPolicies {
		rows.Policies = arranged(policyRows(offers), policyOrders, o.order, o.resource)
		return rows, []*output.Table{policiesTable(rows.Policies, o.format)}, nil
	}
	world, err := client.World(ctx)
	if err != nil {
		return rows, nil, err
	}
	if o.by == byConsumers {
		rows.Consumers = arranged(consumerRows(offers, world), consumerOrders, o.order, o.resource)
		return rows, []*output.Table{consumersTable(rows.Consumers, o.format)}, nil
	}
	nodes, total, err := nodeRows(offers, world)
	if err != nil {
		return rows, nil, err
	}
	rows.Nodes = arranged(nodes, nodeOrders, o.order, o.resource)
	rows.Total = slices.DeleteFunc(total, func(r totalRow) bool { return o.resource != "" && r.Resource != o.resource })
	shapes, err := shapeRows(world)
	rows.Shapes = slices.DeleteFunc(shapes, func(r shapeRow) bool {
		return o.resource != "" && !positive(r.Free.Of(o.resource))
	})
	return rows, []*output.Table{
		nodesTable(rows.Nodes, o.format), totalTable(rows.Total, o.format), shapesTable(rows.Shapes, o.format),
	}, err
}
