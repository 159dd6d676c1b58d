package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
)

// amounts are so much of each of the scarce resources.
type amounts [2]int64

// cpu is in milli, memory in bytes.
const (
	cpu = iota
	memory
)

const (
	mib      = 1 << 20
	hostPods = 500
)

func (a amounts) plus(b amounts) amounts { return amounts{a[cpu] + b[cpu], a[memory] + b[memory]} }

func (a amounts) list() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(a[cpu], resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(a[memory], resource.BinarySI),
	}
}

func (a amounts) quantities() v1alpha1.Quantities {
	out := v1alpha1.Quantities{}
	for name, q := range a.list() {
		out[name] = v1alpha1.Quantity{Quantity: q}
	}
	return out
}

func amountsIn(list corev1.ResourceList) amounts {
	return amounts{list.Cpu().MilliValue(), list.Memory().Value()}
}

// host is a node as the test made it.
type host struct {
	zone        string
	allocatable amounts
	cordoned    bool
}

// load is a pod on a node; the consumer is empty for one of this cluster's own.
type load struct {
	node, consumer string
	requests       amounts
}

// share is the policy of the class of its name, as the test wrote it.
type share struct {
	zones   []string
	percent int64
	reserve amounts
	// max is nil for none.
	max                *amounts
	denyExcess, evicts bool
}

// provider is all that the operator goes by but the slices, as the test made it, and what came of that when. Only the test changes it.
type provider struct {
	t     *testing.T
	api   client.Client
	clock *clock
	// changing is held while one change is made.
	changing sync.Mutex
	made     int

	mu       sync.Mutex
	hosts    map[string]host
	loads    map[string]load
	shares   map[string]share
	cordoned map[string]bool
	readings []reading
}

// reading is what the provider has from one change to the next. While a change is being made, both that before and that after are in force.
type reading struct {
	from, until time.Duration
	pools       map[string]pool
	// used is what pods request on all nodes, by consumer.
	used     map[string]amounts
	cordoned map[string]bool
}

// pool is what one class has.
type pool struct {
	capacity amounts
	// used is what pods request on the nodes of the pool, by consumer.
	used map[string]amounts
	// max is nil for none.
	max *amounts
	// beside are the classes that have a node in common with this one, itself among them, sorted.
	beside []string
}

func newProvider(t *testing.T, api client.Client, clock *clock) *provider {
	p := &provider{
		t: t, api: api, clock: clock, hosts: map[string]host{}, loads: map[string]load{}, cordoned: map[string]bool{},
		shares: map[string]share{
			"gold":   {zones: []string{"a", "shared"}, percent: 100},
			"silver": {zones: []string{"b", "shared"}, percent: 100, denyExcess: true},
			"bronze": {zones: []string{"c"}, percent: 100, evicts: true},
		},
	}
	p.readings = []reading{p.read()}
	for class := range p.shares {
		p.must(api.Create(t.Context(), p.policy(class)))
	}
	return p
}

func (p *provider) must(err error) {
	if err != nil && p.t.Context().Err() == nil {
		p.t.Errorf("a change of the test's own: %v", err)
	}
}

func (p *provider) policy(class string) *v1alpha1.ResourcePolicy {
	s := p.share(class)
	out := &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: v1alpha1.ResourcePolicySpec{
		Class: class, UpdateThresholdPercent: new(int32),
		Offer:   v1alpha1.Offer{Nodes: &v1alpha1.Nodes{Selector: s.selector()}, Percent: new(v1alpha1.Percent(s.percent))},
		Reclaim: v1alpha1.ReclaimUnused, Slices: &v1alpha1.Slices{OnExcess: v1alpha1.OnExcessCap},
	}}
	if s.denyExcess {
		out.Spec.Slices.OnExcess = v1alpha1.OnExcessDeny
	}
	if s.evicts {
		out.Spec.Reclaim = v1alpha1.ReclaimEvict
	}
	return out
}

func (s *share) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: s.zones,
	}}}
}

