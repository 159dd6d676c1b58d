// Package offers is the command kubectl proffer offers: who is offered, has been granted and uses
// what.
package offers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/complete"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// period is the time between two requests of --watch.
const period = 2 * time.Second

// wide is the output format with explanations.
const wide = "wide"

type offersOptions struct {
	flags   *operatorclient.Flags
	streams genericiooptions.IOStreams

	consumer string
	class    string
	// oneClass is set if --class is, which may be empty.
	oneClass bool
	watch    bool
	format   string
}

// NewCommand returns the command.
func NewCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &offersOptions{flags: flags, streams: streams}
	cmd := &cobra.Command{
		Use:   "offers [CONSUMER]",
		Short: "Show what each consumer is offered, has been granted and uses",
		Long: `Show what each consumer is offered, has been granted and uses, with a row for each class and
resource.

OFFERED is what the consumer may use now, including what it has. GRANTED is the sum over its
ResourceSlices. USED is what its pods request: on the nodes of the policy, or on all nodes for a
policy of fixed amounts. The row ` + output.Anyone + ` is the default offer, which any other consumer
gets.

It needs Role ` + operatorclient.Reader.Role + ` in the namespace of the operator.`,
		Example: `  # All offers
  kubectl proffer offers

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
			o.oneClass = cmd.Flags().Changed("class")
			if err := output.CheckFormat(o.format, wide, output.JSON, output.YAML); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.class, "class", "", `Show only this class; --class "" is the class without a name.`)
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false,
		"After the table, show each change as \"old -> new\", until Ctrl-C.")
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "The output format: wide, json or yaml.")
	complete.Flag(cmd, "class", complete.Classes(flags))
	complete.Flag(cmd, "output", complete.Words(wide, output.JSON, output.YAML))
	return cmd
}

// atMostOne refuses a second consumer.
func atMostOne(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return errors.New("write at most one consumer, such as: kubectl proffer offers rome")
	}
	return nil
}

// nothing says why there is no row.
func (o *offersOptions) nothing() string {
	switch {
	case !o.oneClass:
		return "No offers: no ResourcePolicy offers anything."
	case o.class == "":
		return "No offers: no ResourcePolicy offers anything in the class without a name."
	}
	return "No offers: no ResourcePolicy offers anything in class " + o.class + "."
}

func (o *offersOptions) run(ctx context.Context) error {
	client, err := o.flags.Client(operatorclient.Reader)
	if err != nil {
		return err
	}
	done := output.Slow(o.streams.ErrOut, "Waiting for the operator")
	now, err := o.read(ctx, client)
	done()
	if err != nil {
		return err
	}
	p := output.For(o.streams.Out)
	if o.format == output.JSON || o.format == output.YAML {
		if err := p.Value(o.format, now.value); err != nil || !o.watch {
			return err
		}
		return o.follow(ctx, client, now, func(next offersAnswer, _ []row) error { return p.Value(o.format, next.value) })
	}
	if now.unknown {
		fmt.Fprintf(o.streams.ErrOut, "%s is not a known consumer: it gets the default offer.\n", o.consumer)
	}
	if len(now.rows) == 0 {
		fmt.Fprintln(o.streams.ErrOut, o.nothing())
	} else if err := p.Table(table(now.rows, o.format == wide)); err != nil || !o.watch {
		return err
	}
	if !o.watch {
		return nil
	}
	return o.follow(ctx, client, now, func(_ offersAnswer, changed []row) error {
		return p.Lines(table(changed, o.format == wide).Body(p.Width, p.Color)...)
	})
}

// offersAnswer is the operator's answer.
type offersAnswer struct {
	// value is printed by -o json.
	value any
	rows  []row
	// unknown is set if only one consumer was asked for, and the operator does not know it.
	unknown bool
}

func (o *offersOptions) read(ctx context.Context, client *operatorclient.Client) (offersAnswer, error) {
	if o.consumer != "" {
		c, err := client.Consumer(ctx, o.consumer)
		if err != nil {
			return offersAnswer{}, err
		}
		if o.oneClass {
			c.Offers = ofClass(c.Offers, o.class)
			if len(c.Offers) == 0 && c.Because == "" {
				c.Because = "it is offered nothing in this class"
			}
		}
		return offersAnswer{value: c, rows: consumerRows(c), unknown: !c.Known}, nil
	}
	all, err := client.Offers(ctx)
	if err != nil {
		return offersAnswer{}, err
	}
	if o.oneClass {
		keepClass(all, o.class)
	}
	return offersAnswer{value: all, rows: rowsOf(all)}, nil
}

// keepClass keeps what is of one class, and the consumers that are offered something in it.
func keepClass(all *rest.Offers, class string) {
	kept := all.Consumers[:0]
	for _, c := range all.Consumers {
		if c.Offers = ofClass(c.Offers, class); len(c.Offers) > 0 {
			kept = append(kept, c)
		}
	}
	all.Consumers, all.Anyone = kept, ofClass(all.Anyone, class)
	policies := all.Policies[:0]
	for _, p := range all.Policies {
		if p.Class == class {
			policies = append(policies, p)
		}
	}
	all.Policies = policies
}

// follow asks the operator again and again, and calls show for what has changed. An operator that
// cannot answer for a while is reported once.
func (o *offersOptions) follow(
	ctx context.Context, client *operatorclient.Client, now offersAnswer,
	show func(next offersAnswer, changed []row) error,
) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	waiting := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		next, err := o.read(ctx, client)
		switch {
		case errors.Is(err, operatorclient.ErrTryAgain), errors.Is(err, operatorclient.ErrNoAnswer):
			if !waiting {
				fmt.Fprintln(o.streams.ErrOut, "Waiting:", output.Clean(err.Error()))
			}
			waiting = true
			continue
		case err != nil:
			return err
		}
		waiting = false
		if changed := changes(now.rows, next.rows); len(changed) > 0 {
			if err := show(next, changed); err != nil {
				return err
			}
		}
		now = next
	}
}
