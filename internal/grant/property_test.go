package grant

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

var (
	anyResource = rapid.SampledFrom([]string{"cpu", "memory", "pods", "gpu"})
	anyAmount   = rapid.OneOf(rapid.Int64Range(0, 20), rapid.SampledFrom([]int64{1 << 40, math.MaxInt64}))
	anyAmounts  = rapid.Map(rapid.MapOf(anyResource, anyAmount), func(m map[string]int64) capacity.Amounts { return m })
	anyClass    = rapid.SampledFrom([]string{"gold", "silver"})
	anyID       = rapid.SampledFrom([]string{"rome", "oslo", "paris"})
)

// reporter is where a check reports what is wrong.
type reporter interface {
	Fatalf(format string, args ...any)
}

func anyPolicy(i int) *rapid.Generator[offer.Policy] {
	return rapid.Custom(func(t *rapid.T) offer.Policy {
		p := offer.Policy{
			Name: fmt.Sprint("p", i), Created: int64(i), Class: anyClass.Draw(t, "class"), Max: anyAmounts.Draw(t, "max"),
			ThresholdPercent: rapid.SampledFrom([]int64{0, 5, 100}).Draw(t, "threshold"),
			Reclaim:          rapid.SampledFrom([]offer.Reclaim{offer.Unused, offer.Evict, offer.Retain}).Draw(t, "reclaim"),
			Paused:           rapid.IntRange(0, 3).Draw(t, "paused") == 0, DryRun: rapid.IntRange(0, 4).Draw(t, "dry run") == 0,
			PausedConsumers: rapid.MapOfN(anyID, rapid.Just(int64(0)), 0, 1).Draw(t, "paused consumers"), Stopped: rapid.IntRange(0, 5).Draw(t, "stopped") == 0,
			Slices: offer.Slices{
				DenyExcess: rapid.IntRange(0, 3).Draw(t, "deny") == 0, Defaults: anyAmounts.Draw(t, "defaults"),
			},
		}
		if rapid.IntRange(0, 2).Draw(t, "filtered") == 0 {
			most, ruling := rapid.Int64Range(0, 20).Draw(t, "most"), rapid.SampledFrom([]offer.Ruling{offer.Refused, offer.Undecided}).Draw(t, "ruling")
			p.Slices.Filters = []offer.SliceFilter{atMost(most, ruling)}
		}
		if rapid.Bool().Draw(t, "for some") {
			p.Consumers = offer.Scope{IDs: map[string]struct{}{anyID.Draw(t, "consumer"): {}}}
		}
		if rapid.IntRange(0, 3).Draw(t, "fixed") == 0 {
			p.Fixed = anyAmounts.Draw(t, "fixed amounts")
			return p
		}
		p.Nodes = &offer.Nodes{
			Count:   rapid.SampledFrom([]offer.Count{offer.Free, offer.Allocatable}).Draw(t, "count"),
			Percent: rapid.SampledFrom([]int64{50, 100, 150}).Draw(t, "percent"),
		}
		if rapid.IntRange(0, 2).Draw(t, "shared") == 0 {
			p.MaxShares = offer.Shares{Percent: rapid.SampledFrom([]int64{1, 33, 50, 100}).Draw(t, "share")}
		}
		if zone := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone"); zone != "" {
			p.Nodes.Selection = inZone(zone)
		}
		if rapid.IntRange(0, 2).Draw(t, "peers") == 0 {
			p.Nodes.Selection.Peers = &capacity.Peers{Depth: 1}
		}
		if rapid.IntRange(0, 3).Draw(t, "overridden") == 0 {
			p.Overrides = []offer.Override{{
				Consumers: offer.Scope{IDs: map[string]struct{}{anyID.Draw(t, "overridden consumer"): {}}}, Fixed: anyAmounts.Draw(t, "override"),
				MaxShares: offer.Shares{Percent: rapid.SampledFrom([]int64{0, 20, 100}).Draw(t, "override share")},
			}}
		}
		return p
	})
}

