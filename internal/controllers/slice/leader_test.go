package slice

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/selection"
)

// thing is the resource that a world has little of. There is enough cpu and memory for all.
const thing = "example.com/thing"

func amountsOf(amount int64) capacity.Amounts {
	return capacity.Amounts{capacity.CPU: 1, capacity.Memory: 1, thing: amount}
}

func shareOf(class string, amount int64) protocol.Share {
	return protocol.Share{Class: class, Policy: class, Amounts: amountsOf(amount)}
}

// statusOf returns an answer by whoever has this prefix.
func statusOf(prefix string, amount int64) sliceAnswer {
	return sliceAnswer{verdict: accepted, reason: prefix + "Granted", resources: amountsOf(amount)}
}

// process is what all leaders of a scene share: it keeps nothing of one that another could see.
type process struct {
	*Writer
	start time.Time
	terms map[[11]int64]*offer.AllocationInput
	gates map[[len(consumers)]gateState]*gates
}

func newProcess(t *testing.T) *process {
	d := NewDecider(nil, 0, func() {}, func() {}, logr.Discard())
	w := NewWriter(&Clients{}, nil, nil, "", d, debounce.New(0), func() bool { return true }, &events.FakeRecorder{}, restore.New(), logr.Discard())
	startQueue(t, w)
	return &process{
		Writer: w, start: time.Now(),
		terms: map[[11]int64]*offer.AllocationInput{}, gates: map[[len(consumers)]gateState]*gates{},
	}
}

// leader is what a replica knows, and decided.
type leader struct {
	cache  *grantCache
	grace  holding.Grace
	former offer.FormerPolicies
}

// newLeader begins a term with what the API server has.
func newLeader(w *world) *leader {
	l := newReplica(w)
	var listed []slice
	var records []grantRecord
	for i := range w.objects {
		o := &w.objects[i]
		if !o.gone {
			listed = append(listed, o.slice())
		}
		if o.record != nil {
			records = append(records, *o.grant())
		}
	}
	l.cache.beginTerm(fmt.Sprint("t", w.term), listed, records, nobody)
	l.dated(w)
	return l
}

func newReplica(w *world) *leader {
	return &leader{cache: newGrantCache(), grace: holding.Grace{
		Started: w.process.start.Add(-time.Hour), Since: map[[2]string]time.Time{}, Nodes: w.grace,
	}}
}

// follower returns a replica that knows everything and does not lead.
func follower(w *world) *leader {
	l := newReplica(w)
	l.grace.Since, l.former = w.leader.grace.Since, w.leader.former
	for i := range w.objects {
		if o := &w.objects[i]; o.record != nil {
			l.cache.setRecord(*o.grant())
		}
		if o := &w.objects[i]; !o.gone {
			l.cache.set(o.slice())
		}
	}
	for uid, e := range l.cache.byUID {
		if before := w.leader.cache.byUID[uid]; e.gone() && before != nil {
			e.removedAt = before.removedAt
		}
	}
	return l
}

func (l *leader) clone() *leader {
	c := newGrantCache()
	c.term, c.deciding, c.decision, c.byKey = l.cache.term, l.cache.deciding, l.cache.decision, maps.Clone(l.cache.byKey)
	for uid, e := range l.cache.byUID {
		n := *e
		if n.view, n.pace = nil, nil; e.task != nil {
			n.task = new(*e.task)
		}
		c.byUID[uid] = &n
	}
	c.removed = lru.New(rememberedRemovals)
	for _, uid := range []types.UID{"rome-1", "rome-1+", "oslo-1", "oslo-1+"} {
		if version, gone := l.cache.removed.Get(uid); gone {
			c.removed.Add(uid, version)
		}
	}
	grace := l.grace
	grace.Since = maps.Clone(grace.Since)
	return &leader{c, grace, l.former}
}

// slice returns what the watch has of a slice.
func (o *object) slice() slice {
	namespace := consumers[o.owner]
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(o.version)}}}
	return slice{
		key: namespace + "/s", namespace: namespace, name: "s", uid: o.uid, created: int64(o.owner), consumer: namespace,
		class: o.class, request: amountsOf(o.ask), originOK: !o.hidden, authenticated: true, answer: o.status, object: u,
	}
}

