package providers

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/exit"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/live"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/peering"
	"proffer.dev/proffer/internal/source/federation"
)

// shown is what -o json and -o yaml print.
type shown struct {
	Brokers []broker `json:"brokers"`
}

// broker is a provider that lets this cluster choose, or that cannot be asked.
type broker struct {
	ClusterID string `json:"clusterID"`
	// Choice is nil if there is none.
	Choice  *federation.Choice `json:"choice,omitempty"`
	Problem string             `json:"problem,omitempty"`

	err error
	at  federation.Broker
}

// ask reads the choice at one provider.
func ask(ctx context.Context, c *peering.Client, id federation.Identity) broker {
	b := broker{ClusterID: peering.ShownID(id.Provider)}
	if b.at, b.err = federation.NewBroker(ctx, id, c.Secrets, c.Limit); b.err != nil {
		b.err = peering.Explain(id, b.err)
	} else {
		b.Choice, b.err = b.at.Choice(ctx)
	}
	if b.err != nil {
		b.Problem = output.OneLine(b.err.Error())
	}
	return b
}

// show prints the providers and then, with --watch, each change.
func (o *options) show(ctx context.Context) error {
	done := output.Slow(o.streams.ErrOut, "Asking the brokers")
	all, err := o.brokers(ctx)
	done()
	if err != nil {
		return err
	}
	warn(o.streams.ErrOut, nil, all)
	if err := o.print(all); err != nil {
		return err
	}
	if o.watch {
		return live.Follow(ctx, o.period, o.streams.ErrOut, all, o.brokers, o.printChanges)
	}
	if slices.ContainsFunc(all, func(b broker) bool { return b.err != nil }) {
		return exit.With(1)
	}
	return nil
}

// warn prints each problem that was not there before.
func warn(to io.Writer, before, now []broker) {
	for _, b := range now {
		if b.Problem != "" && !slices.ContainsFunc(before, func(was broker) bool {
			return was.ClusterID == b.ClusterID && was.Problem == b.Problem
		}) {
			fmt.Fprintf(to, "warning: %s: %s\n", b.ClusterID, b.Problem)
		}
	}
}

// print prints the table and the state of each choice, or the value.
func (o *options) print(all []broker) error {
	p := output.For(o.streams.Out)
	if output.IsValue(o.format) {
		return p.Value(o.format, shown{all})
	}
	var lines []string
	if t := table(all); len(t.Rows) > 0 {
		lines = append(t.Lines(p.Width, p.Color), "")
	}
	for i := range all {
		lines = append(lines, state(&all[i])...)
	}
	return p.Lines(lines...)
}

var header = []string{"BROKER", "PROVIDER", "CHOSEN", "UPTIME", "LATENCY", "PRICE", "REMAINING", "WHY"}

// table has a row for each provider of each broker.
func table(all []broker) *output.Table {
	t := &output.Table{Header: header, Text: true}
	for i := range all {
		if all[i].Choice == nil {
			continue
		}
		s := &all[i].Choice.Status
		for j := range s.Providers {
			t.Add(cells(all[i].ClusterID, &s.Providers[j], s.Currency)...)
		}
	}
	return t
}

func cells(broker string, p *v1alpha1.ChoiceOfProvider, currency v1alpha1.Currency) []string {
	unit := func(value, unit string) string {
		if value == "" {
			return ""
		}
		return value + unit
	}
	chosen, why := "no", p.Because
	if p.Chosen {
		chosen = "yes"
	} else if p.RejectedBy != "" {
		why = string(p.RejectedBy) + ": " + why
	}
	var prices, remaining output.List
	for _, r := range p.Resources {
		prices.Add(r.Name, r.Price)
		remaining.Add(r.Name, r.Remaining)
	}
	price := prices.String()
	if currency != "" && price != "" {
		price += " " + string(currency)
	}
	return []string{
		broker, string(p.ClusterID), chosen, unit(p.UptimePercent, "%"), unit(p.LatencyMs, "ms"),
		price, remaining.String(), why,
	}
}