// atMost is a filter with this ruling on requests for more than this of cpu.
func atMost(most int64, ruling offer.Ruling) offer.SliceFilter {
	return sliceFilter(func(r *offer.Request) (offer.Ruling, string) {
		if r.Resources["cpu"] > most {
			return ruling, ""
		}
		return offer.Admitted, ""
	})
}

type sliceFilter func(r *offer.Request) (offer.Ruling, string)

func (f sliceFilter) Rule(r *offer.Request) (offer.Ruling, string) { return f(r) }
func (sliceFilter) String() string                                 { return "a function" }

// happen draws an event and applies it.
func (w *world) happen(t *rapid.T) {
	node := rapid.SampledFrom([]string{"a1", "a2", "b1"}).Draw(t, "node")
	pod := fmt.Sprint("pod", rapid.IntRange(0, 5).Draw(t, "pod"))
	switch rapid.IntRange(0, 7).Draw(t, "event") {
	case 0:
		w.node(node, node[:1], anyAmounts.Draw(t, "allocatable"), rapid.OneOf(anyID, rapid.Just(""), rapid.Just("")).Draw(t, "peer"))
	case 1:
		if rapid.Bool().Draw(t, "down") {
			w.down(node, node[:1], anyAmounts.Draw(t, "allocatable"))
			break
		}
		w.ledger.DeleteNode(node)
	case 2:
		w.pod(pod, node, rapid.OneOf(anyID, rapid.Just("")).Draw(t, "of"), anyAmounts.Draw(t, "requests"))
	case 3:
		w.ledger.DeletePod(pod)
	case 4:
		i := rapid.IntRange(0, len(w.policies)).Draw(t, "policy")
		if w.policies = slices.Clone(w.policies); i == len(w.policies) {
			w.made++
			w.policies = append(w.policies, anyPolicy(w.made).Draw(t, "new policy"))
		} else if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
			w.policies = slices.Delete(w.policies, i, i+1)
		} else {
			edited := anyPolicy(w.made).Draw(t, "edited policy")
			edited.Name, edited.Created = w.policies[i].Name, w.policies[i].Created
			w.policies[i] = edited
		}
	default:
		w.editSlice(t)
	}
}

func (w *world) editSlice(t *rapid.T) {
	i := rapid.IntRange(0, 7).Draw(t, "slice")
	if i >= len(w.slices) {
		w.slice(Slice{
			Key: fmt.Sprint("s", len(w.slices)), Consumer: anyID.Draw(t, "consumer"), Class: anyClass.Draw(t, "class"),
			Created: rapid.Int64Range(0, 3).Draw(t, "created"), Request: anyAmounts.Draw(t, "request"),
		})
		return
	}
	s := &w.slices[i]
	switch rapid.IntRange(0, 6).Draw(t, "edit") {
	case 6:
		s.Recorded = anyAmounts.Draw(t, "recorded")
	case 5:
		if s.Granted != nil {
			s.Used = anyAmounts.Draw(t, "used")
		}
	case 0:
		s.Class = anyClass.Draw(t, "new class")
	case 1:
		s.Frozen = !s.Frozen
	case 2:
		s.Invalid = !s.Invalid
	default:
		s.Request = anyAmounts.Draw(t, "new request")
	}
}

func TestWhatIsAlwaysTrueOfGrants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(1, 4).Draw(t, "events") {
				w.happen(t)
			}
			former := w.former // As terms finds it.
			terms := w.terms()
			answers := Allocate(terms, w.slices)
			checkOrder(t, w, former, answers)
			for i := range answers {
				checkAnswer(t, terms, &w.slices[i], &answers[i])
			}
			checkGroups(t, terms, w, answers)
			checkPools(t, terms, w, answers)
			// Some answers are lost or late.
			for i := range answers {
				if rapid.IntRange(0, 3).Draw(t, "lost") > 0 {
					w.write(i, &answers[i])
				}
			}
		}
		w.settle(t)
		checkRaiseTakesNothing(t, w)
	})
}

