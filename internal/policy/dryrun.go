package policy

import (
	"slices"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// DryRun is the outcome of activating the policy, after everything is reclaimed and granted that
// follows from it.
type DryRun struct {
	Report    *offer.Report
	Granted   table.PolicyGrants
	Explainer offer.Explainer
	// Others are the consumers, by ID, whose offers from other policies would change.
	Others []string
}

// Activate evaluates the snapshot's input with the dry run of this name in force. It changes
// nothing.
func Activate(s *table.Snapshot, name string) *DryRun {
	in := s.Input
	in.Policies = slices.Clone(in.Policies)
	for i := range in.Policies {
		if in.Policies[i].Name == name {
			in.Policies[i].DryRun = false
		}
	}
	r := &DryRun{}
	if s.Slices != nil {
		decided := s.Slices.DryRun(func() *offer.AllocationInput { return offer.NewAllocationInput(in) })
		in.Grants, in.GrantedBy, r.Granted = decided.Granted(), decided.GrantedBy(), decided.Under(name)
	}
	result := offer.Evaluate(in.After(s.Result))
	r.Report, r.Explainer = result.Reports[name], result.Explainer()
	for id, entry := range result.Entries.All {
		if changesElsewhere(name, s.Entries.Of(id), entry) {
			r.Others = append(r.Others, id)
		}
	}
	return r
}

// changesElsewhere reports whether an offer changes that another policy decides on, or none does.
// The entry before may be nil.
func changesElsewhere(policy string, before, after *offer.Entry) bool {
	return slices.ContainsFunc(after.Offers, func(o *offer.Offer) bool {
		b := before.In(o.Class)
		return o.Policy != policy && o != b && (b == nil || !slices.Equal(b.Amounts, o.Amounts))
	})
}
