package rehearse

import (
	"maps"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// Requests are ResourceSlices outside of the operator: what they ask for and have, but not the gates,
// the records and the writes under way that the operator decides by. They never change.
type Requests []table.DecidedSlice

// Granted implements table.SliceDecisions.
func (r Requests) Granted() map[string]map[string]capacity.Amounts {
	all := map[string]map[string]capacity.Amounts{}
	for i := range r {
		s := &r[i].Slice
		if s.Granted == nil {
			continue
		}
		if all[s.Class] == nil {
			all[s.Class] = map[string]capacity.Amounts{}
		}
		sum := maps.Clone(all[s.Class][s.Consumer])
		if sum == nil {
			sum = capacity.Amounts{}
		}
		for name, amount := range s.Granted {
			sum[name] = capacity.Sum(sum[name], amount)
		}
		all[s.Class][s.Consumer] = sum
	}
	return all
}

// Under implements table.SliceDecisions.
func (Requests) Under(string) table.PolicyGrants { return table.PolicyGrants{} }

// All implements table.SliceDecisions.
func (r Requests) All(yield func(table.DecidedSlice) bool) {
	for i := range r {
		if !yield(r[i]) {
			return
		}
	}
}

// DryRun implements table.SliceDecisions. A slice in a class that no policy serves is not answered,
// unless it has something.
func (r Requests) DryRun(termsOf func() *offer.AllocationInput) table.SliceDecisions {
	if len(r) == 0 {
		return r
	}
	terms, d := termsOf(), &decided{all: make(Requests, len(r))}
	copy(d.all, r)
	var asked []grant.Slice
	var at []int
	for i := range d.all {
		s := &d.all[i]
		s.Answer = nil
		if s.Consumer != "" && (s.Slice.Granted != nil || terms.Serves(s.Class)) {
			asked, at = append(asked, s.Slice), append(at, i)
		}
	}
	answers := grant.Settle(terms, asked)
	for k, i := range at {
		s := &d.all[i]
		s.Slice, s.Answer = asked[k], &answers[k]
		answer := s.Answer
		s.Because = func() string { return answer.Because("the request is not valid") }
	}
	d.granted, d.byPolicy = table.CountGrants(asked, answers, table.GrantedAndDecided)
	return d
}

// decided are Requests with decisions.
type decided struct {
	all      Requests
	granted  map[string]map[string]capacity.Amounts
	byPolicy map[string]table.PolicyGrants
}

func (d *decided) Granted() map[string]map[string]capacity.Amounts { return d.granted }

func (d *decided) Under(policy string) table.PolicyGrants { return d.byPolicy[policy] }

func (d *decided) All(yield func(table.DecidedSlice) bool) { d.all.All(yield) }

func (d *decided) DryRun(terms func() *offer.AllocationInput) table.SliceDecisions {
	return d.all.DryRun(terms)
}
