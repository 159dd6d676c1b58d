package slice

import (
	"maps"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/selection"
)

// moving is a scene: slices of rome, which moves them between classes, and another controller.
type moving struct {
	*Writer
	t       testing.TB
	version int
	// quotas has the last accepted answer of each slice, and whether it is ours. Liqo keeps it on a denial.
	quotas map[types.UID]quota
	// pool is the cpu of gold, and limit what its policy gives one consumer.
	pool, limit int64
	reclaim     offer.Reclaim
}

type quota struct {
	cpu  int64
	ours bool
	// in is the class that Proffer answered in.
	in string
}

func (m *moving) terms() *offer.AllocationInput {
	ledger := capacity.NewLedger()
	var policies []offer.Policy
	for class, cpu := range map[string]int64{"gold": m.pool, "silver": 8000} {
		pool := labels.Set{"pool": class}
		ledger.SetNode(capacity.Node{
			Name: class, State: capacity.Ready, Labels: pool, Allocatable: capacity.Amounts{"cpu": cpu, "memory": 1 << 38},
		})
		policies = append(policies, offer.Policy{
			Name: class, Class: class, Version: "1", Reclaim: m.reclaim, Max: capacity.Amounts{"cpu": m.limit},
			Nodes: &offer.Nodes{Percent: 100, Selection: capacity.Selection{
				Selector: selection.Of(labels.SelectorFromSet(pool)),
			}},
		})
	}
	return offer.NewAllocationInput(offer.Input{
		Policies: policies, View: ledger.View(offer.Selections(policies), offer.ResourceNames(policies)...),
	})
}

// edit lets a change of a slice arrive.
func (m *moving) edit(uid types.UID, change func(*unstructured.Unstructured)) {
	m.version++
	cache := m.decider.cache
	object := cache.byUID[uid].slice.object.DeepCopy()
	change(object)
	object.SetResourceVersion(strconv.Itoa(m.version))
	cache.set(parseSlice(object))
	m.observe(uid)
}

// observe follows the Quota of a slice.
func (m *moving) observe(uid types.UID) {
	e := m.decider.cache.byUID[uid]
	if a := e.slice.answer; a.verdict == accepted {
		q := quota{cpu: a.resources["cpu"], ours: a.ours(), in: m.quotas[uid].in}
		if e.ours != nil && q.ours && e.ours.verdict == accepted {
			q.in = e.ours.class
		}
		m.quotas[uid] = q
	}
}

// settle decides and writes until nothing is left to write. It returns the slices that were granted more in a
// class that nobody serves.
func (m *moving) settle() (raised []types.UID) {
	for uid, before := range maps.Clone(m.quotas) {
		defer func() {
			if now := m.quotas[uid]; now.cpu > before.cpu && m.decider.cache.byUID[uid].slice.class == "platinum" {
				raised = append(raised, uid)
			}
		}()
	}
	for before := -1; before != m.version; {
		before = m.version
		for _, e := range m.decider.cache.byUID {
			e.pace, e.until = nil, time.Time{} // Time has passed.
		}
		m.decideBy(m.terms())
		for _, uid := range []types.UID{"a", "b"} {
			m.version = writeAll(m.t, m.decider.cache, uid, m.version)
			m.observe(uid)
		}
	}
	return raised
}

// held returns the cpu in the Quotas that answers in gold have made.
func (m *moving) held() (sum int64) {
	for _, q := range m.quotas {
		if q.ours && q.in == "gold" {
			sum += q.cpu
		}
	}
	return sum
}

// answerAs writes an answer of another client into a slice.
func answerAs(reason string, verdict verdict, cpu string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(u.Object, sliceAnswer{verdict: verdict, reason: reason}.
			conditions(conditionsOf(u), time.Unix(1_700_000_000, 0)), "status", "conditions")
		_ = unstructured.SetNestedStringMap(u.Object, map[string]string{"cpu": cpu}, "status", "resources")
	}
}

// step makes one change of one slice: a move of its consumer, a request, or an answer that others write.
func (m *moving) step(rt *rapid.T) {
	uid := types.UID(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "slice"))
	amount := strconv.Itoa(rapid.IntRange(0, 8).Draw(rt, "cpu"))
	class := m.decider.cache.byUID[uid].slice.class
	switch rapid.SampledFrom([]string{"move", "move", "ask", "accept", "deny", "remove"}).Draw(rt, "step") {
	case "move":
		to := rapid.SampledFrom([]string{"gold", "silver", "platinum", holding.LiqoClass}).Draw(rt, "to")
		m.edit(uid, func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, to, "spec", "class") })
		if to == holding.LiqoClass {
			m.edit(uid, answerAs("ResourceSliceResourcesAccepted", accepted, amount))
		}
	case "ask":
		m.edit(uid, func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, amount, "spec", "resources", "cpu")
		})
	case "accept":
		if class == "platinum" {
			m.edit(uid, answerAs("OfPlatinum", accepted, amount))
		}
	case "deny":
		if class == "platinum" {
			m.edit(uid, answerAs("OfPlatinum", denied, "0"))
		}
	case "remove": // Without the guards its consumer can do that.
		m.edit(uid, func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedSlice(u.Object, sliceAnswer{}.conditions(conditionsOf(u), time.Time{}), "status", "conditions")
		})
	}
}

// However a consumer moves its slices, their Quotas never exceed the class that made them, and a class that
// gives less takes back from all but those that another controller has denied.
func TestNoMovesHoldMoreThanTheClassOfTheGrantAllows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &moving{
			t: t, version: 20, quotas: map[types.UID]quota{}, pool: 8000, limit: 7000,
			reclaim: rapid.SampledFrom([]offer.Reclaim{offer.Unused, offer.Evict, offer.Retain}).Draw(rt, "reclaim"),
		}
		m.Writer = aLeader(t, known(t, "s", "a", 10, asking("6")), known(t, "other", "b", 11, asking("6")))
		m.settle()
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			m.step(rt)
			if rapid.Bool().Draw(rt, "settle") {
				if raised := m.settle(); len(raised) > 0 {
					rt.Fatalf("%s is granted more in a class that nobody serves: %+v", raised, m.quotas)
				}
			}
			if held := m.held(); held > m.limit {
				rt.Fatalf("Quotas of %d in a class that gives %d: %+v", held, m.limit, m.quotas)
			}
		}
		m.limit, m.reclaim = 1000, offer.Evict
		m.settle()
		denied := int64(0)
		for uid, q := range m.quotas {
			if e := m.decider.cache.byUID[uid]; e.slice.answer.verdict == verdict("Denied") && !e.slice.answer.ours() {
				denied += q.cpu
			}
		}
		if held := m.held(); held > m.limit+denied {
			rt.Fatalf("Quotas of %d in a class that gives %d, of which %d cannot be lowered: %+v", held, m.limit, denied, m.quotas)
		}
	})
}
