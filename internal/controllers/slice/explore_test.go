package slice

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test/kubetest"
)

// The exploration visits every order in which a leader decides and writes while consumers edit, delete
// and create slices, pods start and end, and tenants and policies change, up to a number of steps. It is
// that of package protocol with the decisions, and without an API server.

// scene is one setting to explore.
type scene struct {
	process *process
	// capacity is how much each pool has.
	capacity int64
	reclaim  offer.Reclaim
	// missing is how much each pool lacks of it at first, and grace the time for which that lowers no grant.
	missing int64
	grace   time.Duration
	// granted is how much of gold the slice of each consumer begins with, ask how much it asks for
	// whenever it is created, and pods what its pods use.
	granted, ask []int64
	pods         [len(consumers)][len(pools)]int64
	// elsewhere are the classes that no policy serves to which slices can move.
	elsewhere []string
	// acting is how many of the consumers do anything. The others only ask for what they ask for.
	acting int
	events [numEvents]int
	// With unbound, the first pods wait for a node.
	unbound bool
	// late is the record of an amount for the last consumer, whose write by an earlier leader is under way.
	late int64
	// With slow, the leader learns late of slices and records. With split, others act between the
	// beginning of a decision and its end. With async, they act while a write is under way.
	slow, split, async bool
	depth              int
}

