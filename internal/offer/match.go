package offer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"proffer.dev/proffer/internal/capacity"
)

// policyIndex holds the policies in the order in which they decide. It is immutable.
type policyIndex struct {
	// ordered is sorted by class, then in the order in which policies decide: highest priority, then
	// oldest, then name.
	ordered []*indexedPolicy
	byName  map[string]int
	// consumers are Input.Consumers, sorted by ID.
	consumers []Consumer
	// byDigest maps the digests of selections, of Input.Former too, to pools in the View.
	byDigest map[string]int
	// naming maps each consumer ID that some scope or pause names to the policies with such a one, open are
	// the policies that are not for named consumers only. Both hold sorted indexes.
	naming map[string][]int
	open   []int
	// external is set if some policy has an external source.
	external bool
	// giving are the givers of all policies.
	giving map[string]struct{}
	// labelKeys are the label keys that some scope selects by, sorted.
	labelKeys []string
	// filtered is set if some scope has a filter, which may read any label.
	filtered bool
}

// indexedPolicy is a policy with its pause at the time of the evaluation.
type indexedPolicy struct {
	*Policy
	pause
	granter string
	// inView is the index of the policy's pool in the View, noPool for a policy without nodes. givers are the peers,
	// sorted, that give nodes of it.
	inView int
	givers []string
	// answers holds what the external source has answered, nil for a policy without one.
	answers *capacity.Answers
}

func newPolicyIndex(in *Input) *policyIndex {
	policies := in.Policies
	x := &policyIndex{
		ordered: make([]*indexedPolicy, len(policies)), byName: make(map[string]int, len(policies)),
		byDigest: map[string]int{}, naming: map[string][]int{}, giving: map[string]struct{}{}, consumers: in.Consumers,
	}
	if !slices.IsSortedFunc(x.consumers, byID) {
		x.consumers = slices.SortedFunc(slices.Values(x.consumers), byID)
	}
	_, pools := selectionsOf(policies, in.Former)
	for i := range policies {
		p := &policies[i]
		x.ordered[i] = &indexedPolicy{
			Policy: p, pause: p.pauseAt(in.Now), granter: p.Granter(), inView: pools[p], givers: giversOf(p, &in.View, pools[p]),
		}
		if p.External != nil {
			x.ordered[i].answers, x.external = new(in.External[p.Name]), true
		}
	}
	slices.SortFunc(x.ordered, func(a, b *indexedPolicy) int {
		return cmp.Or(
			strings.Compare(a.Class, b.Class),
			cmp.Compare(b.Priority, a.Priority),
			cmp.Compare(a.Created, b.Created),
			strings.Compare(a.Name, b.Name))
	})
	for i := range in.Former {
		p := &in.Former[i]
		x.byDigest[digestOf(p.Granter())] = pools[p]
	}
	labelKeys := map[string]struct{}{}
	for i, p := range x.ordered {
		x.byName[p.Name] = i
		x.byDigest[digestOf(p.granter)] = p.inView
		for _, id := range p.givers {
			x.giving[id] = struct{}{}
		}
		if p.Consumers.IDs == nil {
			x.open = append(x.open, i)
		}
		name := func(id string) {
			if all := x.naming[id]; len(all) == 0 || all[len(all)-1] != i { // Two scopes may name it.
				x.naming[id] = append(all, i)
			}
		}
		for id := range p.pause.consumers {
			name(id)
		}
		for s := range p.scopes {
			for id := range s.IDs {
				name(id)
			}
			x.filtered = x.filtered || s.Filters != nil
			for _, key := range s.labelKeys() {
				labelKeys[key] = struct{}{}
			}
		}
	}
	x.labelKeys = slices.Sorted(maps.Keys(labelKeys))
	return x
}

// nodesOf returns the pool in the View of the nodes that a granter has granted from, noPool if it selects none. They
// are not known if the policy is gone, or was edited, since before this process started.
func (x *policyIndex) nodesOf(granter string) (index int, known bool) {
	switch digest := digestOf(granter); digest {
	case noNodes:
		return noPool, true
	case "": // The record of an earlier version.
		i, exists := x.byName[PolicyOf(granter)]
		if !exists {
			return noPool, false
		}
		return x.ordered[i].inView, true
	default:
		index, known = x.byDigest[digest]
		return index, known
	}
}

// scopes yields the scope of the policy and of each override.
func (p *Policy) scopes(yield func(Scope) bool) {
	if !yield(p.Consumers) {
		return
	}
	for i := range p.Overrides {
		if !yield(p.Overrides[i].Consumers) {
			return
		}
	}
}

