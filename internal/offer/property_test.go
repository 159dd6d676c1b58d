package offer

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
)

var (
	anyResource = rapid.SampledFrom([]string{"cpu", "memory", "pods", "nvidia.com/gpu"})
	anyAmount   = rapid.OneOf(rapid.Int64Range(0, 100), rapid.SampledFrom([]int64{1 << 40, math.MaxInt64}))
	anyAmounts  = rapid.Map(rapid.MapOf(anyResource, anyAmount), func(m map[string]int64) capacity.Amounts { return m })
	anyClass    = rapid.SampledFrom([]string{"", "gold", "silver"})
	anyID       = rapid.SampledFrom([]string{"rome", "oslo", "paris", "lima"})
	anyZone     = rapid.SampledFrom([]string{"a", "b"})
	anyState    = rapid.SampledFrom([]capacity.NodeState{capacity.Ready, capacity.Ready, capacity.NotReady, capacity.Cordoned})
)

func inZone(zone string) capacity.Selector {
	return withLabel("zone", zone)
}

// zoneFilter admits the nodes and consumers of a zone.
type zoneFilter string

func (f zoneFilter) String() string { return string(f) }

func (f zoneFilter) admits(labels map[string]string) (bool, string) {
	return labels["zone"] == string(f), "not in zone " + string(f)
}

// nodesOf is a zoneFilter of nodes.
type nodesOf struct{ zoneFilter }

func (f nodesOf) Admits(n *capacity.Node) (bool, string) { return f.admits(n.Labels) }
func (f zoneFilter) Admits(c Consumer) (bool, string)    { return f.admits(c.Labels) }

var anyScope = rapid.Custom(func(t *rapid.T) Scope {
	switch rapid.IntRange(0, 4).Draw(t, "scope") {
	case 3:
		return Scope{Filters: []ConsumerFilter{zoneFilter(anyZone.Draw(t, "zone"))}}
	case 4:
		s := ids(rapid.SliceOfN(anyID, 1, 3).Draw(t, "ids")...)
		s.Filters = []ConsumerFilter{zoneFilter(anyZone.Draw(t, "zone"))}
		return s
	case 0:
		return ids(rapid.SliceOfN(anyID, 1, 3).Draw(t, "ids")...)
	case 1:
		return Scope{Selector: inZone(anyZone.Draw(t, "zone"))}
	}
	return Scope{}
})

var anyShares = rapid.Custom(func(t *rapid.T) Shares {
	return Shares{
		Percent:     rapid.Int64Range(0, 100).Draw(t, "share"),
		Percentages: rapid.MapOf(anyResource, rapid.Int64Range(1, 100)).Draw(t, "shares"),
	}
})

