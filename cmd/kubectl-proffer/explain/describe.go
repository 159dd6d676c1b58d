package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// subject names a consumer, one of its classes, or one resource in a class.
type subject struct {
	consumer string
	// class and resource are nil for all.
	class, resource *string
}

// parseSubject parses CONSUMER[/CLASS[/RESOURCE]]. The class may be empty, and the name of a
// resource may have slashes.
func parseSubject(text string) (subject, error) {
	parts := strings.SplitN(text, "/", 3)
	s := subject{consumer: parts[0]}
	if s.consumer == "" {
		return s, fmt.Errorf("%q names no consumer: write CONSUMER, CONSUMER/CLASS or CONSUMER/CLASS/RESOURCE", text)
	}
	if len(parts) > 1 {
		s.class = new(output.ClassOf(parts[1]))
	}
	if len(parts) > 2 {
		if parts[2] == "" {
			return s, fmt.Errorf(
				"%q names no resource after the class: write CONSUMER/CLASS/RESOURCE, such as rome/gold/cpu", text)
		}
		s.resource = &parts[2]
	}
	return s, nil
}

func (s subject) hasClass(class string) bool { return s.class == nil || *s.class == class }

// narrow keeps what the subject is about. It is an error if the consumer is offered nothing of it.
func (s subject) narrow(c *rest.Consumer) error {
	classes := output.Texts(c.Offers, func(o rest.Offer) string { return output.Class(o.Class) })
	c.Offers = slices.DeleteFunc(c.Offers, func(o rest.Offer) bool { return !s.hasClass(o.Class) })
	if s.class != nil && len(c.Offers) == 0 {
		return fmt.Errorf("%s is offered nothing in class %s, only in: %s",
			s.consumer, output.Class(*s.class), cmp.Or(strings.Join(classes, ", "), "no class"))
	}
	if d := c.Details; d != nil {
		d.Policies = slices.DeleteFunc(d.Policies, func(p rest.Candidate) bool { return !s.hasClass(p.Class) })
		d.Slices = slices.DeleteFunc(d.Slices, func(x rest.Slice) bool { return !s.hasClass(x.Class) })
	}
	if s.resource == nil {
		return nil
	}
	o := &c.Offers[0]
	if _, ok := o.Resources[*s.resource]; !ok {
		return fmt.Errorf("%s is not offered %s in class %s, only: %s", s.consumer, *s.resource, output.Class(*s.class),
			cmp.Or(strings.Join(slices.Sorted(maps.Keys(o.Resources)), ", "), "nothing"))
	}
	o.Narrow(*s.resource)
	return nil
}

// description prints sections to lines of at most this width, 0 for no limit.
type description struct {
	format string
	width  int
	lines  []string
}

// describe explains a consumer. The amounts are exact in format output.Wide.
func describe(c *rest.Consumer, format string, width int) []string {
	d := &description{format: format, width: width}
	d.field("Consumer", c.ClusterID)
	if c.Known {
		d.field("Known", "yes")
	} else {
		d.field("Known", "no: it gets the default offer")
	}
	if c.Details != nil {
		d.field("Evaluated", fmt.Sprintf("%s, revision %d", c.Details.Time.UTC().Format(time.RFC3339), c.Details.Revision))
	}
	if len(c.Offers) == 0 {
		d.field("Offers", "none: "+c.Because)
	}
	for i := range c.Offers {
		d.offer(&c.Offers[i])
	}
	if c.Details != nil {
		d.details(c.Details)
	}
	return d.lines
}

func (d *description) field(name, value string) {
	d.lines = append(d.lines, fmt.Sprintf("%-11s %s", name+":", value))
}

