package offer

import (
	"cmp"
	"slices"
)

// FormerPolicies remembers the nodes that policies have granted from, from one evaluation to the next, as long as
// records of grants name them. The zero value remembers none. It is not safe for concurrent use. A copy goes on by
// itself.
type FormerPolicies struct {
	// byGranter holds the policies with nodes of the latest evaluation, and the former ones. It is replaced and never
	// changed.
	byGranter map[string]rememberedPolicy
}

// rememberedPolicy is a policy of the latest evaluation, or a former one.
type rememberedPolicy struct {
	*Policy
	former bool
}

// Resume remembers policies as an earlier process knew them. It is called before the first Update.
func (f *FormerPolicies) Resume(policies []Policy) {
	f.byGranter = make(map[string]rememberedPolicy, len(policies))
	for i := range policies {
		f.byGranter[policies[i].Granter()] = rememberedPolicy{&policies[i], true}
	}
}

// Update sets in.Former. Granters returns what records name; it is called only if it matters, and nil if there are no
// records. What the evaluation before decided may be recorded meanwhile, so its policies are remembered in any case.
func (f *FormerPolicies) Update(in *Input, granters func() map[string]struct{}) {
	before := f.byGranter
	f.byGranter = make(map[string]rememberedPolicy, len(in.Policies))
	for i := range in.Policies {
		if p := &in.Policies[i]; p.Nodes != nil {
			f.byGranter[p.Granter()] = rememberedPolicy{Policy: p}
		}
	}
	var named map[string]struct{}
	for by, p := range before {
		if _, present := f.byGranter[by]; present || granters == nil {
			continue
		}
		if p.former && named == nil {
			named = granters()
		}
		if _, granted := named[by]; granted || !p.former {
			in.Former = append(in.Former, *p.Policy)
		}
	}
	slices.SortFunc(in.Former, func(a, b Policy) int { return cmp.Compare(a.Granter(), b.Granter()) })
	for i := range in.Former {
		f.byGranter[in.Former[i].Granter()] = rememberedPolicy{&in.Former[i], true}
	}
}
