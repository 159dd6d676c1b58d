package capacity

import (
	"maps"
	"slices"
)

// Claim holds the devices of one node that are allocated to a ResourceClaim.
type Claim struct {
	// Key identifies the claim, see ClaimKey.
	Key string
	// Node is the node of the devices.
	Node string
	// Pods are the keys of the pods that it is reserved for. It counts for a consumer if all of them that are
	// known are this consumer's, otherwise for this cluster's own. If none is known any longer, it counts as
	// before.
	Pods []string
	// Devices holds the numbers of devices by resource.
	Devices Amounts
}

// ClaimKey returns the key of a ResourceClaim. No pod has an equal one.
func ClaimKey(namespace, name string) string { return "claim/" + namespace + "/" + name }

// claimTable holds the ResourceClaims of an account. Each counts like a pod with the key of the claim, see Pod.OfClaim.
type claimTable struct {
	entries map[string]*claimEntry
	// reserved maps the keys of pods to the claims that are reserved for them.
	reserved map[string][]*claimEntry
	// claimOf maps the keys of pods to the claims that were made for their requests, podOf is its reverse.
	claimOf, podOf map[string]string
}

type claimEntry struct {
	Claim
	// consumer and creator are those of the pods that were known last.
	consumer, creator string
}

// SetClaim sets the present state of an allocated ResourceClaim, and reports whether the account changed. The
// ledger keeps the amounts: the caller must not change them afterwards.
func (l *Ledger) SetClaim(claim Claim) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := &claimEntry{Claim: claim}
	if was := l.claims.entries[claim.Key]; was != nil {
		if len(claim.Pods) == 0 || slices.Equal(was.Pods, claim.Pods) {
			next.consumer, next.creator = was.consumer, was.creator
		}
		l.unreserve(was)
	}
	if l.claims.entries == nil {
		l.claims.entries, l.claims.reserved = map[string]*claimEntry{}, map[string][]*claimEntry{}
	}
	l.claims.entries[claim.Key] = next
	for _, pod := range claim.Pods {
		l.claims.reserved[pod] = append(l.claims.reserved[pod], next)
	}
	return l.placeClaim(next)
}

// DeleteClaim removes a ResourceClaim that is gone or not allocated, and reports whether the account changed.
func (l *Ledger) DeleteClaim(key string) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.claims.entries[key]
	if c == nil {
		return false
	}
	l.unreserve(c)
	delete(l.claims.entries, key)
	return l.dropClaim(key)
}

// isClaim reports whether an entry of pods is that of a claim.
func (l *Ledger) isClaim(key string) bool {
	_, is := l.claims.entries[key]
	return is
}

// unreserve undoes what setClaim has noted for the pods of a claim.
func (l *Ledger) unreserve(c *claimEntry) {
	for _, pod := range c.Pods {
		left := slices.DeleteFunc(l.claims.reserved[pod], func(o *claimEntry) bool { return o == c })
		if l.claims.reserved[pod] = left; len(left) == 0 {
			delete(l.claims.reserved, pod)
		}
	}
}

// setClaimOf sets the claim that was made for the requests of a pod, empty for none, counts the claims of the
// pod again, and reports whether the account changed.
func (l *Ledger) setClaimOf(pod, claim string) (changed bool) {
	again := l.claims.reserved[pod]
	if was := l.claims.claimOf[pod]; was != claim {
		if l.claims.claimOf == nil {
			l.claims.claimOf, l.claims.podOf = map[string]string{}, map[string]string{}
		}
		delete(l.claims.claimOf, pod)
		if l.claims.podOf[was] == pod {
			delete(l.claims.podOf, was)
		}
		if claim != "" {
			l.claims.claimOf[pod], l.claims.podOf[claim] = claim, pod
		}
		if c := l.claims.entries[was]; c != nil {
			changed = l.placeClaim(c)
		}
	}
	if c := l.claims.entries[claim]; c != nil {
		changed = l.placeClaim(c) || changed
	}
	for _, c := range again {
		changed = l.placeClaim(c) || changed
	}
	return changed
}

// placeClaim counts a claim for the consumer of its pods, without what these request by name, and reports whether
// the account changed.
func (l *Ledger) placeClaim(c *claimEntry) (changed bool) {
	c.belongTo(l.pods)
	devices := c.Devices.Bounded(MaxPodResources, l.names.listed)
	if e := l.pods[l.claims.podOf[c.Key]]; e != nil {
		devices = maps.Clone(devices)
		for _, r := range e.requests {
			if name := l.names.infos[r.number].name; devices[name] > 0 {
				devices[name] = max(0, devices[name]-r.amount)
			}
		}
	}
	for _, amount := range devices {
		if amount > 0 {
			_, changed = l.place(Pod{
				Key: c.Key, Node: c.Node, Consumer: c.consumer, Creator: c.creator, Requests: devices, OfClaim: true,
			})
			return changed
		}
	}
	return l.dropClaim(c.Key)
}

// dropClaim removes what placeClaim counted, and reports whether there was any.
func (l *Ledger) dropClaim(key string) bool {
	e, counted := l.pods[key]
	if counted {
		l.dropPod(key, e)
	}
	return counted
}

// belongTo sets whom a claim counts for. It is used by this cluster's own pods if it is shared by pods of several.
func (c *claimEntry) belongTo(pods map[string]*podEntry) {
	known := false
	for _, key := range c.Pods {
		switch e := pods[key]; {
		case e == nil:
		case !known:
			c.consumer, c.creator, known = e.consumer, e.creator, true
		case e.consumer != c.consumer:
			c.consumer, c.creator = "", ""
			return
		case e.creator != c.creator:
			c.creator = ""
		}
	}
}