// grant returns the record of a slice.
func (o *object) grant() *grantRecord {
	if o.record == nil {
		return nil
	}
	return &grantRecord{
		Record: *o.record, uid: o.uid, namespace: consumers[o.owner], name: "s", consumer: consumers[o.owner],
		version: strconv.Itoa(o.recordVersion),
	}
}

// The leader learns something new, and reports whether that wakes it.

func (l *leader) see(w *world, o *object) bool {
	defer l.dated(w) // Another slice of the name is gone.
	return l.cache.set(o.slice())
}

func (l *leader) remove(w *world, o *object) bool {
	defer l.dated(w)
	return l.cache.remove(o.slice())
}

// dated sets when slices were removed: the cache goes by the clock, which stands still.
func (l *leader) dated(w *world) {
	for _, e := range l.cache.byUID {
		if e.gone() && e.removedAt.Equal(w.process.start) {
			e.removedAt = w.time()
		}
	}
}

func (w *world) time() time.Time { return w.process.start.Add(w.now).Add(time.Millisecond) }

func (l *leader) seeRecord(o *object) bool {
	if r := o.grant(); r != nil {
		return l.cache.setRecord(*r)
	}
	return l.cache.removeRecord(grantRecord{uid: o.uid, version: strconv.Itoa(o.recordVersion)})
}

func (l *leader) decide(w *world) *decisions {
	d := w.process.decider
	d.cache, d.grace, d.gates, d.quotas = l.cache, l.grace, w.process.gatesOf(w.tenants), w.quotas()
	defer func() { l.grace = d.grace }()
	in := offer.Input{Policies: w.policies()}
	l.former.Update(&in, d.Granters)
	return d.decide(w.time(), func() *offer.AllocationInput { return w.process.termsOf(w, &in) })
}

// quotas returns the Quotas as the leader knows them.
func (w *world) quotas() *kube.ObjectCache[capacity.Amounts] {
	all := kube.NewObjectCache(parseQuota)
	for i := range w.objects {
		if o := &w.objects[i]; o.quota != (allowance{}) && w.events[follows] > 0 {
			all.Put(quotaKey(consumers[o.owner], "s", consumers[o.owner]), o.uid, "1", amountsOf(o.quota.amount))
		}
	}
	return all
}

// commit assumes a decision, and reports whether another is due later although nothing happens.
func (l *leader) commit(w *world, d *decisions) (again bool) {
	w.process.decider.cache = l.cache
	w.process.renderer = &statusRenderer{}
	w.process.commit(d)
	for i, rendered := range w.process.renderer.answers {
		again = again || rendered != nil && d.entries[i].keepStandingFor(rendered, d.Now) > 0
	}
	return again || d.Again > 0
}

func (l *leader) hasTask(uid types.UID) bool {
	e := l.cache.byUID[uid]
	return e != nil && e.task != nil && !e.writing
}

func (l *leader) start(uid types.UID) bool { return l.cache.startWrites(uid) }

func (l *leader) next(uid types.UID) (task, bool) { return l.cache.next(uid) }

func (l *leader) end(uid types.UID) { l.cache.endWrites(uid) }

func (l *leader) refused(uid types.UID) { l.cache.forgetRecord(uid) }

// outcome takes the outcome of a write, and reports whether to continue with the slice.
func (l *leader) outcome(r *request, o *object) bool {
	switch {
	case r.step.Action == protocol.WriteAnswer && r.made:
		return l.cache.confirmAnswer(r.uid, &r.task, r.result)
	case r.step.Action == protocol.WriteAnswer:
		if o.large {
			l.cache.giveUp(r.uid, &r.task, "too large")
		}
	case !r.made:
		l.cache.observeRecord(r.uid, o.grant())
	case r.step.Action == protocol.DeleteRecord:
		l.cache.confirmDelete(r.uid)
		return true
	default:
		r.record.version = strconv.Itoa(r.resultVersion)
		l.cache.confirmRecord(r.uid, r.record)
		return true
	}
	return false
}