// scenes are each explored to a depth that takes a second or a few. The comment of a scene names the rule
// without which it fails.
var scenes = map[string]scene{
	// What is on record in a class that the slice has left counts, not only what its pods use.
	"moves that leave pods": {
		elsewhere: []string{holding.LiqoClass},
		capacity:  2, granted: []int64{2, 0}, ask: []int64{2, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{moves: 2, ends: 1, terms: 1}, depth: 9,
	},
	"moves that leave pods, retained": {
		elsewhere: []string{holding.LiqoClass},
		capacity:  2, reclaim: offer.Retain, granted: []int64{2, 0}, ask: []int64{2, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{moves: 2, cordons: 1, hides: 1}, depth: 8,
	},
	// An answer of ours stays in force until Liqo has answered its own class.
	"moves to a class that Liqo does not answer yet": {
		elsewhere: []string{holding.LiqoClass},
		capacity:  2, granted: []int64{2, 0}, ask: []int64{2, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{moves: 2, cordons: 2, runs: 1}, depth: 7,
	},
	"writes that are late, and forged answers": {
		capacity: 1, reclaim: offer.Retain, granted: []int64{0, 0}, ask: []int64{1, 1},
		events: [numEvents]int{fails: 1, terms: 1, forges: 1}, async: true, depth: 8,
	},
	// A record that comes during the term is not a grant to keep.
	"a record that an earlier leader writes late": {
		capacity: 1, reclaim: offer.Retain, granted: []int64{0, 0}, ask: []int64{1, 1}, late: 1, acting: 2,
		events: [numEvents]int{forges: 1, asks: 1}, depth: 7,
	},
	// What a slice that waits for its gates holds in other classes counts.
	"moves behind a gate that shuts": {
		elsewhere: []string{holding.LiqoClass},
		capacity:  2, granted: []int64{2, 0}, ask: []int64{2, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{moves: 2, strips: 1, hides: 1}, depth: 8,
	},
	// No decision is assumed that began while a worker had the slice.
	"gates that shut during a decision": {
		capacity: 1, granted: []int64{0}, ask: []int64{1}, slow: true, split: true, async: true,
		events: [numEvents]int{hides: 1}, depth: 14,
	},
	// What arrives during a decision is decided on.
	"versions that arrive during a decision": {
		capacity: 1, granted: []int64{0}, ask: []int64{1}, split: true,
		events: [numEvents]int{touches: 1, cordons: 2}, depth: 8,
	},
	// The pods of a deleted slice count if no answer can be written to its successor.
	"a slice created again, too large for an answer": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{1, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{deletes: 1, creates: 1, bloats: 1, waits: 1, runs: 1}, depth: 8,
	},
	// Pods that wait for a node count in every class that their slice holds something in.
	"moves that leave pods, which wait": {
		elsewhere: []string{holding.LiqoClass}, unbound: true,
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{moves: 2, ends: 1, terms: 1}, depth: 9,
	},
	// A pod that starts between the decision to take something back and its write counts: the Quota has not
	// followed yet.
	"requests that fall while pods start, and wait": {
		capacity: 2, unbound: true, granted: []int64{2, 0}, ask: []int64{1, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{asks: 1, runs: 1, ends: 1, waits: 1, binds: 1, follows: 3}, depth: 8,
	},
	"deletions that leave pods, which wait": {
		capacity: 2, unbound: true, granted: []int64{2, 0}, ask: []int64{1, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{deletes: 1, creates: 1, waits: 2, runs: 1, ends: 1, follows: 3}, depth: 8,
	},
	// A slice that is deleted after its tenant was drained, as Liqo does, takes back nothing from others.
	"a drain that deletes": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{1, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{deletes: 1, waits: 1, drains: 1, ends: 1}, depth: 9,
	},
	// What a Quota still allows is not given to others.
	"a Quota that follows late": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{asks: 2, runs: 1, ends: 1, follows: 3}, depth: 9,
	},
	"moves while the Quota follows late": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2},
		events: [numEvents]int{asks: 1, moves: 2, follows: 3}, depth: 8,
	},
	"deleted while Liqo is away": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{1, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{deletes: 1, creates: 1, waits: 1, ends: 1, runs: 1, follows: 2}, depth: 9,
	},
	"moves to a class that nobody answers": {
		elsewhere: []string{unservedClass}, capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{moves: 2, ends: 1, asks: 1}, depth: 7,
	},
	// Capacity that is missing at a start lowers no grant in the grace.
	"a start while capacity is missing, Evict": {
		capacity: 3, missing: 2, grace: time.Hour, reclaim: offer.Evict, granted: []int64{1, 2}, ask: []int64{1, 2}, pods: [2][2]int64{1: {1}},
		acting: 2, events: [numEvents]int{asks: 1, runs: 1, ends: 1, terms: 1, returns: 1}, depth: 7,
	},
	// It belongs to the pool, not to the slice that lacked it first.
	"a start while capacity is missing": {
		capacity: 3, missing: 2, grace: time.Hour, granted: []int64{2, 1}, ask: []int64{2, 1}, pods: [2][2]int64{1: {1}},
		acting: 2, events: [numEvents]int{runs: 1, ends: 1, terms: 1, returns: 1}, split: true, async: true, depth: 8,
	},
	// Nobody is granted what is missing.
	"a start while capacity is missing that a slice gives up": {
		capacity: 3, missing: 2, grace: time.Hour, granted: []int64{3, 0}, ask: []int64{3, 2},
		acting: 1, events: [numEvents]int{asks: 1, deletes: 1, creates: 1, waits: 1, returns: 1}, depth: 7,
	},
	// Until an answer of another policy is confirmed, a grant may be on the nodes of both.
	"a policy that passes to another": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{passes: 2, ends: 1, asks: 1}, depth: 8,
	},
	"a policy that passes to another while a write is under way": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2},
		events: [numEvents]int{passes: 2, fails: 1, asks: 1}, async: true, depth: 8,
	},
	"a policy that passes to another while another replica leads": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2},
		events: [numEvents]int{passes: 2, terms: 1, asks: 1}, async: true, depth: 8,
	},
	"a policy that passes to another behind a gate that shuts": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2},
		events: [numEvents]int{passes: 2, hides: 1, cordons: 1, asks: 1}, depth: 7,
	},
	"a policy that passes to another between a deletion and a creation": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{passes: 1, deletes: 1, creates: 1, waits: 1, runs: 1}, depth: 9,
	},
	// Until an answer on other nodes is confirmed, a grant may be on those that the policy selected before. No pods: what
	// they use stays granted, also if others have the new nodes.
	"a policy whose nodes are edited": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2}, acting: 2,
		events: [numEvents]int{turns: 2, asks: 1, moves: 1}, depth: 8,
	},
	"a policy whose nodes are edited while a write is under way": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2}, acting: 2,
		events: [numEvents]int{turns: 2, fails: 1, moves: 1}, async: true, depth: 8,
	},
	"a policy whose nodes are edited while another replica leads": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2}, acting: 2,
		events: [numEvents]int{turns: 2, terms: 1, moves: 1}, async: true, depth: 8,
	},
	"a policy whose nodes are edited behind a gate that shuts": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2},
		events: [numEvents]int{turns: 2, hides: 1, cordons: 1, asks: 1}, depth: 7,
	},
	"a policy whose nodes are edited between a deletion and a creation": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{turns: 1, deletes: 1, creates: 1, waits: 1, runs: 1}, depth: 9,
	},
	"a policy whose nodes are edited while the Quota follows late": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 1}, acting: 2,
		events: [numEvents]int{turns: 1, moves: 1, runs: 1, follows: 2}, depth: 9,
	},
	"a policy that is deleted, and created again with other nodes": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 2}, acting: 2,
		events: [numEvents]int{turns: 1, removes: 2, waits: 1, moves: 1}, depth: 8,
	},
	"policies that come and go": {
		capacity: 2, granted: []int64{2, 0}, ask: []int64{1, 2}, pods: [2][2]int64{{1}},
		events: [numEvents]int{removes: 2, shrinks: 2, waits: 2, asks: 1, drains: 2}, depth: 5,
	},
	"answers that are removed": {
		capacity: 1, granted: []int64{1, 0}, ask: []int64{1, 1},
		events: [numEvents]int{strips: 1, hides: 1, bloats: 1, fails: 1, asks: 1}, async: true, depth: 6,
	},
}