func anyPolicy(i int) *rapid.Generator[Policy] {
	return rapid.Custom(func(t *rapid.T) Policy {
		p := Policy{
			Name: fmt.Sprint("p", i), Version: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version"),
			Created: rapid.Int64Range(0, 2).Draw(t, "created"), Priority: rapid.Int32Range(0, 1).Draw(t, "priority"),
			Class: anyClass.Draw(t, "class"), DryRun: rapid.IntRange(0, 5).Draw(t, "dry run") == 0,
			Paused: rapid.IntRange(0, 3).Draw(t, "paused") == 0, PausedUntil: rapid.SampledFrom([]int64{0, 0, 1_000_030, 1_100_000}).Draw(t, "paused until"),
			PausedConsumers: rapid.MapOfN(anyID, rapid.SampledFrom([]int64{0, 1_000_030}), 0, 2).Draw(t, "paused consumers"),
			Stopped:         rapid.IntRange(0, 5).Draw(t, "stopped") == 0,
			Consumers:       anyScope.Draw(t, "consumers"), Max: anyAmounts.Draw(t, "max"),
			ThresholdPercent: rapid.SampledFrom([]int64{0, 5, 100}).Draw(t, "threshold"),
			Reclaim:          rapid.SampledFrom([]Reclaim{Unused, Evict, Retain}).Draw(t, "reclaim"),
		}
		if rapid.Bool().Draw(t, "limited") {
			p.Resources = rapid.SliceOfN(anyResource, 1, 4).Draw(t, "resources")
		}
		switch rapid.IntRange(0, 3).Draw(t, "source") {
		case 0:
			p.Fixed = anyAmounts.Draw(t, "fixed amounts")
		case 1:
			p.External = &External{Zero: rapid.Bool().Draw(t, "zero")}
			p.External.Address = rapid.SampledFrom([]string{"a:1", "b:1"}).Draw(t, "address")
		default:
			p.Nodes = &Nodes{
				Count:       rapid.SampledFrom([]Count{Free, Allocatable}).Draw(t, "count"),
				Reserve:     anyAmounts.Draw(t, "reserve"),
				Percent:     rapid.Int64Range(1, 1000).Draw(t, "percent"),
				Percentages: rapid.MapOf(anyResource, rapid.Int64Range(1, 1000)).Draw(t, "percentages"),
			}
			if rapid.Bool().Draw(t, "shared") {
				p.MaxShares = anyShares.Draw(t, "shares")
			}
			if rapid.IntRange(0, 2).Draw(t, "peers") == 0 {
				p.Nodes.Selection.Peers = &capacity.Peers{Depth: rapid.IntRange(1, 2).Draw(t, "depth")}
			}
			if rapid.Bool().Draw(t, "zoned") {
				p.Nodes.Selection.Selector = inZone(anyZone.Draw(t, "node zone"))
			}
			if rapid.IntRange(0, 2).Draw(t, "filtered") == 0 {
				p.Nodes.Selection.Filters = []capacity.NodeFilter{nodesOf{zoneFilter(anyZone.Draw(t, "filtered zone"))}}
			}
		}
		if rapid.Bool().Draw(t, "overridden") {
			p.Overrides = []Override{{Consumers: anyScope.Draw(t, "override"), Fixed: anyAmounts.Draw(t, "override fixed")}}
			if p.Nodes != nil {
				p.Overrides[0].MaxShares = anyShares.Draw(t, "override shares")
			}
		}
		return p
	})
}

// anyInput draws policies, consumers and grants, and changes the cluster.
func anyInput(t *rapid.T, c cluster) Input {
	var in Input
	for i := range rapid.IntRange(0, 5).Draw(t, "policies") {
		in.Policies = append(in.Policies, anyPolicy(i).Draw(t, "policy"))
	}
	for _, id := range rapid.SliceOfNDistinct(anyID, 0, 4, rapid.ID).Draw(t, "consumers") {
		in.Consumers = append(in.Consumers, Consumer{ID: id, Labels: map[string]string{"zone": anyZone.Draw(t, "zone")}})
	}
	in.Grants = map[string]map[string]capacity.Amounts{}
	for _, class := range rapid.SliceOfDistinct(anyClass, rapid.ID).Draw(t, "granting") {
		in.Grants[class] = rapid.MapOf(anyID, anyAmounts).Draw(t, "grants")
	}
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		node := fmt.Sprint("n", rapid.IntRange(0, 3).Draw(t, "node"))
		key := fmt.Sprint("pod", rapid.IntRange(0, 9).Draw(t, "pod"))
		switch rapid.IntRange(0, 3).Draw(t, "event") {
		case 0:
			n := capacity.Node{
				Name: node, State: anyState.Draw(t, "state"), Labels: map[string]string{"zone": anyZone.Draw(t, "zone")},
				Allocatable: anyAmounts.Draw(t, "allocatable"),
			}
			if n.Virtual = rapid.IntRange(0, 2).Draw(t, "virtual") == 0; n.Virtual {
				n.Peer, n.Depth = rapid.OneOf(anyID, rapid.Just("")).Draw(t, "peer"), rapid.IntRange(0, 2).Draw(t, "node depth")
			}
			c.SetNode(n)
		case 1:
			c.DeletePod(key)
		default:
			c.SetPod(capacity.Pod{
				Key: key, Node: node, Consumer: rapid.OneOf(anyID, rapid.Just("")).Draw(t, "consumer"),
				Requests: anyAmounts.Draw(t, "requests"),
			})
		}
	}
	monitors := map[capacity.Monitor]capacity.Answers{}
	(&LastAnswers{}).Update(&in, func(m capacity.Monitor) capacity.Answers {
		if _, asked := monitors[m]; !asked {
			monitors[m] = anyAnswers.Draw(t, "answers")
		}
		return monitors[m]
	})
	in.View = c.View(Selections(in.Policies), append(ResourceNames(in.Policies), AnsweredNames(in.External)...)...)
	return in
}