// labelKeys returns the label keys that the scope selects by.
func (s Scope) labelKeys() []string {
	if s.Selector == nil {
		return nil
	}
	return s.Selector.Keys()
}

// match is the outcome of matching one consumer against all policies. It is immutable.
type match struct {
	// winners are the policies that decide, at most one for each class, sorted by class.
	winners []winner
	// shadowed are the policies for the consumer that lose to a winner.
	shadowed []shadowed
}

// winner is a policy that decides for a consumer, by its index, with the index of the override that
// includes the consumer, -1 for none, its variant for the consumer, and whether it is paused for it.
type winner struct {
	policy, override, variant int
	paused                    bool
}

// A variant of a policy is its offer to consumers of one kind: for a policy with an external source the
// index of an answer, for a policy of peers the index of a consumer in indexedPolicy.givers.
const noVariant = -1

// shadowed is a policy that loses to another one, by their indexes.
type shadowed struct{ policy, by int }

// match matches a consumer against all policies.
func (x *policyIndex) match(c Consumer) *match { return x.matchInto(&match{}, c) }

// matchInto is match into the memory of a match that nobody needs any longer.
func (x *policyIndex) matchInto(m *match, c Consumer) *match {
	m.winners, m.shadowed = m.winners[:0], m.shadowed[:0]
	by := -1
	for _, i := range x.candidates(make([]int, 0, 16), c.ID) {
		p := x.ordered[i]
		switch {
		case p.DryRun, !p.Consumers.Includes(c):
		case by >= 0 && x.ordered[by].Class == p.Class:
			m.shadowed = append(m.shadowed, shadowed{policy: i, by: by})
		default:
			by = i
			m.winners = append(m.winners, winner{i, p.overrideFor(c), p.variantFor(c.ID), p.pause.of(c.ID)})
		}
	}
	return m
}

// variantFor returns the variant of a policy for a consumer.
func (p *indexedPolicy) variantFor(id string) int {
	if i, gives := slices.BinarySearch(p.givers, id); gives {
		return i
	}
	if p.answers != nil {
		if of, ok := p.answers.For(id); ok {
			return of.Index
		}
	}
	return noVariant
}

// candidates returns the indexes, sorted, of all policies that may be for a consumer, in the memory of an empty list.
func (x *policyIndex) candidates(all []int, id string) []int {
	all = append(append(all, x.open...), x.naming[id]...)
	slices.Sort(all)
	return slices.Compact(all) // A policy that is open may name it, too.
}

// matcher returns one match for all consumers that match alike, so that a match identifies them. It
// is not safe for concurrent use.
type matcher struct {
	*policyIndex
	// byTraits holds the matches of consumers that no scope names, by the values of labelKeys.
	// byContent holds the distinct matches.
	byTraits, byContent map[string]*match
	// found and key are reused.
	found match
	key   []byte
}

func newMatcher(x *policyIndex) *matcher {
	return &matcher{policyIndex: x, byTraits: map[string]*match{}, byContent: map[string]*match{}}
}

// matchOf returns the match of a consumer.
func (m *matcher) matchOf(c Consumer) *match {
	_, named := m.naming[c.ID]
	if _, gives := m.giving[c.ID]; named || gives || m.filtered || m.external {
		return m.distinct(c)
	}
	m.key = m.key[:0]
	for i, key := range m.labelKeys {
		if value, ok := c.Labels[key]; ok {
			m.key = binary.AppendUvarint(m.key, uint64(i)+1)
			m.key = binary.AppendUvarint(m.key, uint64(len(value)))
			m.key = append(m.key, value...)
		}
	}
	if known, ok := m.byTraits[string(m.key)]; ok {
		return known
	}
	traits := string(m.key) // distinct reuses the key.
	found := m.distinct(c)
	m.byTraits[traits] = found
	return found
}

// distinct matches a consumer against all policies, and returns the first match with the same content.
func (m *matcher) distinct(c Consumer) *match {
	m.key = m.matchInto(&m.found, c).appendTo(m.key[:0])
	same, ok := m.byContent[string(m.key)]
	if !ok {
		same = &match{slices.Clone(m.found.winners), slices.Clone(m.found.shadowed)}
		m.byContent[string(m.key)] = same
	}
	return same
}

