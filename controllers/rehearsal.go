package controllers

import (
	"maps"
	"slices"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
)

// maxAllocations bounds how often grants are worked out in a rehearsal: what one slice gives up, others may be granted in the next round.
const maxAllocations = 16

// rehearsal is what would be if a dry run were active, when all has been taken back that its reclaim says, and granted that others ask for.
type rehearsal struct {
	report    *offer.Report
	granted   grantsOf
	explainer offer.Explainer
	// others are consumers whose offers by other policies would not be what they are, by ID.
	others []string
}

// rehearse works out what would be if the dry run of that name were active. It changes nothing.
func (o *outcome) rehearse(name string) *rehearsal {
	in := o.input
	in.Policies = slices.Clone(in.Policies)
	for i := range in.Policies {
		if in.Policies[i].Name == name {
			in.Policies[i].DryRun = false
		}
	}
	allotted := o.slices.rehearse(func() *offer.Terms { return offer.NewTerms(in) })
	in.Grants = allotted.grants
	result := offer.Evaluate(in.After(o.result))
	r := &rehearsal{report: result.Reports[name], granted: allotted.under(name), explainer: result.Explainer(nil)}
	for id, entry := range result.Entries.All {
		if changesElsewhere(name, o.result.Entries.Of(id), entry) {
			r.others = append(r.others, id)
		}
	}
	return r
}

// changesElsewhere reports whether an offer that another policy decides on, or none, is not what it was. The entry before may be nil.
func changesElsewhere(policy string, before, after *offer.Entry) bool {
	was := map[string]*offer.Offer{}
	if before != nil {
		for _, o := range before.Offers {
			was[o.Class] = o
		}
	}
	return slices.ContainsFunc(after.Offers, func(o *offer.Offer) bool {
		b := was[o.Class]
		return o.Policy != policy && o != b && (b == nil || !slices.Equal(b.Amounts, o.Amounts))
	})
}

// rehearse decides on the same slices by other terms, until nothing is to be taken back any more.
func (a *allotment) rehearse(termsOf func() *offer.Terms) *allotment {
	b := &allotment{
		term: a.term, now: a.now, claims: a.claims, gates: a.gates, grants: map[string]map[string]capacity.Amounts{}, byPolicy: map[string]grantsOf{},
		awaits: func(string, string, bool, time.Time) time.Duration { return 0 },
	}
	if len(b.claims) == 0 {
		return b
	}
	b.rulings = make([]ruling, len(a.rulings))
	for i := range a.rulings {
		b.rulings[i] = ruling{consumer: a.rulings[i].consumer, at: -1}
	}
	b.decide(termsOf())
	for range maxAllocations {
		if !b.carryOut() {
			break
		}
		b.answers = grant.Allocate(b.terms, b.asked)
	}
	b.countAll()
	return b
}

// carryOut has each slice have what was decided, and reports whether one did not have that already.
func (a *allotment) carryOut() (changed bool) {
	for i := range a.asked {
		s, decided := &a.asked[i], &a.answers[i]
		if s.Pinned || decided.Verdict != grant.Accept {
			continue
		}
		moved := s.GrantedIn != "" && s.GrantedIn != s.Class || decided.Policy != nil && s.GrantedBy != decided.Policy.Name
		if has := decided.Amounts(); moved || !maps.Equal(has, s.Granted) {
			s.Granted, s.GrantedIn, changed = has, s.Class, true
			if decided.Policy != nil {
				s.GrantedBy = decided.Policy.Name
			}
		}
	}
	return changed
}
