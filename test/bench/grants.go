package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
)

// measureGrants measures what ResourceSlices add to an evaluation.
func measureGrants(ctx context.Context, o options, r *report, _ io.Writer) error {
	s, many, n := size{nodes: 5_000, pods: 50_000, consumers: 2_000, busy: 200}, 10_000, 21
	if o.short {
		s, many, n = size{nodes: 20, pods: 200, consumers: 20, busy: 2}, 100, 2
	}
	variants := allocations(s, many)
	costs, err := rounds(ctx, n, variants)
	if err != nil {
		return err
	}
	t := r.section(fmt.Sprintf("Grants: %s slices, %s", thousands(many), s), append([]string{"what"}, costColumns...)...)
	t.describe(variants, costs)
	r.ratio("one allocation of grants, nothing to change", "a pass that only sorts and adds up the slices", beside(costs[settled], costs[plain], cpu))
	r.ratio("one allocation, a tenth asks for more", "nothing to change", beside(costs[asking], costs[settled], cpu))
	r.ratio("terms, allocation and evaluation", "the allocation alone", beside(costs[whole], costs[settled], cpu))
	return nil
}

// The variants of grants.
const (
	plain = iota
	settled
	asking
	alone
	whole
)

func allocations(s size, many int) []variant {
	policies := newPolicies(s.consumers)
	for i := range policies {
		policies[i].Class = fmt.Sprint("class-", policies[i].Class) // All of them have slices.
	}
	in := offer.Input{Policies: policies, Consumers: newConsumers(s.consumers), View: newLedger(s).View(offer.Selections(policies), offer.ResourceNames(policies)...)}
	terms := offer.NewTerms(in)
	all := newSlices(terms, policies, s.consumers, many)
	more := slices.Clone(all)
	for i := 0; i < len(more); i += 10 {
		more[i].Request = capacity.Amounts{capacity.CPU: 6000, capacity.Memory: 12 * gi, capacity.Pods: 15}
	}
	granted := in
	granted.Grants = grantsOf(all)
	withSlices, without := offer.Evaluate(granted), offer.Evaluate(in)
	return []variant{
		plain:   {name: "sort the slices and add them up", times: 4, op: func() { addUp(all) }},
		settled: {name: "allocate, nothing to change", times: 4, op: func() { grant.Allocate(terms, all) }},
		asking:  {name: "allocate, a tenth asks for more", times: 4, op: func() { grant.Allocate(terms, more) }},
		alone:   {name: "Evaluate without slices, nothing changed", times: 4, op: func() { without = offer.Evaluate(in.After(without)) }},
		whole: {name: "terms, allocate, Evaluate, nothing changed", times: 4, op: func() {
			grant.Allocate(offer.NewTerms(in), all)
			withSlices = offer.Evaluate(granted.After(withSlices))
		}},
	}
}

// newSlices are of all classes, as they stand once all answers are written.
func newSlices(terms *offer.Terms, policies []offer.Policy, consumers, many int) []grant.Slice {
	all := make([]grant.Slice, many)
	for i := range all {
		id := consumerID(i % consumers)
		all[i] = grant.Slice{
			Key: fmt.Sprintf("liqo-tenant-%s/slice-%d", id, i/consumers), Consumer: id, Class: policies[(i/consumers*policiesPerClass)%len(policies)].Class,
			Created: int64(1_700_000_000 + i*7919%many), Request: capacity.Amounts{capacity.CPU: 4000, capacity.Memory: 8 * gi, capacity.Pods: 10},
		}
	}
	for changed := true; changed; {
		changed = false
		for i, a := range grant.Allocate(terms, all) {
			s := &all[i]
			if a.Verdict == grant.Accept && (s.Granted == nil || !sameAmounts(s.Granted, a.Lines)) {
				s.Granted, s.GrantedBy, changed = a.Amounts(), a.Policy.Name, true
			}
		}
	}
	return all
}

func sameAmounts(granted capacity.Amounts, lines []grant.Line) bool {
	return !slices.ContainsFunc(lines, func(l grant.Line) bool { return l.Granted != granted[l.Resource] })
}

// addUp is the least that anything could do that decides on slices in the order of their age: sort them, and add up what each class has
// granted and is asked for.
func addUp(all []grant.Slice) map[string]capacity.Amounts {
	sorted := make([]*grant.Slice, len(all))
	for i := range all {
		sorted[i] = &all[i]
	}
	slices.SortFunc(sorted, func(a, b *grant.Slice) int {
		if order := cmp.Compare(a.Created, b.Created); order != 0 {
			return order
		}
		return cmp.Compare(a.Key, b.Key)
	})
	sums := map[string]capacity.Amounts{}
	for _, s := range sorted {
		sum := sums[s.Class]
		if sum == nil {
			sum = capacity.Amounts{}
			sums[s.Class] = sum
		}
		for name, asked := range s.Request {
			sum[name] = capacity.Sum(sum[name], max(asked, s.Granted[name]))
		}
	}
	return sums
}

// grantsOf are the grants as an evaluation takes them.
func grantsOf(all []grant.Slice) map[string]map[string]capacity.Amounts {
	out := map[string]map[string]capacity.Amounts{}
	for i := range all {
		s := &all[i]
		if s.Granted == nil {
			continue
		}
		if out[s.Class] == nil {
			out[s.Class] = map[string]capacity.Amounts{}
		}
		sum := out[s.Class][s.Consumer]
		if sum == nil {
			sum = capacity.Amounts{}
			out[s.Class][s.Consumer] = sum
		}
		for name, amount := range s.Granted {
			sum[name] = capacity.Sum(sum[name], amount)
		}
	}
	return out
}
