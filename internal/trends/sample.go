package trends

import (
	"cmp"
	"maps"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// Subject is one resource of a pool or of a consumer's offer. Either Policy or Consumer is set.
type Subject struct {
	// Policy names the pool's policy.
	Policy string
	// Consumer is a cluster ID, and Class the class of its offer.
	Consumer, Class string
	Resource        string
}

// Sample holds the amounts of a subject at one time: thousandths of a core, bytes or units.
type Sample struct {
	Subject
	// Capacity is the pool; a consumer has none. Committed is what counts as given out of the pool or, of a
	// consumer, what it was granted. Used is what pods request.
	Capacity, Committed, Used int64
}

// SamplesOf returns what a snapshot shows, what matters most first: the pools in force by resource and policy, and the
// consumers that were granted or use something, each with cpu and memory.
func SamplesOf(s *table.Snapshot) (pools, consumers []Sample) {
	used, explainer := map[string]capacity.Amounts{}, s.Explainer()
	for id := range s.Entries.All {
		for _, o := range offer.Shown(explainer.Of(id)) {
			o.AddUse(used)
			for _, name := range []string{capacity.CPU, capacity.Memory} {
				if granted, uses := o.Granted[name], o.Used[name]; granted > 0 || uses > 0 {
					subject := Subject{Consumer: id, Class: o.Class, Resource: name}
					consumers = append(consumers, Sample{Subject: subject, Committed: granted, Used: uses})
				}
			}
		}
	}
	for i := range s.Policies {
		p := &s.Policies[i]
		report := s.Reports[p.Name]
		if report == nil || p.Parsed == nil || p.Parsed.DryRun {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(report.Capacity)) {
			if report.Capacity[name] == 0 {
				continue
			}
			pools = append(pools, Sample{
				Subject{Policy: p.Name, Resource: name}, report.Capacity[name], report.Committed[name], used[p.Name][name],
			})
		}
	}
	// Of what is beyond the bounds of the ring nothing is kept: what most pods need comes first, and who was granted
	// something comes before those who only use, which are anybody's pods.
	slices.SortStableFunc(pools, func(a, b Sample) int { return cmp.Compare(a.rank(), b.rank()) })
	slices.SortStableFunc(consumers, func(a, b Sample) int {
		return cmp.Compare(min(b.Committed, 1), min(a.Committed, 1))
	})
	return pools, consumers
}

// rank is the place of a pool's resource: cpu, memory and pods come first.
func (s *Sample) rank() int {
	first := []string{capacity.CPU, capacity.Memory, capacity.Pods}
	if i := slices.Index(first, s.Resource); i >= 0 {
		return i
	}
	return len(first)
}
