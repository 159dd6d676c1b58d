package command

import (
	"errors"
	"fmt"
	"slices"

	"proffer.dev/proffer/test"
)

// granted sums up, by consumer, what is promised in the classes. If a slice is being decided, other
// classes count with what they have had since lag ago. If recent states are given, a released
// promise counts with what pods have used of it in all of them.
func (a *auditor) granted(classes []string, decided *sliceState, recent []providerState) map[string]amounts {
	out, live := map[string]amounts{}, map[releaseKey]amounts{}
	for _, s := range a.slices {
		owner := ownerOf(s.key)
		drained := slices.ContainsFunc(recent, func(r providerState) bool { return r.drained[owner] })
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
		live[releaseKey{owner, s.creator, s.promisedIn}] = has
	}
	if recent == nil {
		return out
	}
	for of, had := range a.released {
		if !slices.Contains(classes, of.class) ||
			slices.ContainsFunc(recent, func(r providerState) bool { return r.drained[of.owner] }) {
			continue
		}
		counts := had.used(of, recent)
		// If a slice was recreated with the same name, the pods count as those of the new one too.
		for i := range counts {
			counts[i] = max(0, counts[i]-live[of][i])
		}
		out[of.owner] = out[of.owner].plus(counts)
	}
	return out
}

// awaitWithinCapacity waits until no more is accepted than there is, except for what reclaim leaves
// to consumers with pods.
func (a *auditor) awaitWithinCapacity() {
	a.t.Helper()
	defer func() {
		if a.mu.Lock(); a.t.Failed() && a.wrong == 0 {
			a.logContext("")
		}
		a.mu.Unlock()
	}()
	test.Eventually(a.t, func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := a.provider.now()
		errs := []error{a.findForged(now)}
		for class := range now.pools {
			a.checks++
			errs = append(errs, a.checkSum(class, []string{class}, now.pools[class].capacity, now))
			errs = append(errs, a.checkSum(class, now.pools[class].overlapping, now.pools[class].together, now))
		}
		return errors.Join(errs...)
	})
}

// findForged returns an error while a forged answer stands in a slice. A consumer's reduction of
// its own grant may stay if the slice must not be answered: restoring the grant would be an answer.
func (a *auditor) findForged(now providerState) error {
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
			errs = append(errs, fmt.Errorf("%s: the consumer wrote %s %d, the operator %d (open: %t)",
				s.key, s.status, s.granted, s.promised, s.open))
		}
	}
	return errors.Join(errs...)
}

// checkSum compares what is accepted in the classes with a capacity.
func (a *auditor) checkSum(class string, classes []string, capacity amounts, now providerState) error {
	if slices.ContainsFunc(classes, func(class string) bool { return a.provider.share(class).retains }) {
		return nil
	}
	evicts := a.provider.share(class).evicts
	recent := []providerState{now}
	if evicts { // Grants are kept whatever pods use that are to go.
		recent = nil
	}
	granted := a.granted(classes, nil, recent)
	for _, s := range a.slices {
		// A slice that has moved to another class is answered there, by the operator or somebody
		// else, or not at all.
		if s.class != s.promisedIn && slices.Contains(classes, s.promisedIn) && !a.provider.isDrained(ownerOf(s.key)) {
			granted[ownerOf(s.key)] = granted[ownerOf(s.key)].plus(amounts{-s.promised[cpu], -s.promised[memory]})
		}
	}
	for i := range capacity {
		var sum int64
		used := true
		for id, has := range granted {
			sum += has[i]
			// One unit of each slice is left to a consumer with pods: without it Liqo evicts all of
			// them. Each class keeps what is used.
			used = used && has[i] <= int64(len(classes))*now.used[id][i]+chaosSlices/chaosConsumers
		}
		if sum > capacity[i] && (evicts || !used) {
			return fmt.Errorf("%d of resource %d are accepted in %v, whose capacity is %d: %v",
				sum, i, classes, capacity[i], granted)
		}
	}
	return nil
}