// readyOf returns the condition Ready, nil if the broker has not set it.
func readyOf(c *federation.Choice) *metav1.Condition {
	return meta.FindStatusCondition(c.Status.Conditions, "Ready")
}

// state says what a broker makes of the choice, and of when that is.
func state(b *broker) []string {
	c := b.Choice
	switch {
	case b.err != nil:
		return nil
	case c == nil:
		return []string{b.ClusterID + ": no ProviderChoice, so the broker chooses. To see its providers: " +
			"kubectl proffer providers choose --all --broker " + b.ClusterID}
	}
	head := b.ClusterID + ": not answered yet"
	if ready := readyOf(c); ready != nil {
		head = fmt.Sprintf("%s: %s: %s", b.ClusterID, ready.Reason, ready.Message)
		if c.Status.ObservedGeneration < c.Generation {
			head += " (before the latest change)"
		}
	}
	lines := []string{head, "  set: " + wish(&c.Spec)}
	if at := c.Status.ObservedTime; at != nil {
		lines = append(lines, "  measured: "+timeText(at))
	}
	if len(c.Status.Unknown) > 0 {
		lines = append(lines, "  not among its providers: "+joined(c.Status.Unknown, ", "))
	}
	for _, d := range c.Status.Draining {
		line := fmt.Sprintf("  draining: %s at %s", d.Namespace, d.Provider)
		if d.Until != nil {
			line += " until " + timeText(d.Until)
		}
		lines = append(lines, line+": "+d.Because)
	}
	return lines
}

func timeText(t *metav1.Time) string { return t.UTC().Format(time.RFC3339) }

// printChanges prints what differs between two answers, if anything.
func (o *options) printChanges(before, after *[]broker) error {
	warn(o.streams.ErrOut, *before, *after)
	for i := range *after { // One that cannot be asked for a while is compared with what it was before.
		b := &(*after)[i]
		for _, was := range *before {
			if b.err != nil && was.ClusterID == b.ClusterID {
				b.Choice = was.Choice
			}
		}
	}
	p := output.For(o.streams.Out)
	lines := changes(*before, *after, p.Width, p.Color)
	if len(lines) > 0 {
		lines = append([]string{time.Now().Format(time.TimeOnly)}, lines...)
	}
	return p.Lines(lines...)
}

// changes returns the rows that differ, with "old -> new" in each cell that does, and the states that differ. A broker
// that could not be asked has no changes. Reasons alone make no difference, nor does the time of the measurement.
func changes(before, after []broker, width int, color bool) (lines []string) {
	t := &output.Table{Header: header, Text: true}
	for i := range after {
		b := &after[i]
		at := slices.IndexFunc(before, func(was broker) bool { return was.ClusterID == b.ClusterID })
		was := &broker{ClusterID: b.ClusterID}
		if at >= 0 {
			was = &before[at]
		}
		if b.err != nil {
			continue
		}
		t.Rows = append(t.Rows, changedRows(table([]broker{*was}).Rows, table([]broker{*b}).Rows)...)
		lasting := func(b *broker) []string {
			return slices.DeleteFunc(state(b), func(line string) bool { return strings.HasPrefix(line, "  measured: ") })
		}
		if now := lasting(b); !slices.Equal(lasting(was), now) {
			lines = append(lines, now...)
		}
	}
	return append(t.Body(width, color), lines...)
}

// changedRows compares the rows of one broker, by provider.
func changedRows(before, after []output.Row) (changed []output.Row) {
	const key, why = 1, 7
	id := func(r output.Row) string { return r.Cells[key] }
	none := func(of output.Row) output.Row {
		cells := make([]string, len(of.Cells))
		copy(cells, of.Cells[:key+1])
		return output.Row{Cells: cells}
	}
	for was, is := range live.Compare(before, after, id, none) {
		cells, differ := slices.Clone(is.Cells), false
		for i := range cells {
			text, changes := live.Change(was.Cells[i], is.Cells[i])
			if i != why {
				cells[i], differ = text, differ || changes
			}
		}
		if differ {
			changed = append(changed, output.Row{Cells: cells})
		}
	}
	return changed
}