// anyAnswers draws what a monitor has answered so far.
var anyAnswers = rapid.Custom(func(t *rapid.T) capacity.Answers {
	a := capacity.Answers{Of: map[string]capacity.Answered{}, Problem: rapid.SampledFrom([]string{"", "it is away"}).Draw(t, "problem")}
	for range rapid.IntRange(0, 3).Draw(t, "distinct") {
		a.Distinct = append(a.Distinct, capacity.Answer{Amounts: anyAmounts.Draw(t, "answer"), Stale: rapid.Bool().Draw(t, "stale")})
	}
	for _, id := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"", "rome", "oslo", "lima"}), rapid.ID).Draw(t, "answered") {
		if len(a.Distinct) > 0 {
			a.Of[id] = capacity.Answered{Index: rapid.IntRange(0, len(a.Distinct)-1).Draw(t, "index"), At: time.Unix(1000, 0)}
		}
	}
	return a
})

func column(v capacity.View, r capacity.Row, name string) int64 {
	return r.At(slices.Index(v.Columns, name))
}

func TestWhatIsAlwaysTrueOfOffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster()
		var prev *Result
		now := time.Unix(1_000_000, 0)
		for range rapid.IntRange(1, 4).Draw(t, "evaluations") {
			in := anyInput(t, c)
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Minute, InheritedFor, OwedFor / 2, OwedFor}).Draw(t, "time passes"))
			in.Now = now
			r := Evaluate(in.After(prev))
			checkPools(t, r)
			explainer := r.Explainer()
			for id, entry := range r.Entries.All {
				checkEntry(t, id, entry)
				checkExplained(t, id, entry, explainer.Of(id))
			}
			checkExplained(t, "anyone", r.Default, explainer.Default())
			if prev != nil {
				checkChanges(t, in, prev, r, func(*Offer) bool { return true })
				checkDefault(t, in, prev, r)
				checkPaused(t, in, prev, r)
				// A new process knows what policies offered, but not what was withdrawn.
				in.Recorded = pastOf(prev)
				restarted := Evaluate(in)
				checkChanges(t, in, prev, restarted, func(o *Offer) bool { return o.Policy != "" })
				checkPaused(t, in, &Result{Offers: Offers{Entries: prev.Readable().inForce()}}, restarted)
				in.Recorded = cut(t, prev)
				checkSilence(t, prev, Evaluate(in))
			}
			checkOrder(t, in, prev, r)
			checkAlone(t, in, prev, r)
			checkRecords(t, in, r)
			prev = r
		}
	})
}

// checkPools checks that what is committed and what remains make up the pool.
func checkPools(t *rapid.T, r *Result) {
	for name, report := range r.Reports {
		for resource, pool := range report.Capacity {
			committed, remaining := report.Committed[resource], report.Remaining[resource]
			if pool < 0 || committed < 0 || remaining < 0 {
				t.Fatalf("policy %s, %s: negative amount: pool %d, committed %d, remaining %d", name, resource, pool, committed, remaining)
			}
			if remaining > 0 && committed+remaining != pool || remaining == 0 && committed < pool {
				t.Fatalf("policy %s, %s: committed %d and remaining %d of pool %d", name, resource, committed, remaining, pool)
			}
		}
	}
}

// inForce returns the entry without withdrawn offers.
func (e *Entry) inForce() *Entry { return e.without((*Offer).Withdrawn) }

