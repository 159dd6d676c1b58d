package policy

import (
	"slices"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// rehearsal is what would be if a dry run were active, when all has been taken back that its reclaim says, and granted that others ask for.
type dryRun struct {
	report    *offer.Report
	granted   table.PolicyGrants
	explainer offer.Explainer
	// others are consumers whose offers by other policies would not be what they are, by ID.
	others []string
}

// rehearse works out what would be if the dry run of that name were active. It changes nothing.
func activate(s *table.Snapshot, name string) *dryRun {
	in := s.Input
	in.Policies = slices.Clone(in.Policies)
	for i := range in.Policies {
		if in.Policies[i].Name == name {
			in.Policies[i].DryRun = false
		}
	}
	r := &dryRun{}
	if s.Slices != nil {
		decided := s.Slices.DryRun(func() *offer.Terms { return offer.NewTerms(in) })
		in.Grants, r.granted = decided.Granted(), decided.Under(name)
	}
	result := offer.Evaluate(in.After(s.Result))
	r.report, r.explainer = result.Reports[name], result.Explainer(nil)
	for id, entry := range result.Entries.All {
		if changesElsewhere(name, s.Entries.Of(id), entry) {
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