// appendTo appends an encoding of the match that is unique to its content.
func (m *match) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(m.winners)))
	for _, w := range m.winners {
		b = binary.AppendUvarint(b, uint64(w.policy))
		b = binary.AppendVarint(b, int64(w.override))
		b = binary.AppendVarint(b, int64(w.variant))
		b = strconv.AppendBool(b, w.paused)
	}
	for _, s := range m.shadowed {
		b = binary.AppendUvarint(b, uint64(s.policy))
		b = binary.AppendUvarint(b, uint64(s.by))
	}
	return b
}

// knownConsumer is a consumer that is listed, has pods or grants, is named by a policy, or gives nodes
// of a pool.
type knownConsumer struct {
	Consumer
	// listed is set if the consumer is one of Input.Consumers.
	listed bool
}

// knownConsumers returns all known consumers, sorted by ID.
func knownConsumers(in *Input, x *policyIndex) []knownConsumer {
	others := make([]string, 0, len(x.naming))
	add := func(id string) {
		if _, found := slices.BinarySearchFunc(x.consumers, Consumer{ID: id}, byID); !found {
			others = append(others, id)
		}
	}
	for id := range in.View.Used.All {
		add(id)
	}
	for _, grants := range in.Grants {
		for id := range grants {
			add(id)
		}
	}
	for id := range x.naming {
		add(id)
	}
	for _, p := range in.Awaited {
		for s := range p.scopes {
			for id := range s.IDs {
				add(id)
			}
		}
	}
	for id := range x.giving {
		add(id)
	}
	slices.Sort(others)
	others = slices.Compact(others)
	all := make([]knownConsumer, 0, len(x.consumers)+len(others))
	for _, c := range x.consumers {
		for len(others) > 0 && others[0] < c.ID {
			all, others = append(all, knownConsumer{Consumer: Consumer{ID: others[0]}}), others[1:]
		}
		all = append(all, knownConsumer{Consumer: c, listed: true})
	}
	for _, id := range others {
		all = append(all, knownConsumer{Consumer: Consumer{ID: id}})
	}
	return all
}

func byID(a, b Consumer) int { return strings.Compare(a.ID, b.ID) }

// consumer returns a consumer by its ID, with its labels if it is listed.
func (x *policyIndex) consumer(id string) Consumer {
	c := Consumer{ID: id}
	if i, found := slices.BinarySearchFunc(x.consumers, c, byID); found {
		c = x.consumers[i]
	}
	return c
}

// among returns the IDs of the consumers that the scope selects, sorted.
func (s Scope) among(known []knownConsumer) []string {
	var ids []string
	for _, c := range known {
		if s.Includes(c.Consumer) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// standing is a policy that is for a consumer, or would be without filters of consumers, by its index.
type standing struct {
	policy   int
	filtered bool
	// because says why the policy does not decide, empty for the one of the class that does.
	because string
}

// standings yields the standing of each policy for a consumer, in the order of the index.
func (x *policyIndex) standings(c Consumer) iter.Seq[standing] {
	return func(yield func(standing) bool) {
		var winner *Policy
		for _, i := range x.candidates(nil, c.ID) {
			p, s := x.ordered[i], standing{policy: i}
			if !p.Consumers.selects(c) {
				continue
			}
			why := p.Consumers.whyFiltered(c)
			switch {
			case why != "":
				s.filtered, s.because = true, why
			case p.DryRun:
				s.because = "it is a dry run"
			case winner == nil || winner.Class != p.Class:
				winner = p.Policy
			default:
				s.because = winner.whyBefore(p.Policy)
			}
			if !yield(s) {
				return
			}
		}
	}
}

// whyBefore says why the policy decides before another one of its class.
func (p *Policy) whyBefore(o *Policy) string {
	switch {
	case p.Priority != o.Priority:
		return fmt.Sprintf("policy %s has the higher priority, %d", p.Name, p.Priority)
	case p.Created != o.Created:
		return fmt.Sprintf("policy %s has the same priority, %d, and is older", p.Name, p.Priority)
	}
	return fmt.Sprintf("policy %s has the same priority, %d, and the same age, and its name comes first",
		p.Name, p.Priority)
}

// giversOf returns, sorted, the peers that give nodes of a pool, nil for a pool of this cluster's own
// nodes.
func giversOf(p *Policy, v *capacity.View, index int) []string {
	if p.Nodes == nil || p.Nodes.Selection.Peers == nil {
		return nil
	}
	var givers []string
	for i := range v.Cells {
		if slices.Contains(v.Cells[i].Pools, index) {
			givers = append(givers, v.Cells[i].Peer)
		}
	}
	slices.SortFunc(givers, strings.Compare)
	return slices.Compact(givers)
}