// checkEntry checks that offers are sorted and not empty, and that no amount is negative.
func checkEntry(t *rapid.T, id string, entry *Entry) {
	for i, o := range entry.Offers {
		if i > 0 && entry.Offers[i-1].Class >= o.Class {
			t.Fatalf("%s: offers not sorted by class", id)
		}
		if len(o.Amounts) == 0 {
			t.Fatalf("%s in %q: no amounts", id, o.Class)
		}
		for _, a := range o.Amounts {
			if a.Value < 0 {
				t.Fatalf("%s in %q: %d of %s", id, o.Class, a.Value, a.Resource)
			}
		}
	}
}

// checkExplained checks that the latest evaluation explains each amount, from which the published
// amount differs by at most the threshold. Unless reclaim holds it, an amount is not above the
// policy's max, and that of a revoked resource is 0.
func checkExplained(t *rapid.T, id string, entry *Entry, explained []Explained) {
	if len(explained) != len(entry.Offers) {
		t.Fatalf("%s: %d offers, but %d explanations", id, len(entry.Offers), len(explained))
	}
	for i, x := range explained {
		if x.Offer != entry.Offers[i] || len(x.Now) != len(x.Amounts) || len(x.Because()) != len(x.Amounts) {
			t.Fatalf("%s in %q: %d amounts, %d steps, %d lines", id, x.Class, len(x.Amounts), len(x.Now), len(x.Because()))
		}
		for j, a := range x.Amounts {
			s := x.Now[j]
			if s.Resource != a.Resource || s.Offer != a.Value && !withinPercent(a.Value, s.Offer, 100) {
				t.Fatalf("%s in %q: %d of %s is not explained by %+v", id, x.Class, a.Value, a.Resource, s)
			}
			if s.Paused {
				continue
			}
			if s.Max >= 0 && s.Held < 0 && s.Offer > s.Max {
				t.Fatalf("%s in %q: %d of %s above max %d", id, x.Class, s.Offer, a.Resource, s.Max)
			}
			if p := x.plan; p != nil && p.Stopped && s.Held < 0 && s.Offer > 0 {
				t.Fatalf("%s in %q: %d of %s, and policy %s is stopped", id, x.Class, s.Offer, a.Resource, p.Name)
			}
			if p := x.plan; p != nil && s.Source == FromNodes && s.Held < 0 {
				if share := p.maxShare(s.Resource, x.Override); share > 0 && s.Offer > capacity.Share(s.Pool, share, 100) {
					t.Fatalf("%s in %q: %d of %s above %d%% of %d", id, x.Class, s.Offer, a.Resource, share, s.Pool)
				}
			}
			if s.Gives < 0 || s.Taken < 0 || s.Taken > s.Gives || s.Gives > s.Pool || s.Gives > 0 && s.Held < 0 && s.Offer > s.Pool-s.Gives {
				t.Fatalf("%s in %q: %d of %s, of a pool of which it gives a part itself: %+v", id, x.Class, s.Offer, a.Resource, s)
			}
			if s.Source == FromRevocation && s.Held < 0 && a.Value != 0 {
				t.Fatalf("%s in %q: revoked %s is %d", id, x.Class, a.Resource, a.Value)
			}
			if s.Offer != a.Value && x.plan.Threshold(s.Resource) == 0 {
				t.Fatalf("%s in %q: %d of %s is published without a threshold, but %d is current", id, x.Class, a.Value, a.Resource, s.Offer)
			}
		}
	}
}

