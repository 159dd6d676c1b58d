package offer

import (
	"slices"
	"strings"
)

// knownConsumers returns all known consumers, sorted by ID: those that are listed, have pods or
// grants, or are named by a policy. onlyNamed are those that are known for the last reason alone.
func knownConsumers(in *Input, x *policyIndex) (all []Consumer, onlyNamed map[string]struct{}) {
	listed := in.Consumers
	if !slices.IsSortedFunc(listed, byID) {
		listed = slices.SortedFunc(slices.Values(listed), byID)
	}
	isListed := func(id string) bool {
		_, found := slices.BinarySearchFunc(listed, Consumer{ID: id}, byID)
		return found
	}
	holders, onlyNamed := map[string]struct{}{}, map[string]struct{}{}
	for id := range in.View.Used.All {
		if !isListed(id) {
			holders[id] = struct{}{}
		}
	}
	for _, grants := range in.Grants {
		for id := range grants {
			if !isListed(id) {
				holders[id] = struct{}{}
			}
		}
	}
	for id := range x.named {
		if _, holds := holders[id]; !holds && !isListed(id) {
			onlyNamed[id] = struct{}{}
		}
	}
	if len(holders)+len(onlyNamed) == 0 {
		return listed, onlyNamed
	}
	all = slices.Clone(listed)
	for id := range holders {
		all = append(all, Consumer{ID: id})
	}
	for id := range onlyNamed {
		all = append(all, Consumer{ID: id})
	}
	slices.SortFunc(all, byID)
	return all, onlyNamed
}

func byID(a, b Consumer) int { return strings.Compare(a.ID, b.ID) }

// consumer returns a consumer by its ID, with its labels if it is known.
func (e *evaluation) consumer(id string) Consumer {
	c := Consumer{ID: id}
	if i, found := slices.BinarySearchFunc(e.known, c, byID); found {
		return e.known[i]
	}
	return c
}