func (d *description) offer(o *rest.Offer) {
	by := "policy " + o.Policy
	switch {
	case o.Policy == "":
		by = "withdrawn, no policy decides"
	case o.Override != nil:
		by += fmt.Sprintf(", override %d", *o.Override)
	}
	t := &output.Table{Header: []string{"RESOURCE", "OFFERED", "GRANTED", "USED", "WHY"}, Text: true}
	for _, resource := range slices.Sorted(maps.Keys(o.Resources)) {
		written, why := rest.Explanation(o.Because, resource)
		amounts := output.Notation(d.format, written)(resource,
			o.Resources.Of(resource), o.Granted.OrZero(resource), o.Used.OrZero(resource))
		t.Add(append(append([]string{resource}, amounts...), why)...)
	}
	d.section(fmt.Sprintf("Offer in class %s (%s)", output.Class(o.Class), by), t)
}

func (d *description) details(details *rest.Details) {
	policies := &output.Table{Header: []string{"CLASS", "POLICY", "DECIDES", "WHY NOT"}, Text: true}
	for _, p := range details.Policies {
		policies.Add(output.Class(p.Class), p.Policy, yesNo(p.Decides), p.Because)
	}
	d.section("Policies for this consumer", policies)

	nodes := &output.Table{Header: []string{"CLASS", "POLICY", "NODES", "BY FILTER", "WHICH"}, Text: true}
	for _, p := range details.Policies {
		if p.LeftOut != nil {
			nodes.Add(output.Class(p.Class), p.Policy,
				strconv.Itoa(p.LeftOut.Nodes), strconv.Itoa(p.LeftOut.Filtered), p.LeftOut.String())
		}
	}
	if len(nodes.Rows) > 0 {
		d.section("Nodes that policies leave out", nodes)
	}

	// These nodes have lost something which still counts.
	grace := &output.Table{Header: []string{"NODE", "IS"}, Text: true}
	for _, n := range details.InGrace {
		grace.Add(n.Name, n.Why)
	}
	if len(grace.Rows) > 0 {
		d.section("Nodes in their grace", grace)
	}

	uncounted := &output.Table{Header: []string{"RESOURCE", "NODE", "WHY"}, Text: true}
	for _, u := range details.Uncounted {
		uncounted.Add(u.Resource, cmp.Or(u.Node, "-"), u.Why)
	}
	if len(uncounted.Rows) > 0 {
		d.section("Devices that are not offered", uncounted)
	}

	d.section("ResourceSlices", d.sliceTable(details.Slices))

	pods := &output.Table{Header: []string{"NODE", "UID", "REQUESTS"}}
	for _, p := range details.Pods {
		requests := output.Notation(d.format, "").Lists(p.Requests)[0]
		pods.Add(p.Node, p.UID, cmp.Or(output.Pairs(requests), "0"))
	}
	d.section("Pods that count as its own", pods)
	if len(details.Truncated) > 0 {
		d.lines = append(d.lines, "", "The operator has cut the lists: "+strings.Join(details.Truncated, ", "))
	}
}

// sliceTable has the node of each seat beside the amounts or, if that is too wide, only in the explanation.
func (d *description) sliceTable(all []rest.Slice) *output.Table {
	t := &output.Table{
		Header: []string{"NAMESPACE", "NAME", "CLASS", "ASKED", "GRANTED", "ACCEPTED", "WHY"}, Text: true,
	}
	plain := &output.Table{Header: t.Header, Text: true}
	for i := range all {
		s := &all[i]
		amounts := output.Notation(d.format, "").Lists(s.Asked, s.Granted)
		row := []string{
			s.Namespace, s.Name, output.Class(s.Class), output.Asked(s, d.format, amounts[0]),
			cmp.Or(output.Pairs(amounts[1]), "0"), yesNo(s.Accepted), s.Because,
		}
		plain.Add(row...)
		if on := s.On(); on != "" {
			row = slices.Clone(row)
			row[4] += " " + on
		}
		t.Add(row...)
	}
	if !t.Fits(d.width - len(indent)) {
		return plain
	}
	return t
}

// indent is before the lines of a section.
const indent = "  "

// section appends a title and an indented table, or the word none.
func (d *description) section(title string, t *output.Table) {
	if len(t.Rows) == 0 {
		d.lines = append(d.lines, "", title+": none")
		return
	}
	d.lines = append(d.lines, "", title+":")
	for _, line := range t.Lines(max(0, d.width-len(indent)), false) {
		d.lines = append(d.lines, indent+line)
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