// checkPaused checks the offers of policies that are paused: what a consumer had neither rises nor falls, and one
// that had nothing gets no more than it uses and was granted.
func checkPaused(t *rapid.T, in Input, prev, r *Result) {
	paused := map[string]pause{}
	for i := range in.Policies {
		paused[in.Policies[i].Name] = in.Policies[i].pauseAt(in.Now)
	}
	for id, entry := range r.Entries.All {
		before := prev.Readable().Of(id)
		for _, o := range entry.Offers {
			if o.Withdrawn() || !paused[o.Policy].of(id) {
				continue
			}
			var had *Offer
			if before != nil {
				had = before.In(o.Class)
			}
			for _, a := range o.Amounts {
				if had != nil {
					if value, listed := had.Amount(a.Resource); listed {
						if a.Value != value {
							t.Fatalf("%s in %q: %s moved from %d to %d, and policy %s is paused", id, o.Class, a.Resource, value, a.Value, o.Policy)
						}
						continue
					}
				}
				most := max(in.Grants[o.Class][id][a.Resource], 0)
				if use := in.View.Used.Of(id); use != nil {
					most = max(most, column(in.View, use.Everywhere, a.Resource))
					if EvictsAtZero(a.Resource) {
						most = max(most, 1)
					}
				}
				if a.Value > most {
					t.Fatalf("%s in %q: %d of %s, and it has %d, and policy %s is paused", id, o.Class, a.Value, a.Resource, most, o.Policy)
				}
			}
		}
	}
	for _, o := range r.Default.Offers {
		if !o.Withdrawn() && paused[o.Policy].everybody && slices.ContainsFunc(o.Amounts, func(a Amount) bool { return a.Value != 0 }) {
			t.Fatalf("anyone in %q: %v, and policy %s is paused", o.Class, o.Amounts, o.Policy)
		}
	}
}

// inForce returns the entries without withdrawn offers.
func (e Entries) inForce() Entries {
	all := map[string]*Entry{}
	for id, entry := range e.All {
		all[id] = entry.inForce()
	}
	return EntriesOf(all)
}

// checkRecords: a process that goes on from records of all offers evaluates the same.
func checkRecords(t *rapid.T, in Input, r *Result) {
	versions := map[string]string{}
	for _, p := range in.Policies {
		versions[p.Name] = p.Version
	}
	recorded := func(e *Entry) *Entry {
		out := &Entry{}
		for _, o := range e.Offers {
			record := Offer{
				Class: o.Class, Policy: o.Policy, Override: o.Override, Amounts: SortedAmounts(o.ByResource()),
				LastPolicy: o.LastPolicy, Reclaim: o.Reclaim, Moved: o.Moved,
			}
			if !o.Withdrawn() {
				record.Version = versions[o.Policy]
			}
			out.Offers = append(out.Offers, &record)
		}
		return out
	}
	byID := map[string]*Entry{}
	for id, entry := range r.Entries.All {
		byID[id] = recorded(entry)
	}
	in.Previous = Offers{Entries: EntriesOf(byID), Default: recorded(r.Default)}
	for _, d := range r.Departed {
		in.Previous.Departed = append(in.Previous.Departed, Departed{ID: d.ID, Entry: recorded(d.Entry), Since: d.Since})
	}
	want, got := Evaluate(in.After(r)), Evaluate(in)
	if diff := cmp.Diff(want.Offers, got.Offers, cmp.AllowUnexported(Entries{}, Offer{}), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("after records (-result +records):\n%s", diff)
	}
}

// pastOf returns the records that an earlier process wrote of its result. Consumers that have departed, and offers whose
// policy is awaited, may have the reclaim of an earlier edit of the same policy.
func pastOf(r *Result) []PreviousOffers {
	type place struct {
		policy, class string
		reclaim       Reclaim
	}
	byPlace := map[place]*PreviousOffers{}
	for id, entry := range r.Readable().All {
		for _, o := range entry.Offers {
			if o.Policy == "" {
				continue
			}
			at := place{o.Policy, o.Class, o.Reclaim}
			p := byPlace[at]
			if p == nil {
				p = &PreviousOffers{Policy: o.Policy, Class: o.Class, Reclaim: o.Reclaim, Offers: map[string]capacity.Amounts{}, Complete: true}
				byPlace[at] = p
			}
			p.Offers[id] = capacity.Amounts{}
			for _, a := range o.Amounts {
				p.Offers[id][a.Resource] = a.Value
			}
		}
	}
	var past []PreviousOffers
	for _, p := range byPlace {
		past = append(past, *p)
	}
	return past
}