// An upgrade gives defaults to policies that had none.
func TestNewDefaultsTakeNothingFromAnybody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		for range rapid.IntRange(4, 20).Draw(t, "events") {
			w.happen(t)
		}
		for i := range w.policies {
			w.policies[i].Slices.Defaults = nil
			w.policies[i].Slices.Filters = nil // They see the defaults.
		}
		w.settle(t)
		if overridden(w) {
			return
		}
		before := slices.Clone(w.slices)
		w.policies = slices.Clone(w.policies)
		for i := range w.policies {
			w.policies[i].Slices.Defaults = anyAmounts.Draw(t, "defaults")
		}
		w.settle(t)
		for i := range before {
			for name, had := range before[i].Granted {
				if got := w.slices[i].Granted[name]; got < had {
					t.Fatalf("%s was lowered from %d to %d of %s", before[i].Key, had, got, name)
				}
			}
		}
	})
}

// checkOrder checks that the order of slices and policies does not matter.
func checkOrder(t *rapid.T, w *world, former offer.FormerPolicies, want []Answer) {
	other := &world{ledger: w.ledger, policies: slices.Clone(w.policies), slices: slices.Clone(w.slices), former: former, recordedBy: maps.Clone(w.recordedBy)}
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	rng.Shuffle(len(other.policies), func(i, j int) {
		other.policies[i], other.policies[j] = other.policies[j], other.policies[i]
	})
	rng.Shuffle(len(other.slices), func(i, j int) { other.slices[i], other.slices[j] = other.slices[j], other.slices[i] })
	byKey := map[string]string{}
	for i, a := range Allocate(other.terms(), other.slices) {
		byKey[other.slices[i].Key] = fmt.Sprint(a.Verdict, a.Amounts(), a.Reason(), a.Explain("x"))
	}
	for i, a := range want {
		if diff := cmp.Diff(byKey[w.slices[i].Key], fmt.Sprint(a.Verdict, a.Amounts(), a.Reason(), a.Explain("x"))); diff != "" {
			t.Fatalf("another order of the input changes the answer for %s:\n%s", w.slices[i].Key, diff)
		}
	}
}

// now returns what counts for a slice in its class while the answer is being written: the larger of
// what it had there, what the answer grants, what its pods use, and what is on record.
func now(s *Slice, a *Answer, resource string) int64 {
	is := max(a.Amounts()[resource], s.Used[resource], s.Recorded[resource])
	if s.GrantedIn != "" && s.GrantedIn != s.Class {
		return is
	}
	return max(is, s.Granted[resource])
}

// checkAnswer checks one answer against the request and the reclaim.
func checkAnswer(t reporter, terms *offer.AllocationInput, s *Slice, a *Answer) {
	amounts := a.Amounts()
	for name, amount := range amounts {
		asked, byRequest := s.Request[name]
		if !byRequest { // What its pods use of a default stays when the default falls.
			asked = max(askedOf(s, a.Policy, name), min(s.Granted[name], s.Used[name]))
			if a.Policy != nil && pausedFor(a.Policy, s.Consumer) { // Nor does a pause take back a default that falls.
				asked = max(asked, s.Granted[name])
			}
		}
		if amount < 0 || !s.Invalid && amount > asked {
			t.Fatalf("%s is granted %d of %s but asked for %d", s.Key, amount, name, asked)
		}
		if amount > s.Granted[name] && (s.Frozen || s.Invalid || a.Policy == nil || pausedFor(a.Policy, s.Consumer) || a.Policy.Stopped || a.Ruling != offer.Admitted) {
			t.Fatalf("%s was raised to %d of %s, though frozen %v, invalid %v, policy %v, ruling %v", s.Key, amount, name, s.Frozen, s.Invalid, a.Policy, a.Ruling)
		}
	}
	for _, name := range []string{"cpu", "memory", "pods"} {
		if amounts[name] == 0 && a.Reason() == ReasonGranted {
			t.Fatalf("%s lacks %s, and the answer is %s", s.Key, name, a.Explain(""))
		}
	}
	if s.Granted == nil {
		if a.Verdict == Accept && a.Policy.Slices.DenyExcess && !a.Whole() {
			t.Fatalf("%s was granted only %v by a policy that grants all or nothing", s.Key, amounts)
		}
		return
	}
	if a.Verdict == Deny {
		t.Fatalf("%s has %v, which a denial does not take back", s.Key, s.Granted)
	}
	running := terms.View.Used.Of(s.Consumer) != nil
	for name, had := range s.Granted {
		amount, named := amounts[name]
		if !named {
			t.Fatalf("%s had %s, but the answer does not list it", s.Key, name)
		}
		asked := int64(math.MaxInt64)
		if !s.Invalid {
			asked = askedOf(s, a.Policy, name)
		}
		reclaim := s.Reclaim
		if a.Policy != nil {
			reclaim = reclaimOf(a.Policy, s.Consumer)
		}
		keep := min(had, asked)
		switch {
		case reclaim == offer.Retain && (s.GrantedIn == s.Class || a.Policy == nil) && amount < keep:
			t.Fatalf("%s was lowered from %d to %d of %s under Retain", s.Key, had, amount, name)
		case reclaim == offer.Unused && running && (name == "cpu" || name == "memory") && keep > 0 && amount == 0:
			t.Fatalf("the consumer of %s has pods, but the slice is granted no %s", s.Key, name)
		}
	}
}

