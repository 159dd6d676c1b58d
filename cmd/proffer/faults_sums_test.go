package main

import (
	"errors"
	"fmt"
	"slices"
)

// granted adds up by consumer what is promised in the classes. Beside a slice decided on, other classes count with what they have had all the
// time. With recent readings, what was released counts as far as pods have used it in all of them.
func (a *account) granted(classes []string, decided *seen, recent []reading) map[string]amounts {
	out, live := map[string]amounts{}, map[release]amounts{}
	for _, s := range a.slices {
		owner := ownerOf(s.key)
		drained := slices.ContainsFunc(recent, func(r reading) bool { return r.drained[owner] })
		if recent == nil {
			drained = a.provider.isDrained(owner)
		}
		if drained || !slices.Contains(classes, s.promisedIn) {
			continue
		}
		has := s.promised
		if decided != nil && s.promisedIn != decided.promisedIn {
			has = s.atLeast(a.at)
		}
		out[owner] = out[owner].plus(has)
		live[release{owner, s.creator, s.promisedIn}] = has
	}
	if recent == nil {
		return out
	}
	for of, had := range a.released {
		if !slices.Contains(classes, of.class) || slices.ContainsFunc(recent, func(r reading) bool { return r.drained[of.owner] }) {
			continue
		}
		counts := had.amounts
		for _, r := range recent {
			for i := range counts {
				counts[i] = min(counts[i], r.pools[of.class].created[of.creator][i])
			}
		}
		// Pods of a slice that was made again under its name are pods of the new one too.
		for i := range counts {
			counts[i] = max(0, counts[i]-live[of][i])
		}
		out[of.owner] = out[of.owner].plus(counts)
	}
	return out
}

// within waits until no more is accepted than there is, but for what reclaim leaves to who uses it.
func (a *account) within() {
	a.t.Helper()
	eventually(a.t, func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := a.provider.now()
		errs := []error{a.standsForged(now)}
		for class := range now.pools {
			a.checks++
			errs = append(errs, a.holds(class, []string{class}, now.pools[class].capacity, now))
			errs = append(errs, a.holds(class, now.pools[class].beside, now.pools[class].together, now))
		}
		return errors.Join(errs...)
	})
}

// standsForged returns an error while something stands that a consumer has granted itself, or taken from itself. What it has taken from itself
// stays so in a slice that is not to be answered: to restore that would be to answer it.
func (a *account) standsForged(now reading) error {
	var errs []error
	for _, s := range a.slices {
		a.checks++
		if _, served := now.pools[s.class]; !s.forged || !served || now.drained[ownerOf(s.key)] {
			continue
		}
		less := s.promisedIn == s.class && s.granted.within(s.promised)
		if less && (!s.open || !s.authenticated || now.absent[ownerOf(s.key)]) {
			continue
		}
		if s.granted != s.promised && s.promisedIn == s.class || s.promisedIn != s.class && s.granted != (amounts{}) {
			errs = append(errs, fmt.Errorf("%s: the consumer has written %s %d; the operator %d (open: %t)", s.key, s.status, s.granted, s.promised, s.open))
		}
	}
	return errors.Join(errs...)
}

// holds compares what is accepted in the classes with a capacity.
func (a *account) holds(class string, classes []string, capacity amounts, now reading) error {
	if slices.ContainsFunc(classes, func(class string) bool { return a.provider.share(class).retains }) {
		return nil
	}
	granted := a.granted(classes, nil, nil)
	for _, s := range a.slices {
		// One that says that it is of another class is for others to answer, or for nobody.
		if s.class != s.promisedIn && slices.Contains(classes, s.promisedIn) && !a.provider.isDrained(ownerOf(s.key)) {
			granted[ownerOf(s.key)] = granted[ownerOf(s.key)].plus(amounts{-s.promised[cpu], -s.promised[memory]})
		}
	}
	for i := range capacity {
		var sum int64
		used := true
		for id, has := range granted {
			sum += has[i]
			// One unit of each slice is left to who has pods: Liqo evicts all of them without. Each class leaves what is used.
			used = used && has[i] <= int64(len(classes))*now.used[id][i]+faultSlices/faultConsumers
		}
		if sum > capacity[i] && (a.provider.share(class).evicts || !used) {
			return fmt.Errorf("%d of resource %d are accepted in %v, which have %d: %v", sum, i, classes, capacity[i], granted)
		}
	}
	return nil
}
