package main

import (
	"context"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/quantity"
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

// within reports whether there is no more of either than in b.
func (a amounts) within(b amounts) bool { return a[cpu] <= b[cpu] && a[memory] <= b[memory] }

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

// amountsIn are those of a list. What is beyond int64, for which a Quantity has 0, is held at its end.
func amountsIn(list corev1.ResourceList) amounts {
	return amounts{quantity.AmountOf(capacity.CPU, *list.Cpu(), quantity.Up), quantity.AmountOf(capacity.Memory, *list.Memory(), quantity.Up)}
}

// host is a node as the test made it.
type host struct {
	zone        string
	allocatable amounts
	cordoned    bool
}

// load is a pod on a node; the consumer is empty for one of this cluster's own, and the slice is that which made it.
type load struct {
	node, consumer, slice string
	requests              amounts
}

// share is the policy of the class of its name, as the test wrote it.
type share struct {
	zones   []string
	percent int64
	reserve amounts
	// max is nil for none.
	max                         *amounts
	denyExcess, evicts, retains bool
}

// provider is all that the operator goes by but the slices, as the test made it, and what came of that when. Only the test changes it.
type provider struct {
	t     *testing.T
	api   client.Client
	clock *clock
	// adversary is that of faults.
	adversary bool
	// changing is held while one change is made.
	changing sync.Mutex
	made     int

	mu     sync.Mutex
	hosts  map[string]host
	loads  map[string]load
	shares map[string]share
	// gone are policies that were deleted, to be made again.
	gone map[string]share
	// cordoned and drained are what Tenants say; absent are consumers that have none.
	cordoned, drained, absent map[string]bool
	readings                  []reading
}

// reading is what the provider has from one change to the next. While a change is being made, both that before and that after are in force.
type reading struct {
	from, until time.Duration
	pools       map[string]pool
	// used is what pods request on all nodes, by consumer; created is the same by the slice that made them.
	used, created             map[string]amounts
	cordoned, drained, absent map[string]bool
}

func (r reading) offers(class string) bool {
	_, offered := r.pools[class]
	return offered
}

// pool is what one class has.
type pool struct {
	capacity amounts
	// used is what pods request on the nodes of the pool, by consumer.
	used map[string]amounts
	// created is the same by the slice that made the pods, as that is known by its label.
	created map[string]amounts
	// max is nil for none.
	max *amounts
	// beside are the classes that have a node in common with this one, itself among them, sorted; together is the most that may stay promised in all of these.
	beside   []string
	together amounts
}

func newProvider(t *testing.T, api client.Client, clock *clock, adversary bool) *provider {
	p := &provider{
		t: t, api: api, clock: clock, hosts: map[string]host{}, loads: map[string]load{}, gone: map[string]share{},
		cordoned: map[string]bool{}, drained: map[string]bool{}, absent: map[string]bool{},
		shares: map[string]share{
			"gold":   {zones: []string{"a", "shared"}, percent: 100},
			"silver": {zones: []string{"b", "shared"}, percent: 100, denyExcess: true},
			"bronze": {zones: []string{"c"}, percent: 100, evicts: true},
			"brass":  {zones: []string{"c", "shared"}, percent: 100},
		},
		adversary: adversary,
	}
	if !adversary {
		delete(p.shares, "brass")
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
	out.Spec.Reclaim = s.reclaim()
	if s.reserve != (amounts{}) {
		out.Spec.Offer.Reserve = s.reserve.quantities()
	}
	if s.max != nil {
		out.Spec.Offer.Max = s.max.quantities()
	}
	return out
}

func (s *share) reclaim() v1alpha1.Reclaim {
	switch {
	case s.evicts:
		return v1alpha1.ReclaimEvict
	case s.retains:
		return v1alpha1.ReclaimRetain
	}
	return v1alpha1.ReclaimUnused
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
	r := reading{until: math.MaxInt64, pools: map[string]pool{}, used: map[string]amounts{}, created: map[string]amounts{}, cordoned: maps.Clone(p.cordoned)}
	r.drained, r.absent = maps.Clone(p.drained), maps.Clone(p.absent)
	local := map[string]amounts{}
	for _, l := range p.loads {
		if l.consumer == "" {
			local[l.node] = local[l.node].plus(l.requests)
		} else {
			r.used[l.consumer] = r.used[l.consumer].plus(l.requests)
			creator := creatorOf(l.consumer, l.slice)
			r.created[creator] = r.created[creator].plus(l.requests)
		}
	}
	for class, s := range p.shares {
		in := func(node string) bool { return p.within(node, s) }
		out := pool{used: map[string]amounts{}, created: map[string]amounts{}, max: s.max, beside: p.beside(class)}
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
				creator := creatorOf(l.consumer, l.slice)
				out.created[creator] = out.created[creator].plus(l.requests)
			}
		}
		r.pools[class] = out
	}
	for class, out := range r.pools {
		out.together = p.together(out.beside, local)
		r.pools[class] = out
	}
	return r
}

// together is the most that may stay promised in classes that have nodes in common: what all their nodes have, each by the class that gives the most
// of it. From one class more is promised only as far as it has that beside all the others, but two whose nodes have come to overlap keep what they have.
func (p *provider) together(classes []string, local map[string]amounts) amounts {
	var hundredths amounts
	for name, h := range p.hosts {
		percent := int64(0)
		for _, class := range classes {
			if p.within(name, p.shares[class]) {
				percent = max(percent, p.shares[class].percent)
			}
		}
		for i := range hundredths {
			hundredths[i] += percent * max(0, h.allocatable[i]-local[name][i])
		}
	}
	return amounts{hundredths[cpu] / 100, hundredths[memory] / 100}
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

// recent are the readings that were in force at some time since, until then, oldest first.
func (p *provider) recent(since, until time.Duration) []reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := slices.IndexFunc(p.readings, func(r reading) bool { return r.until >= since })
	return slices.DeleteFunc(slices.Clone(p.readings[first:]), func(r reading) bool { return r.from > until })
}

// now is what is in force while nothing is being changed.
func (p *provider) now() reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.readings[len(p.readings)-1]
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