// cut returns the records of a result in which some consumers are not listed.
func cut(t *rapid.T, r *Result) []PreviousOffers {
	past := pastOf(r)
	place := func(p *PreviousOffers) string { return fmt.Sprint(p.Policy, "/", p.Class, "/", p.Reclaim) }
	slices.SortFunc(past, func(a, b PreviousOffers) int { return strings.Compare(place(&a), place(&b)) })
	for i := range past {
		p := &past[i]
		p.Complete = false
		names := map[string]struct{}{}
		for _, id := range slices.Sorted(maps.Keys(p.Offers)) {
			for name := range p.Offers[id] {
				names[name] = struct{}{}
			}
			if rapid.Bool().Draw(t, "cut") {
				delete(p.Offers, id)
			}
		}
		p.Names = slices.Sorted(maps.Keys(names))
	}
	for _, o := range r.Default.inForce().Offers {
		p := PreviousOffers{Policy: o.Policy, Class: o.Class}
		for _, a := range o.Amounts {
			p.Names = append(p.Names, a.Resource)
		}
		past = append(past, p)
	}
	return past
}

// checkSilence checks that everything that a policy offered is still listed, for known and unknown
// consumers.
func checkSilence(t *rapid.T, prev, r *Result) {
	check := func(id string, old, now *Entry) {
		for _, o := range old.inForce().Offers {
			left := now.In(o.Class)
			if left == nil {
				t.Fatalf("%s: class %q is gone without zeros", id, o.Class)
			}
			for _, a := range o.Amounts {
				if value, named := left.Amount(a.Resource); !named || value < 0 {
					t.Fatalf("%s in %q: %s is %d, listed %t", id, o.Class, a.Resource, value, named)
				}
			}
		}
	}
	for id, old := range prev.Entries.All {
		check(id, old, r.Of(id))
	}
	check("unknown consumers", prev.Default, r.Default)
}

// checkChanges checks the offers of every consumer that had an entry: what was offered stays
// listed, and is not taken from running pods.
func checkChanges(t *rapid.T, in Input, prev, r *Result, looked func(*Offer) bool) {
	ago := func(since int64, long time.Duration) bool { return in.Now.Sub(time.Unix(since, 0)) >= long }
	for id, old := range prev.Readable().All {
		if i, found := prev.departed(id); found && ago(prev.Departed[i].Since, OwedFor) {
			continue
		}
		checkChange(t, in, id, slices.DeleteFunc(slices.Clone(old.Offers), func(o *Offer) bool {
			return !looked(o) || o.Spent() && ago(o.Moved, OwedFor)
		}), r.Of(id))
	}
	if len(r.Departed) > MaxDeparted {
		t.Fatalf("%d consumers have departed", len(r.Departed))
	}
	for _, d := range r.Departed {
		if r.Entries.Of(d.ID) != nil || ago(d.Since, OwedFor) {
			t.Fatalf("%s is known, or gone for long, and is remembered since %v", d.ID, time.Unix(d.Since, 0))
		}
	}
}

// checkDefault checks that what was offered to unknown consumers stays listed, both for those that
// are still unknown and for those that became known.
func checkDefault(t *rapid.T, in Input, prev, r *Result) {
	within := func(long time.Duration) []*Offer {
		return prev.Default.without(func(o *Offer) bool {
			return o.Withdrawn() && in.Now.Sub(time.Unix(o.Moved, 0)) >= long
		}).Offers
	}
	checkChange(t, in, "the default offer", within(OwedFor), r.Default)
	for id, entry := range r.Entries.All {
		if prev.Readable().Of(id) == nil {
			checkChange(t, in, id, within(InheritedFor), entry)
		}
	}
}