// change makes one change: model says what it is, apply writes it.
func (p *provider) change(model func(), apply func(ctx context.Context) error) {
	p.mu.Lock()
	model()
	next := p.read()
	next.from = p.clock.now()
	p.readings = append(p.readings, next)
	p.mu.Unlock()

	p.must(apply(p.t.Context()))

	p.mu.Lock()
	defer p.mu.Unlock()
	p.readings[len(p.readings)-2].until = p.clock.now()
}

// read adds up what there is.
func (p *provider) read() reading {
	r := reading{until: math.MaxInt64, pools: map[string]pool{}, used: map[string]amounts{}, cordoned: maps.Clone(p.cordoned)}
	local := map[string]amounts{}
	for _, l := range p.loads {
		if l.consumer == "" {
			local[l.node] = local[l.node].plus(l.requests)
		} else {
			r.used[l.consumer] = r.used[l.consumer].plus(l.requests)
		}
	}
	for class, s := range p.shares {
		in := func(node string) bool { return p.within(node, s) }
		out := pool{used: map[string]amounts{}, max: s.max, beside: p.beside(class)}
		for name, h := range p.hosts {
			for i := range out.capacity {
				if in(name) {
					out.capacity[i] += max(0, h.allocatable[i]-local[name][i])
				}
			}
		}
		for i := range out.capacity {
			out.capacity[i] = s.percent * max(0, out.capacity[i]-s.reserve[i]) / 100
		}
		for _, l := range p.loads {
			if l.consumer != "" && in(l.node) {
				out.used[l.consumer] = out.used[l.consumer].plus(l.requests)
			}
		}
		r.pools[class] = out
	}
	return r
}

// within reports whether the node counts for the policy.
func (p *provider) within(node string, s share) bool {
	return slices.Contains(s.zones, p.hosts[node].zone) && !p.hosts[node].cordoned
}

func (p *provider) beside(class string) []string {
	out := []string{class}
	for other, s := range p.shares {
		for node := range p.hosts {
			if other != class && p.within(node, s) && p.within(node, p.shares[class]) {
				out = append(out, other)
				break
			}
		}
	}
	slices.Sort(out)
	return out
}

func (p *provider) share(class string) share {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shares[class]
}

// recent are the readings that were in force at some time since, oldest first.
func (p *provider) recent(since time.Duration) []reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := slices.IndexFunc(p.readings, func(r reading) bool { return r.until >= since })
	return slices.Clone(p.readings[first:])
}

// now is what is in force while nothing is being changed.
func (p *provider) now() reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.readings[len(p.readings)-1]
}

func patchOf(value any) client.Patch {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return client.RawPatch(types.MergePatchType, text)
}

type object = map[string]any

func (p *provider) addHost(zone string, allocatable amounts) {
	p.made++
	name := fmt.Sprintf("node-%s-%d", zone, p.made)
	resources := allocatable.list()
	resources[corev1.ResourcePods] = *resource.NewQuantity(hostPods, resource.DecimalSI)
	p.change(func() { p.hosts[name] = host{zone: zone, allocatable: allocatable} }, func(ctx context.Context) error {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
		if err := p.api.Create(ctx, n); err != nil {
			return err
		}
		// The API server taints each new node as not ready.
		if err := p.api.Patch(ctx, n, patchOf(object{"spec": object{"taints": nil}})); err != nil {
			return err
		}
		return p.api.Status().Patch(ctx, n, patchOf(object{"status": object{
			"allocatable": resources, "capacity": resources,
			"conditions": []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}}))
	})
}