// unservedClass is a class that no policy serves and that no controller answers.
const unservedClass = "bronze"

// settled is one of how many worlds are let settle.
const settled = 8

// explore visits every world up to the depth, and returns how many, and the first fault.
func explore(s *scene) (states int, fault string) {
	seen := map[uint64]struct{}{}
	level := []*world{newWorld(s)}
	for range s.depth {
		var next []*world
		for _, w := range level {
			for _, step := range w.steps() {
				n := w.clone(step.what)
				step.do(n)
				key := n.key()
				if _, known := seen[key]; known && n.fault == "" {
					continue
				}
				seen[key] = struct{}{}
				if states++; states%settled == 0 {
					n.settle()
				}
				if n.check(); n.fault != "" {
					return states, n.fault + ":" + n.trace()
				}
				next = append(next, n)
			}
		}
		level = next
	}
	return states, ""
}

// settle accuses a world in which something is still to be written although nothing happens any more, or
// nothing wakes the leader for it, or in which a replica that does not lead decides otherwise.
func (w *world) settle() {
	n, s := w.clone("nothing happens any more"), *w.scene
	s.slow, s.split, s.async = false, false, false
	n.scene = &s
	for len(n.flight) > 0 {
		if r := &n.flight[0]; r.sent {
			n.respond(0)
		} else {
			n.send(0)
		}
	}
	if n.deciding != nil {
		n.commit()
	}
	n.writeAll()
	n.news()
	n.pass()
	for range 20 {
		before, asleep := n.versions(), !n.woken
		n.decide()
		decided := n.deciding
		n.commit()
		due := n.tasks()
		n.writeAll()
		if asleep && n.versions() != before {
			n.accuse("nothing wakes the leader for %s", due)
		}
		if n.check(); n.fault != "" || n.versions() == before {
			if n.fault == "" {
				n.checkFollower(decided)
			}
			w.fault = n.fault
			return
		}
	}
	w.accuse("writes do not end")
}

// writeAll lets workers write to all slices that need it.
func (w *world) writeAll() {
	for i := range w.objects {
		if w.leader.hasTask(w.objects[i].uid) {
			w.write(i)
		}
	}
}

// tasks describes what is to be written.
func (w *world) tasks() string {
	var all []string
	for i := range w.objects {
		if uid := w.objects[i].uid; w.leader.hasTask(uid) {
			all = append(all, fmt.Sprintf("%s: %+v", uid, w.leader.cache.byUID[uid].task.want))
		}
	}
	return strings.Join(all, "; ")
}

// versions counts the versions of all objects.
func (w *world) versions() (sum int) {
	for i := range w.objects {
		sum += w.objects[i].version + w.objects[i].recorded
	}
	return sum
}

// checkFollower accuses a world at rest in which a replica that does not lead counts or decides otherwise
// than the leader: it goes by the records, and vouches for all of them.
func (w *world) checkFollower(leader *decisions) {
	if slices.ContainsFunc(w.objects, func(o object) bool { return o.large }) {
		return // Only the leader knows that no answer can be written.
	}
	if got, want := describe(follower(w).decide(w)), describe(leader); got != want {
		w.accuse("a replica that does not lead decides\n    %s\n  and the leader\n    %s", got, want)
	}
}