// checkGroups checks that the slices of a consumer in a class are together not raised above its
// limit, and not lowered below its use.
func checkGroups(t reporter, terms *offer.AllocationInput, w *world, answers []Answer) {
	type groupSums struct {
		terms          *offer.ConsumerTerms
		reclaim        offer.Reclaim
		now, got, keep map[string]int64
		raised         map[string]bool
	}
	type amountOf struct {
		groupKey
		resource string
	}
	groups := map[groupKey]*groupSums{}
	// left is what slices still have from a former class.
	left := map[amountOf]int64{}
	for i := range answers {
		s, a := &w.slices[i], &answers[i]
		key := groupKey{s.Class, s.Consumer}
		g := groups[key]
		if g == nil {
			g = &groupSums{terms: terms.Terms(s.Class, s.Consumer), now: map[string]int64{}, got: map[string]int64{}, keep: map[string]int64{}, raised: map[string]bool{}}
			g.reclaim = s.Reclaim
			if g.terms != nil {
				g.reclaim = reclaimOf(g.terms.Policy, s.Consumer)
			}
			groups[key] = g
		}
		if g.terms == nil && s.Reclaim == offer.Evict {
			g.reclaim = offer.Evict
		}
		for _, name := range []string{"cpu", "memory", "pods", "gpu"} {
			got := s.Granted[name]
			if a.Verdict == Accept {
				got = a.Amounts()[name]
			}
			asked := int64(math.MaxInt64)
			if !s.Invalid {
				asked = askedOf(s, a.Policy, name)
			}
			g.now[name] = capacity.Sum(g.now[name], now(s, a, name))
			if from := (groupKey{s.GrantedIn, s.Consumer}); s.GrantedIn != "" && from != key {
				left[amountOf{from, name}] = capacity.Sum(left[amountOf{from, name}], s.Granted[name])
			}
			g.got[name] = capacity.Sum(g.got[name], got)
			if g.terms == nil || s.GrantedIn == "" || s.GrantedIn == s.Class {
				g.keep[name] = capacity.Sum(g.keep[name], min(s.Granted[name], asked))
			}
			g.raised[name] = g.raised[name] || got > max(s.Granted[name], s.Used[name], s.Recorded[name])
		}
	}
	for key, g := range groups {
		used := usedBy(terms, key.consumer)
		if g.reclaim == offer.Unused {
			for name, got := range g.got {
				if floor := min(g.keep[name], used.At(terms.Column(name))); got < floor {
					t.Fatalf("%v uses %d of %s but keeps only %d", key, floor, name, got)
				}
			}
		}
		if g.terms == nil {
			continue
		}
		for i := range g.terms.Steps {
			step := &g.terms.Steps[i]
			limit, by := limitOf(step)
			name := step.Resource
			if has := capacity.Sum(g.now[name], left[amountOf{key, name}]); by != Unbound && g.raised[name] && has > limit {
				t.Fatalf("%v was raised to %d of %s, above its limit %d", key, has, name, limit)
			}
		}
	}
}

