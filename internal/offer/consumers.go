package offer

import (
	"slices"
	"strings"
)

// knownConsumer is a consumer that is listed, has pods or grants, is named by a policy, or gives nodes
// of a pool.
type knownConsumer struct {
	Consumer
	// listed is set if the consumer is one of Input.Consumers.
	listed bool
}

// knownConsumers returns all known consumers, sorted by ID.
func knownConsumers(in *Input, x *policyIndex) []knownConsumer {
	listed := in.Consumers
	if !slices.IsSortedFunc(listed, byID) {
		listed = slices.SortedFunc(slices.Values(listed), byID)
	}
	var others []string
	add := func(id string) {
		if _, found := slices.BinarySearchFunc(listed, Consumer{ID: id}, byID); !found {
			others = append(others, id)
		}
	}
	for id := range in.View.Used.All {
		add(id)
	}
	for _, grants := range in.Grants {
		for id := range grants {
			add(id)
		}
	}
	for id := range x.naming {
		add(id)
	}
	for id := range x.giving {
		add(id)
	}
	slices.Sort(others)
	others = slices.Compact(others)
	all := make([]knownConsumer, 0, len(listed)+len(others))
	for _, c := range listed {
		for len(others) > 0 && others[0] < c.ID {
			all, others = append(all, knownConsumer{Consumer: Consumer{ID: others[0]}}), others[1:]
		}
		all = append(all, knownConsumer{Consumer: c, listed: true})
	}
	for _, id := range others {
		all = append(all, knownConsumer{Consumer: Consumer{ID: id}})
	}
	return all
}

// Known reports whether a consumer is listed, has pods or grants, is named by a policy, or gives nodes
// of a pool. A consumer that is only owed an explicit 0 is not known.
func (r *Result) Known(id string) bool { return r.Entries.Of(id) != nil }

// scopeOf returns the known consumers that a policy is for, sorted.
func (e *evaluation) scopeOf(p *Policy) []string {
	var ids []string
	for _, c := range e.known {
		if p.Consumers.Includes(c.Consumer) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func byID(a, b Consumer) int { return strings.Compare(a.ID, b.ID) }

// consumer returns a consumer by its ID, with its labels if it is known.
func (e *evaluation) consumer(id string) Consumer {
	i, found := slices.BinarySearchFunc(e.known, id, func(c knownConsumer, id string) int {
		return strings.Compare(c.ID, id)
	})
	if found {
		return e.known[i].Consumer
	}
	return Consumer{ID: id}
}
