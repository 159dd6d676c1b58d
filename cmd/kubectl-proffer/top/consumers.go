package top

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// inClass is a consumer in a class.
type inClass struct{ consumer, class string }

// consumerRow is one resource of a consumer in a class.
type consumerRow struct {
	Consumer string `json:"consumer"`
	Class    string `json:"class"`
	Resource string `json:"resource"`
	// Offered is absent if a ResourceSlice asks for what is not offered.
	Offered *resource.Quantity `json:"offered,omitempty"`
	Granted *resource.Quantity `json:"granted"`
	Used    *resource.Quantity `json:"used"`
	// UsedPercent is the part of the offer that is used, absent without an offer.
	UsedPercent *int `json:"usedPercent,omitempty"`
	// Waiting is what the ResourceSlices have asked for and were not granted.
	Waiting *resource.Quantity `json:"waiting"`
}

// consumerRows has a row for each consumer, class and resource. The consumers that use most of an
// offer come first.
func consumerRows(offers *rest.Offers, world *rest.World) []consumerRow {
	waiting := waitingFor(world.Slices)
	rows := []consumerRow{}
	add := func(key inClass, o *rest.Offer) {
		waiting := waiting[key]
		for _, name := range resources(o.Resources, waiting) {
			row := consumerRow{
				Consumer: key.consumer, Class: key.class, Resource: name, Offered: o.Resources.Of(name),
				Granted: o.Granted.OrZero(name), Used: o.Used.OrZero(name), Waiting: waiting.OrZero(name),
			}
			row.UsedPercent = percent(row.Used, row.Offered)
			rows = append(rows, row)
		}
	}
	for i := range offers.Consumers {
		c := &offers.Consumers[i]
		for k := range c.Offers {
			key := inClass{c.ClusterID, c.Offers[k].Class}
			add(key, &c.Offers[k])
			delete(waiting, key)
		}
	}
	// Slices that wait in a class that offers them nothing.
	for key := range waiting {
		add(key, &rest.Offer{})
	}
	slices.SortFunc(rows, func(a, b consumerRow) int {
		return cmp.Or(cmp.Compare(a.Consumer, b.Consumer),
			cmp.Compare(output.Class(a.Class), output.Class(b.Class)), cmp.Compare(a.Resource, b.Resource))
	})
	return arranged(rows, consumerOrders, "", "")
}

func consumersTable(rows []consumerRow, format string) *output.Table {
	t := &output.Table{Header: []string{"CONSUMER", "CLASS", "RESOURCE", "OFFERED", "GRANTED", "USED", "USED%", "WAITING"}}
	for i := range rows {
		r := &rows[i]
		amounts := output.Notation(format, "")(r.Resource, r.Offered, r.Granted, r.Used, r.Waiting)
		t.Add(r.Consumer, output.Class(r.Class), r.Resource,
			amounts[0], amounts[1], amounts[2], percentText(r.UsedPercent), amounts[3])
	}
	return t
}

// waitingFor returns what slices have asked for and were not granted.
func waitingFor(of []rest.WorldSlice) perKey[inClass] {
	waiting := perKey[inClass]{}
	for i := range of {
		s := &of[i]
		for name, asked := range s.Asked {
			missing := asked.DeepCopy()
			missing.Sub(s.Granted[name])
			if positive(&missing) {
				add(waiting.sumsFor(inClass{s.Consumer, s.Class}), rest.Amounts{name: missing})
			}
		}
	}
	return waiting
}
