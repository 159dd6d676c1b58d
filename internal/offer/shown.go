package offer

import "slices"

// Shown returns the explained offers of one consumer without the zeros that are only owed to readers of
// Liqo v0.x: of classes that no policy serves, and of resources that were taken out of the policy. It
// reuses the list.
func Shown(all []Explained) []Explained {
	inForce := slices.ContainsFunc(all, func(x Explained) bool { return !x.Spent() })
	all = slices.DeleteFunc(all, func(x Explained) bool {
		// If no other class is offered, the pods are in this one.
		return x.Spent() && x.Granted == nil && (inForce || !x.holding.hasPods())
	})
	for i := range all {
		all[i].leaveOutDropped()
	}
	return all
}

// leaveOutDropped leaves out the resources that were taken out of the policy, and of which the consumer
// has nothing.
func (x *Explained) leaveOutDropped() {
	if x.plan == nil {
		return
	}
	var amounts []Amount
	var now []Step
	for i, a := range x.Amounts {
		if s := x.Now[i]; a.Value == 0 && s.Source == FromRevocation && x.plan.dropped(a.Resource) &&
			x.Used[a.Resource] == 0 && x.Granted[a.Resource] == 0 {
			delete(x.Used, a.Resource)
			continue
		}
		amounts, now = append(amounts, a), append(now, x.Now[i])
	}
	if len(amounts) < len(x.Amounts) {
		o := *x.Offer
		o.Amounts, x.Offer, x.Now = amounts, &o, now
	}
}

// dropped reports whether a resource that is not offered any more was taken out of the policy. A policy of
// nodes offers what its nodes list, so a resource can come back.
func (p *policyPlan) dropped(resource string) bool {
	return p.Resources != nil && !slices.Contains(p.Resources, resource) || p.pool == nil && p.External == nil
}