func pausedFor(p *offer.Policy, consumer string) bool {
	_, alone := p.PausedConsumers[consumer]
	return p.Paused || alone
}

// reclaimOf returns the reclaim of a policy, which takes nothing back from a consumer while it is paused.
func reclaimOf(p *offer.Policy, consumer string) offer.Reclaim {
	if pausedFor(p, consumer) {
		return offer.Retain
	}
	return p.Reclaim
}

func askedOf(s *Slice, p *offer.Policy, name string) int64 {
	if asked, ok := s.Request[name]; ok {
		return asked
	}
	if p == nil {
		return s.Granted[name] // The defaults of the former policy are unknown.
	}
	return p.Slices.Defaults[name]
}

// checkPools checks that, whatever part of the answers is written, a raise exceeds no pool by
// grants and use, and no union by the grants of the pools within it.
func checkPools(t reporter, terms *offer.AllocationInput, w *world, answers []Answer) {
	if overridden(w) {
		return
	}
	for in, p := range terms.Pools {
		own := newSums()
		granted(terms, w, answers, func(s *Slice, pool int, name string, had, claim, has int64) {
			if pool == in {
				own.add(s.Consumer, name, cameFrom(terms, s, in), true, had, claim, has)
			}
		})
		own.check(t, terms, &p, p.Granter, p.Capacity)
	}
	for _, u := range unionsOf(terms.Pools) {
		all := newSums()
		granted(terms, w, answers, func(s *Slice, pool int, name string, had, claim, has int64) {
			all.add(s.Consumer, name, wasOn(terms, s, u.within), slices.Contains(u.within, pool), had, claim, has)
		})
		var in *offer.PolicyPool
		if u.usedPool != noPool {
			in = &terms.Pools[u.usedPool]
		}
		all.check(t, terms, in, fmt.Sprint(u.within), u.capacity)
	}
}

// granted yields, for each slice and resource: the pool that it is granted from, noPool for none;
// what the slice had; how much of that it can claim in a pool that it moved to; and what it has
// now.
func granted(terms *offer.AllocationInput, w *world, answers []Answer, yield func(s *Slice, pool int, name string, had, claim, has int64)) {
	for i := range answers {
		s, a := &w.slices[i], &answers[i]
		of, pool := terms.Terms(s.Class, s.Consumer), noPool
		if of != nil {
			pool = of.Pool
		}
		used := usedBy(terms, s.Consumer)
		for _, name := range terms.View.Columns {
			// In a pool that it moved to, a slice can claim what its pods use; after a change of
			// class, at most one unit.
			had, has := s.Granted[name], a.Amounts()[name]
			claim := min(had, has, capacity.Sum(used.At(terms.Column(name)), 1))
			switch changedClass := s.GrantedIn != "" && s.GrantedIn != s.Class; {
			case changedClass:
				claim = min(claim, 1)
			case of != nil && reclaimOf(of.Policy, s.Consumer) == offer.Retain:
				claim = min(had, has) // Retain keeps all of it, whichever policy of the class decides.
			}
			uses := max(s.Used[name], s.Recorded[name])
			yield(s, pool, name, max(had, uses), max(claim, uses), max(has, uses))
		}
	}
}

// cameFrom reports whether what a slice has counts in the pool from the start: it was granted from
// this pool, from one within it, or by a policy of its class that is gone.
func cameFrom(terms *offer.AllocationInput, s *Slice, in int) bool {
	if s.GrantedIn != "" && s.GrantedIn != s.Class {
		return false
	}
	from := terms.PoolOf(s.GrantedBy)
	switch {
	case s.GrantedBy == "" || from == nil:
		return true
	case !terms.InForce(s.GrantedBy) && terms.Terms(s.Class, s.Consumer) == nil:
		return slices.Contains(from.Overlaps, in)
	}
	return slices.Contains(from.Within, in)
}