func checkChange(t *rapid.T, in Input, id string, old []*Offer, entry *Entry) {
	reclaimOf := map[string]Reclaim{}
	for _, p := range in.Policies {
		reclaimOf[p.Name] = p.Reclaim
	}
	use := in.View.Used.Of(id)
	hasPods := use != nil
	var used capacity.Row
	if hasPods {
		used = use.Everywhere
	}
	for _, before := range old {
		i := slices.IndexFunc(entry.Offers, func(o *Offer) bool { return o.Class == before.Class })
		if i < 0 {
			t.Fatalf("%s: class %q is gone without zeros", id, before.Class)
		}
		now := entry.Offers[i]
		reclaim, decided := reclaimOf[now.Policy]
		if !decided {
			reclaim = before.Reclaim
		}
		for _, a := range before.Amounts {
			value, named := now.Amount(a.Resource)
			if !named {
				t.Fatalf("%s in %q: %s is gone without a 0", id, before.Class, a.Resource)
			}
			if reclaim == Evict {
				continue
			}
			if floor := min(a.Value, column(in.View, used, a.Resource)); value < floor {
				t.Fatalf("%s in %q: %s fell from %d to %d, below the %d that must stay for pods", id, before.Class, a.Resource, a.Value, value, floor)
			}
			if hasPods && EvictsAtZero(a.Resource) && a.Value > 0 && value == 0 {
				t.Fatalf("%s in %q: %s fell to 0 while pods run", id, before.Class, a.Resource)
			}
		}
	}
}

// checkOrder checks that the order of the input does not matter.
func checkOrder(t *rapid.T, in Input, prev, r *Result) {
	in.Policies, in.Consumers = slices.Clone(in.Policies), slices.Clone(in.Consumers)
	rand.Shuffle(len(in.Consumers), func(i, j int) { in.Consumers[i], in.Consumers[j] = in.Consumers[j], in.Consumers[i] })
	selections := Selections(in.Policies)
	rand.Shuffle(len(in.Policies), func(i, j int) { in.Policies[i], in.Policies[j] = in.Policies[j], in.Policies[i] })
	// The pools of the view are in the order of the selections.
	pools := make([]capacity.Pool, 0, len(selections))
	var place []int
	for _, s := range Selections(in.Policies) {
		place = append(place, slices.IndexFunc(selections, func(o capacity.Selection) bool { return o.Key() == s.Key() }))
	}
	for _, i := range place {
		pool := in.View.Pools[i]
		overlaps := make([]bool, len(place))
		for j, k := range place {
			overlaps[j] = pool.Overlaps[k]
		}
		pool.Overlaps = overlaps
		pools = append(pools, pool)
	}
	in.View.Pools = pools
	in.View.Cells = slices.Clone(in.View.Cells)
	for i := range in.View.Cells {
		c := &in.View.Cells[i]
		was := c.Pools
		c.Pools = nil
		for j, k := range place {
			if slices.Contains(was, k) {
				c.Pools = append(c.Pools, j)
			}
		}
	}
	uses := map[string]*capacity.Use{}
	for id, use := range in.View.Used.All {
		moved := &capacity.Use{Everywhere: use.Everywhere}
		for _, i := range place {
			moved.ByPool = append(moved.ByPool, use.In(i))
		}
		uses[id] = moved
	}
	in.View.Used = capacity.UsesOf(uses)
	again := Evaluate(in.After(prev))
	for id, entry := range r.Entries.All {
		if !entry.SameAmounts(again.Entries.Of(id)) {
			t.Fatalf("%s: another order of the input changes the offer", id)
		}
	}
	if diff := cmp.Diff(r.Reports, again.Reports, cmp.AllowUnexported(Offer{}, Report{}), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("another order of the input changes the reports: %s", diff)
	}
}

// checkAlone checks that the offer to a consumer depends on other consumers only if they hold
// something.
func checkAlone(t *rapid.T, in Input, prev, r *Result) {
	holds := func(id string) bool {
		held := in.View.Used.Of(id) != nil
		for _, grants := range in.Grants {
			_, granted := grants[id]
			held = held || granted
		}
		return held
	}
	for _, c := range in.Consumers {
		alone := in
		alone.Consumers = slices.DeleteFunc(slices.Clone(in.Consumers), func(o Consumer) bool { return o.ID != c.ID && !holds(o.ID) })
		if !r.Entries.Of(c.ID).SameAmounts(Evaluate(alone.After(prev)).Entries.Of(c.ID)) {
			t.Fatalf("%s: the offer is different without the other consumers", c.ID)
		}
	}
}