func (p *provider) removeHost(name string) {
	for key, l := range maps.Clone(p.loads) {
		if l.node == name {
			p.removeLoad(key)
		}
	}
	p.change(func() { delete(p.hosts, name) }, func(ctx context.Context) error {
		return p.api.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
}

func (p *provider) resizeHost(name string, allocatable amounts) {
	h := p.hosts[name]
	h.allocatable = allocatable
	p.change(func() { p.hosts[name] = h }, func(ctx context.Context) error {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return p.api.Status().Patch(ctx, n, patchOf(object{"status": object{"allocatable": allocatable.list()}}))
	})
}

func (p *provider) cordonHost(name string, cordoned bool) {
	h := p.hosts[name]
	h.cordoned = cordoned
	p.change(func() { p.hosts[name] = h }, func(ctx context.Context) error {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return p.api.Patch(ctx, n, patchOf(object{"spec": object{"unschedulable": cordoned}}))
	})
}

func (p *provider) addLoad(l load) {
	p.made++
	name := fmt.Sprintf("pod-%d", p.made)
	p.change(func() { p.loads[name] = l }, func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}, Spec: corev1.PodSpec{
			NodeName:   l.node,
			Containers: []corev1.Container{{Name: "main", Image: "image", Resources: corev1.ResourceRequirements{Requests: l.requests.list()}}},
		}}
		if l.consumer != "" {
			pod.Labels = map[string]string{"offloading.liqo.io/origin": l.consumer}
		}
		return p.api.Create(ctx, pod)
	})
}

func (p *provider) removeLoad(name string) {
	p.change(func() { delete(p.loads, name) }, func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
		return p.api.Delete(ctx, pod, client.GracePeriodSeconds(0))
	})
}

func (p *provider) editPolicy(class string, s share) {
	p.change(func() { p.shares[class] = s }, func(ctx context.Context) error {
		spec := object{
			"nodes": object{"selector": s.selector()}, "percent": s.percent, "reserve": s.reserve.quantities(), "max": nil,
		}
		if s.max != nil {
			spec["max"] = s.max.quantities()
		}
		policy := &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: class}}
		return p.api.Patch(ctx, policy, patchOf(object{"spec": object{"offer": spec}}))
	})
}

func (p *provider) cordonTenant(id string, cordoned bool) {
	p.change(func() { p.cordoned[id] = cordoned }, func(ctx context.Context) error {
		condition := "Active"
		if cordoned {
			condition = "Cordoned"
		}
		return p.api.Patch(ctx, tenantOf(id), patchOf(object{"spec": object{"tenantCondition": condition}}))
	})
}

// disturb makes one change at random.
func (p *provider) disturb(r *rand.Rand, consumers []string) {
	p.changing.Lock()
	defer p.changing.Unlock()
	size := func() amounts { return amounts{4000 + r.Int64N(7)*500, (8 + r.Int64N(12)) * 1024 * mib} }
	zone := pick(r, []string{"a", "b", "c", "d", "shared"})
	name := pick(r, slices.Sorted(maps.Keys(p.hosts)))
	switch r.IntN(12) {
	case 0, 1:
		if len(p.hosts) < 14 {
			p.addHost(zone, size())
		}
	case 2, 3:
		if len(p.hosts) > 8 {
			p.removeHost(name)
		}
	case 4, 5:
		p.resizeHost(name, size())
	case 6:
		p.cordonHost(name, !p.hosts[name].cordoned)
	case 7, 8:
		l := load{node: name, requests: amounts{100 + r.Int64N(8)*100, (1 + r.Int64N(8)) * 256 * mib}}
		if r.IntN(3) > 0 {
			l.consumer = pick(r, consumers)
		}
		if len(p.loads) < 25 {
			p.addLoad(l)
		}
	case 9:
		if len(p.loads) > 0 {
			p.removeLoad(pick(r, slices.Sorted(maps.Keys(p.loads))))
		}
	case 10:
		p.editShare(r)
	case 11:
		id := pick(r, consumers)
		p.cordonTenant(id, !p.cordoned[id])
	}
}

func (p *provider) editShare(r *rand.Rand) {
	class := pick(r, slices.Sorted(maps.Keys(p.shares)))
	s := p.shares[class]
	s.percent = 70 + r.Int64N(4)*10
	s.reserve = amounts{r.Int64N(4) * 250, r.Int64N(3) * 512 * mib}
	s.max = nil
	if r.IntN(2) == 0 {
		s.max = &amounts{2000 + r.Int64N(6)*1000, (4 + r.Int64N(8)) * 1024 * mib}
	}
	if class == "bronze" {
		s.zones = [][]string{{"c"}, {"c", "d"}}[r.IntN(2)]
	}
	p.editPolicy(class, s)
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