// termsOf returns the terms of the policies over nodes with these pods.
func (p *process) termsOf(w *world, in *offer.Input) *offer.AllocationInput {
	key := [11]int64{w.capacity, w.pods[0][0], w.pods[0][1], w.pods[1][0], w.pods[1][1]}
	for i, is := range []bool{w.removed, w.shrunk, w.passed, w.turned} {
		if is {
			key[5] |= 1 << i
		}
	}
	for owner := range consumers {
		for pool := range pools {
			if key[7] *= 2; w.waiting[owner][pool] {
				key[7]++
			}
		}
	}
	if key[8] = w.missing; w.returned {
		key[8] = 0
	}
	for i := range in.Former { // By its name and node.
		f := &in.Former[i]
		key[9+i] = 1 + int64(2*slices.Index(pools[:], f.Name)+slices.Index(pools[:], f.Version))
	}
	if known := p.terms[key]; known != nil {
		return known
	}
	ledger := capacity.NewLedger()
	for pool, class := range pools {
		ledger.SetNode(capacity.Node{
			Name: class, State: capacity.Ready, Labels: selecting(class),
			Allocatable: capacity.Amounts{capacity.CPU: 1 << 20, capacity.Memory: 1 << 20, thing: w.capacity - key[8]},
		})
		for owner, consumer := range consumers {
			if amount := w.pods[owner][pool]; amount > 0 {
				node := class
				if w.waiting[owner][pool] {
					node = ""
				}
				ledger.SetPod(capacity.Pod{
					Key: consumer + class, Node: node, Consumer: consumer, Creator: liqo.SliceCreator("s", consumer),
					Requests: capacity.Amounts{thing: amount},
				})
			}
		}
	}
	in.View = ledger.View(offer.Selections(in.Policies, in.Former), offer.ResourceNames(in.Policies)...)
	p.terms[key] = offer.NewAllocationInput(*in)
	return p.terms[key]
}

// policies returns the policies of a world.
func (w *world) policies() (policies []offer.Policy) {
	for pool, class := range pools {
		if pool == 0 && w.removed {
			continue
		}
		percent, node := int64(100), class
		if pool == 0 && w.shrunk {
			percent = 50
		}
		if pool == 0 && w.turned {
			node = pools[1]
		}
		policies = append(policies, policyOn(class, class, node, percent, w.reclaim))
	}
	if w.events[passes] > 0 {
		other, of := policyOn("other", pools[0], pools[1], 100, w.reclaim), "nobody"
		if w.passed {
			of = consumers[0]
		}
		other.Priority, other.Consumers = 1, offer.Scope{IDs: map[string]struct{}{of: {}}}
		policies = append(policies, other)
	}
	return policies
}

// selecting returns the labels that select a node.
func selecting(node string) map[string]string { return map[string]string{"pool": node} }

// policyOn returns a policy whose answers ask for the node that it selects.
func policyOn(name, class, node string, percent int64, reclaim offer.Reclaim) offer.Policy {
	selector := selection.Of(labels.SelectorFromSet(selecting(node)))
	return offer.Policy{
		Name: name, Class: class, Version: node, Reclaim: reclaim, Slices: offer.Slices{NodeSelector: selecting(node)},
		Nodes: &offer.Nodes{Percent: percent, Selection: capacity.Selection{Selector: selector}},
	}
}

// gatesOf returns the gates of tenants in these states.
func (p *process) gatesOf(states [len(consumers)]gateState) *gates {
	if known := p.gates[states]; known != nil {
		return known
	}
	g := newGates()
	for owner, consumer := range consumers {
		condition := map[gateState]string{active: "Active", cordoned: "Cordoned", drained: "Drained"}[states[owner]]
		g.owners.Set(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": consumer, "labels": map[string]any{
			liqo.TenantNamespaceLabel: "true", liqo.RemoteClusterIDLabel: consumer,
		}}}})
		g.tenants.Set(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": consumer, "namespace": consumer},
			"spec":     map[string]any{"clusterID": consumer, "tenantCondition": condition},
		}})
	}
	p.gates[states] = g
	return g
}