// wasOn reports whether what a slice has was granted from one of the pools, or by an unknown
// policy.
func wasOn(terms *offer.AllocationInput, s *Slice, pools []int) bool {
	from := terms.PoolOf(s.GrantedBy)
	if s.GrantedBy == "" || from == nil || slices.ContainsFunc(pools, func(in int) bool { return &terms.Pools[in] == from }) {
		return true
	}
	if terms.InForce(s.GrantedBy) {
		return false
	}
	var cells []int
	for _, in := range pools {
		cells = append(cells, terms.Pools[in].Cells...)
	}
	return len(from.Overlaps) > 0 && !slices.ContainsFunc(from.Cells, func(cell int) bool { return !slices.Contains(cells, cell) })
}

// sums are what is committed of some nodes: before the answers are written, and the most that can
// be committed while they are written.
type sums struct {
	before, after committed
	raised        map[string]bool
}

func newSums() sums { return sums{committed{}, committed{}, map[string]bool{}} }

// add adds what a slice had of these nodes before, what it has of them now, or both. On nodes that
// it moves to, it starts with what it can claim there.
func (s sums) add(consumer, resource string, before, now bool, had, claim, has int64) {
	switch {
	case !before && !now:
		return
	case !now:
		has = 0
	case !before:
		had = claim
	}
	s.raised[resource] = s.raised[resource] || has > had
	s.before.add(consumer, resource, had)
	s.after.add(consumer, resource, max(had, has))
}

// check checks the sums against a capacity. p is the pool whose use counts, nil for a union of
// several.
func (s sums) check(t reporter, terms *offer.AllocationInput, p *offer.PolicyPool, of string, capacity capacity.Row) {
	for name := range s.raised {
		c := terms.Column(name)
		was, is := s.before.sum(p, c, name), s.after.sum(p, c, name)
		if s.raised[name] && is > max(was, capacity.At(c)) {
			t.Fatalf("%d of %s committed of the pool of %s, which has %d; before, %d", is, name, of, capacity.At(c), was)
		}
	}
}

// committed is what consumers were granted, by consumer and resource.
type committed map[string]map[string]int64

func (m committed) add(consumer, resource string, amount int64) {
	if m[consumer] == nil {
		m[consumer] = map[string]int64{}
	}
	m[consumer][resource] = capacity.Sum(m[consumer][resource], amount)
}

// sum returns what is committed of a resource, use included.
func (m committed) sum(p *offer.PolicyPool, column int, resource string) int64 {
	if p == nil {
		p = &offer.PolicyPool{}
	}
	var sum int64
	for consumer, used := range p.Users {
		sum = capacity.Sum(sum, max(m[consumer][resource], used.At(column)))
	}
	for consumer, granted := range m {
		if p.UsedBy(consumer) == nil {
			sum = capacity.Sum(sum, granted[resource])
		}
	}
	return sum
}

// overridden reports whether a policy overrides with fixed amounts, which no pool bounds.
func overridden(w *world) bool {
	return slices.ContainsFunc(w.policies, func(p offer.Policy) bool { return len(p.Overrides) > 0 })
}

// checkRaiseTakesNothing checks that, once everything is settled, a request for more takes nothing
// from other slices.
func checkRaiseTakesNothing(t *rapid.T, w *world) {
	if len(w.slices) == 0 || overridden(w) {
		return
	}
	i := rapid.IntRange(0, len(w.slices)-1).Draw(t, "greedy")
	before := slices.Clone(w.slices)
	more := maps.Clone(w.slices[i].Request)
	for name := range more {
		more[name] = capacity.Sum(more[name], rapid.Int64Range(1, 50).Draw(t, "more"))
	}
	w.slices[i].Request = more
	w.settle(t)
	for j := range w.slices {
		if j == i {
			continue
		}
		for name, had := range before[j].Granted {
			if got := w.slices[j].Granted[name]; got < had {
				t.Fatalf("%s asked for more, and %s was lowered from %d to %d of %s", w.slices[i].Key, before[j].Key, had, got, name)
			}
		}
	}
}

// usedBy returns what a consumer's pods request on all nodes, by column.
func usedBy(terms *offer.AllocationInput, consumer string) capacity.Row {
	if use := terms.View.Used.Of(consumer); use != nil {
		return use.Everywhere
	}
	return nil
}