// describe lists what counts and what is decided, apart from nothing.
func describe(d *decisions) string {
	var all []string
	for i := range d.Asked {
		has, gets := max(d.Asked[i].Granted[thing], d.Asked[i].Recorded[thing]), d.Answers[i].Amounts()[thing]
		if has > 0 || gets > 0 {
			all = append(all, fmt.Sprintf("%s has %d and gets %d", d.Asked[i].Key, has, gets))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// walk takes random steps, and returns the first fault.
func walk(s *scene, seed uint64) (fault string) {
	w, random := newWorld(s), rand.New(rand.NewPCG(seed, 0))
	for range s.depth {
		steps := w.steps()
		step := steps[random.IntN(len(steps))]
		w = w.clone(step.what)
		step.do(w)
		if w.check(); w.fault != "" {
			return w.fault + ":" + w.trace()
		}
	}
	if w.settle(); w.fault != "" {
		return w.fault + ":" + w.trace()
	}
	return ""
}

func TestNoOrderOfEventsGrantsTwiceWhatPodsMayUse(t *testing.T) {
	for name, s := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s.process, s.acting = newProcess(t), max(s.acting, 1)
				s.depth = kubetest.Fewer(s.depth, 2) // Nothing in it runs at the same time.
				states, fault := explore(&s)
				t.Logf("%d states to a depth of %d", states, s.depth)
				if fault != "" {
					t.Error(fault)
				}
			})
		})
	}
}

func TestNoHistoryGrantsTwiceWhatPodsMayUse(t *testing.T) {
	const walks = 200
	s := scene{
		capacity: 3, acting: 2, elsewhere: []string{holding.LiqoClass, unservedClass}, granted: []int64{2, 0}, ask: []int64{2, 2}, pods: [2][2]int64{{1}}, slow: true, split: true, async: true, depth: 80,
	}
	for e := range s.events {
		s.events[e] = 4
	}
	s.events[shrinks] = 0
	synctest.Test(t, func(t *testing.T) {
		s.process = newProcess(t)
		for seed := range uint64(walks) {
			s.unbound, s.missing, s.grace = seed%2 > 0, int64(seed%3), time.Hour
			if fault := walk(&s, seed); fault != "" {
				t.Fatalf("seed %d: %s", seed, fault)
			}
		}
	})
}

// seed is that of the keys of one run.
var seed = maphash.MakeSeed()

// key identifies a world, apart from the way that led there.
func (w *world) key() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	k := key{&h}
	for _, part := range []any{w.objects, w.pods, w.waiting, w.late, w.tenants, w.removed, w.shrunk, w.turned, w.passed, w.returned, w.left, w.now, w.term, w.flight, w.leader.grace, w.woken, w.alarm} {
		k.add(reflect.ValueOf(part))
	}
	remembered := reflect.ValueOf(w.leader.former).Field(0)
	granters := remembered.MapKeys()
	slices.SortFunc(granters, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, granter := range granters {
		k.text(fmt.Sprint(granter.String(), remembered.MapIndex(granter).FieldByName("former").Bool()))
	}
	for i := range w.objects {
		if e := w.leader.cache.byUID[w.objects[i].uid]; e != nil {
			k.add(reflect.ValueOf(e))
			k.text(fmt.Sprint(e.slice.version(), e.task != nil && e.task.decision == w.leader.cache.decision))
		}
	}
	if w.deciding != nil {
		for _, c := range w.deciding.entries {
			k.text(c.version())
			k.add(reflect.ValueOf(c))
		}
		k.add(reflect.ValueOf(w.deciding.Asked))
	}
	return h.Sum64()
}

// key hashes values with all that they refer to.
type key struct{ *maphash.Hash }

func (k key) text(s string) {
	k.WriteString(s)
	k.WriteByte(0)
}

func (k key) number(n uint64) { k.Write(binary.LittleEndian.AppendUint64(nil, n)) }

func (k key) add(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		switch {
		case v.IsNil():
			k.text("nil")
		case v.Type() == reflect.TypeFor[*unstructured.Unstructured]():
			k.text("object") // Its version is in the values around it.
		case v.Type() == reflect.TypeFor[*time.Location]():
		default:
			k.add(v.Elem())
		}
	case reflect.Interface:
		k.add(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			switch v.Type().Field(i).Name {
			case "view", "pace", "decision":
			default:
				k.add(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		k.number(uint64(v.Len()))
		for i := range v.Len() {
			k.add(v.Index(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int {
			if a.Kind() == reflect.String {
				return strings.Compare(a.String(), b.String())
			}
			return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
		})
		for _, name := range keys {
			k.add(name)
			k.add(v.MapIndex(name))
		}
	case reflect.String:
		k.text(v.String())
	case reflect.Bool:
		if v.Bool() {
			k.number(1)
		} else {
			k.number(0)
		}
	case reflect.Int, reflect.Int64, reflect.Int32:
		k.number(uint64(v.Int()))
	case reflect.Uint64, reflect.Uint32, reflect.Uint8:
		k.number(v.Uint())
	default:
		k.text(v.Kind().String())
	}
}
