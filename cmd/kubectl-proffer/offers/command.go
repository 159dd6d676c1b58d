// Package offers is the command kubectl proffer offers: who is offered, has been granted and uses
// what.
package offers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/complete"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/unknown"
	"proffer.dev/proffer/internal/capacity"
)

type offersOptions struct {
	flags   *operatorclient.Flags
	streams genericiooptions.IOStreams

	consumer string
	class    string
	// oneClass is set if --class is, which may be empty.
	oneClass bool
	// resource is empty for all.
	resource   string
	byResource bool
	// order is one of orders, empty for that of the operator.
	order  string
	watch  bool
	format string
	// known is set by --known.
	known bool

	// list asks for the present offers to all consumers, and describe for those to one.
	list     func(context.Context) (*rest.Offers, error)
	describe func(ctx context.Context, consumer string) (*rest.Consumer, error)
	// period is the time between two reads of --watch.
	period time.Duration
	// printed is called, with --watch, after the table and after each change.
	printed func()
}

// NewCommand returns the command.
func NewCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &offersOptions{flags: flags, streams: streams, period: Period, printed: func() {}}
	cmd := &cobra.Command{
		Use:   "offers [CONSUMER]",
		Short: "Show what each consumer is offered, has been granted and uses",
		Long: `Show what each consumer is offered, has been granted and uses, with a row for each consumer
and class.

OFFERED is what the consumer may use now, including what it has. GRANTED is the sum over its
ResourceSlices. USED is what its pods request: on the nodes of the policy, or on all nodes for a
policy of fixed amounts. The row ` + output.Anyone + ` is the default offer, which any other consumer
gets, also a misspelt one: --known refuses it. 0 is nothing; - stands for what there is not, such as
grants of the default offer.

Amounts are rounded down. With -o wide there is a row for each resource, with the exact amounts and
an explanation. --watch has a row for each resource, too.

It needs Role ` + operatorclient.Reader.Role + ` in the namespace of the operator.`,
		Example: `  # All offers
  kubectl proffer offers

  # A row for each resource
  kubectl proffer offers --by-resource

  # Who uses most memory
  kubectl proffer offers --resource memory --sort used

  # The offers to one consumer, with an explanation of each amount
  kubectl proffer offers rome -o wide

  # What changes in one class, until Ctrl-C
  kubectl proffer offers --class gold --watch

  # The offers as the operator returns them
  kubectl proffer offers -o json`,
		Args:              atMostOne,
		ValidArgsFunction: complete.Consumers(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.consumer = args[0]
			}
			if o.known && o.consumer == "" {
				return errors.New("--known is about one consumer: write its ID, such as: kubectl proffer offers rome --known")
			}
			if err := output.CheckOrder(o.order, orders); err != nil {
				return err
			}
			o.class, o.oneClass = output.ClassOf(o.class), cmd.Flags().Changed("class")
			client := o.flags.Client(operatorclient.Reader)
			o.list, o.describe = client.Offers, client.Consumer
			return o.show(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.class, "class", "", `Show only this class; --class "" is the class without a name.`)
	cmd.Flags().StringVar(&o.resource, "resource", "", "Show only this resource, such as cpu or nvidia.com/gpu.")
	cmd.Flags().BoolVar(&o.byResource, "by-resource", false, "Show a row for each resource.")
	cmd.Flags().StringVar(&o.order, "sort", orders[0], "Sort the table by "+output.OrdersText(orders)+
		". The largest amounts of --resource, or else of cpu, come first.")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false,
		"After the table, show each change as \"old -> new\", and each edit of a policy, until Ctrl-C.")
	unknown.Flag(cmd, &o.known)
	complete.FormatFlag(cmd, &o.format, output.Wide, output.JSON, output.YAML)
	complete.Flag(cmd, "class", complete.Classes(flags))
	complete.Flag(cmd, "resource", complete.Words(capacity.CPU, capacity.Memory, capacity.Pods))
	complete.Flag(cmd, "sort", complete.Words(orders...))
	return cmd
}

// atMostOne refuses a second consumer.
func atMostOne(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return errors.New("write at most one consumer, such as: kubectl proffer offers rome")
	}
	return nil
}

func (o *offersOptions) readConsumer(ctx context.Context) (offersAnswer, error) {
	c, err := o.describe(ctx, o.consumer)
	if err != nil {
		return offersAnswer{}, err
	}
	inClass := slices.ContainsFunc(c.Offers, func(x rest.Offer) bool { return o.showsClass(x.Class) })
	c.Offers = o.narrow(c.Offers)
	switch {
	case len(c.Offers) > 0 || c.Because != "":
	case o.oneClass && !inClass:
		c.Because = "it is offered nothing in this class"
	case o.resource != "":
		c.Because = "it is not offered " + o.resource
	}
	answer := offersAnswer{value: c, rows: consumerRows(c), consumer: c}
	if c.Details != nil {
		answer.at = c.Details.Time.Local()
	}
	return answer, nil
}

// read asks for the present offers, and keeps what is shown.
func (o *offersOptions) read(ctx context.Context) (offersAnswer, error) {
	if o.consumer != "" {
		return o.readConsumer(ctx)
	}
	all, err := o.list(ctx)
	if err != nil {
		return offersAnswer{}, err
	}
	policies := slices.Clone(all.Policies)
	o.keep(all)
	return offersAnswer{value: all, at: all.Time.Local(), rows: rowsOf(all), policies: policies}, nil
}

// showsClass reports whether a class is shown, with the changes of its policies.
func (o *offersOptions) showsClass(class string) bool { return !o.oneClass || class == o.class }

// keep keeps what is shown: policies, offers, and the consumers that have one.
func (o *offersOptions) keep(all *rest.Offers) {
	if !o.oneClass && o.resource == "" {
		return
	}
	for i := range all.Consumers {
		all.Consumers[i].Offers = o.narrow(all.Consumers[i].Offers)
	}
	all.Consumers = slices.DeleteFunc(all.Consumers, func(c rest.Consumer) bool { return len(c.Offers) == 0 })
	all.Policies = slices.DeleteFunc(all.Policies, func(p rest.Policy) bool { return !o.showsClass(p.Class) })
	all.Anyone = o.narrow(all.Anyone)
}

// narrow keeps the offers of the class that is shown, and of them the resource.
func (o *offersOptions) narrow(offers []rest.Offer) []rest.Offer {
	kept := offers[:0]
	for _, x := range offers {
		if o.showsClass(x.Class) && (o.resource == "" || x.Narrow(o.resource)) {
			kept = append(kept, x)
		}
	}
	return kept
}
