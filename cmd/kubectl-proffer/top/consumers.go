package top

import (
	"cmp"
	"slices"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// inClass is a consumer in a class.
type inClass struct{ consumer, class string }

// consumersTable has a row for each consumer, class and resource. The consumers that use most of an
// offer come first. A consumer waits for what its ResourceSlices have asked for and were not
// granted.
func consumersTable(offers *rest.Offers, world *rest.World) *output.Table {
	t := &output.Table{Header: []string{"CONSUMER", "CLASS", "RESOURCE", "OFFERED", "GRANTED", "USED", "USED%", "WAITING"}}
	waiting := waitingFor(world.Slices)
	most := map[string]float64{}
	var rows [][]string
	add := func(key inClass, o *rest.Offer) {
		offered, granted, used, waiting := sums(o.Resources), sums(o.Granted), sums(o.Used), waiting[key]
		for _, name := range resources(offered, waiting) {
			most[key.consumer] = max(most[key.consumer], share(used, offered, name))
			rows = append(rows, []string{
				key.consumer, output.Class(key.class), name, offered.text(name), granted.text(name), used.text(name),
				percent(used, offered, name), waiting.text(name),
			})
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
	slices.SortFunc(rows, func(a, b []string) int {
		return cmp.Or(cmp.Compare(most[b[0]], most[a[0]]), slices.Compare(a, b))
	})
	for _, cells := range rows {
		t.Add(cells...)
	}
	return t
}

// share returns how much of the offer is used, 0 without an offer.
func share(used, offered sums, name string) float64 {
	u, o := used[name], offered[name]
	if o.Sign() <= 0 {
		return 0
	}
	return u.AsApproximateFloat64() / o.AsApproximateFloat64()
}

// waitingFor returns what slices have asked for and were not granted.
func waitingFor(of []rest.WorldSlice) perKey[inClass] {
	waiting := perKey[inClass]{}
	for i := range of {
		s := &of[i]
		for name, asked := range s.Asked {
			missing := asked.DeepCopy()
			missing.Sub(s.Granted[name])
			if missing.Sign() > 0 {
				waiting.sumsFor(inClass{s.Consumer, s.Class}).addOne(name, missing)
			}
		}
	}
	return waiting
}
