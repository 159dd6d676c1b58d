package offers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/live"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/unknown"
)

// Period is the time between two requests of --watch.
const Period = live.Period

// Watch shows the offers that read returns as kubectl proffer offers --watch does. It reads once in
// each period, and calls printed after the table and after each change. It returns the first error
// of read or of a write, or that of ctx.
func Watch(
	ctx context.Context, streams genericiooptions.IOStreams, period time.Duration,
	read func(context.Context) (*rest.Offers, error), printed func(),
) error {
	o := &offersOptions{streams: streams, watch: true, period: period, list: read, printed: printed}
	return o.show(ctx)
}

// offersAnswer is the operator's answer.
type offersAnswer struct {
	// value is printed by -o json.
	value any
	// at is the start of the evaluation, in local time.
	at   time.Time
	rows []row
	// policies are of all classes, and absent if only one consumer was asked for.
	policies []rest.Policy
	// consumer is set if only one consumer was asked for.
	consumer *rest.Consumer
}

// show prints the offers and then, with --watch, each change.
func (o *offersOptions) show(ctx context.Context) error {
	done := output.Slow(o.streams.ErrOut, "Waiting for the operator")
	now, err := o.read(ctx)
	done()
	if err != nil {
		return err
	}
	notice := ""
	if now.consumer != nil {
		notice, err = unknown.Check(ctx, now.consumer, o.list, o.format, o.known, o.streams.ErrOut)
		if err != nil {
			return err
		}
	}
	if err := o.printAll(&now, notice); err != nil || !o.watch {
		return err
	}
	o.printed()
	return live.Follow(ctx, o.period, o.streams.ErrOut, now, o.read, o.printChanges)
}

// printAll prints the offers, and before and after a table the notice, unless it is empty.
func (o *offersOptions) printAll(now *offersAnswer, notice string) error {
	p := output.For(o.streams.Out)
	if output.IsValue(o.format) {
		return p.Value(o.format, now.value)
	}
	unknown.Print(notice, o.streams.ErrOut)
	defer unknown.Print(notice, o.streams.ErrOut)
	if len(now.rows) == 0 {
		fmt.Fprintln(o.streams.ErrOut, o.nothing())
		return nil
	}
	rows := inOrder(now.rows, o.order, o.resource)
	if c := now.consumer; c != nil && len(c.Offers) == 0 && o.format != output.Wide {
		defer fmt.Fprintln(o.streams.ErrOut, output.OneLine(c.ClusterID+" has no offer: "+c.Because+"."))
	}
	if o.byResource || o.watch || o.format == output.Wide {
		return p.Table(byResource(rows, o.format))
	}
	return p.Table(byClass(rows, p.Width))
}

// nothing says why there is no row.
func (o *offersOptions) nothing() string {
	text := "No offers: no ResourcePolicy offers " + cmp.Or(o.resource, "anything")
	switch {
	case !o.oneClass:
		return text + "."
	case o.class == "":
		return text + " in the class without a name."
	}
	return text + " in class " + o.class + "."
}

// printChanges prints what differs between two answers, if anything.
func (o *offersOptions) printChanges(before, after *offersAnswer) error {
	p := output.For(o.streams.Out)
	lines := o.compare(before, after, p.Width, p.Color)
	if len(lines) == 0 {
		return nil
	}
	defer o.printed()
	return p.Answer(o.format, after.value, lines...)
}
