package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/visible"
)

// className names a class as kubectl proffer does.
func className(name string) string {
	if name == "" {
		return "<unnamed>"
	}
	return visible.Class(name)
}

// none stands for what there is not.
const none = "–"

// amountsRow holds the amounts of one resource of an offer.
type amountsRow struct {
	Class, Resource, Policy string
	Offered, Granted, Used  string
	Why                     string
}

// heldRows returns a row for each resource of an offer to a consumer.
func heldRows(o rest.Offer) []amountsRow { return rowsOfOffer(&o, rest.Amounts.OrZero) }

// defaultRows is heldRows for the default offer, of which nobody has or uses anything.
func defaultRows(o rest.Offer) []amountsRow { return rowsOfOffer(&o, rest.Amounts.Of) }

// rowsOfOffer returns a row for each resource. The held is the amount that a consumer was granted, or uses.
func rowsOfOffer(o *rest.Offer, held func(rest.Amounts, string) *resource.Quantity) []amountsRow {
	var rows []amountsRow
	for _, name := range resourcesOf(o.Resources) {
		written, why := rest.Explanation(o.Because, name)
		amounts := quantity.Like(written)(name, o.Resources.Of(name), held(o.Granted, name), held(o.Used, name))
		rows = append(rows, amountsRow{
			Class: o.Class, Resource: name, Policy: o.Policy, Offered: cmp.Or(amounts[0], none),
			Granted: cmp.Or(amounts[1], none), Used: cmp.Or(amounts[2], none), Why: cmp.Or(why, none),
		})
	}
	return rows
}

// resourcesOf returns the names of the resources, sorted.
func resourcesOf(amounts rest.Amounts) []string { return slices.Sorted(maps.Keys(amounts)) }

// sliceAmounts are the amounts of a ResourceSlice.
type sliceAmounts struct{ Asked, Granted string }

// amountsOfSlice writes valid amounts for people, and what else a ResourceSlice asks for as its consumer wrote it. What
// is granted is with the node of its seat.
func amountsOfSlice(s rest.Slice) sliceAmounts {
	amounts := quantity.Notation(quantity.Human).Lists(s.Asked, s.Granted)
	asked := maps.Clone(amounts[0])
	for name, written := range s.Written {
		if _, valid := asked[name]; !valid {
			asked[name] = written
		}
	}
	granted := listed(amounts[1])
	if on := s.On(); on != "" {
		granted += " " + on
	}
	return sliceAmounts{cmp.Or(strings.Join(visible.Written(asked), ", "), none), granted}
}

// requests writes the requests of a pod as in "cpu=2, memory=4Gi".
func requests(amounts rest.Amounts) string {
	return listed(quantity.Notation(quantity.Human).Lists(amounts)[0])
}

// change is an amount, or a list of amounts, before and after a change.
type change struct{ Now, Then string }

// offerChange writes one amount. A text that is no amount stays as it is.
func offerChange(c rest.OfferChange) change {
	written, _ := rest.Explanation([]string{c.Because}, c.Resource)
	texts := quantity.Like(written).Texts(c.Resource, c.Then, c.Now)
	return change{Now: cmp.Or(texts[1], none), Then: cmp.Or(texts[0], none)}
}

// grantChange writes the amounts of a ResourceSlice.
func grantChange(c rest.SliceChange) change {
	lists := quantity.Notation(quantity.Human).Lists(c.Now, c.Then)
	return change{Now: listed(lists[0]), Then: listed(lists[1])}
}

// listed returns amounts as in "cpu=2, memory=4Gi", 0 if there are none.
func listed(amounts map[string]string) string { return cmp.Or(pairs(amounts), "0") }

// labelled returns labels as in "region=eu-south, tier=gold".
func labelled(labels v1alpha1.Labels) string { return cmp.Or(pairs(labels), none) }

func pairs[V ~string](of map[string]V) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, name+"="+string(of[name]))
	}
	return strings.Join(all, ", ")
}

// count writes a number with its noun, as in "2 nodes".
func count(n any, noun string) string {
	if p, ok := n.(*int); ok {
		n = *p
	}
	text := fmt.Sprintf("%d %s", n, noun)
	if !strings.HasPrefix(text, "1 ") {
		text += "s"
	}
	return text
}

// moment writes a time for people, machine for the attribute of <time>.
func moment(t time.Time) string  { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
func machine(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// leaveOut reports whether some policy leaves nodes out.
func leaveOut(policies []rest.Candidate) bool {
	return slices.ContainsFunc(policies, func(p rest.Candidate) bool { return p.LeftOut != nil })
}
