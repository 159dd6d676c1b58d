package offer

import "time"

// Awaited is a policy that is gone since less than Input.Grace: it may be about to be applied again.
type Awaited struct {
	*Policy
	// Left is the time for which the policy is still awaited.
	Left time.Duration
}

// Awaiting finds the policies that are gone, from one evaluation to the next. The zero value awaits none. It is
// not safe for concurrent use. A copy goes on by itself.
type Awaiting struct {
	// policies are those of the latest evaluation. gone is replaced and never changed.
	policies []Policy
	gone     []absence
}

// absence is a policy that was found gone at a time.
type absence struct {
	*Policy
	since time.Time
}

// Update sets in.Awaited.
func (a *Awaiting) Update(in *Input) {
	before := *a
	*a = Awaiting{policies: in.Policies}
	in.Awaited = map[string]Awaited{}
	exists := make(map[string]struct{}, len(in.Policies))
	for i := range in.Policies {
		exists[in.Policies[i].Name] = struct{}{}
	}
	await := func(p *Policy, since time.Time) {
		if in.Now.Before(since) {
			since = in.Now // A clock that was set back lets nothing wait for longer than the grace again.
		}
		left := in.Grace - in.Now.Sub(since)
		if _, applied := exists[p.Name]; applied || left <= 0 {
			return
		}
		a.gone = append(a.gone, absence{p, since})
		in.Awaited[p.Name] = Awaited{Policy: p, Left: left}
	}
	for _, x := range before.gone {
		await(x.Policy, x.since)
	}
	for i := range before.policies {
		await(&before.policies[i], in.Now)
	}
}
