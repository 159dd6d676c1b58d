package command

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

// amounts is an amount of each scarce resource.
type amounts [2]int64

// The indices of amounts. cpu is in milli, memory in bytes.
const (
	cpu = iota
	memory
)

const (
	mib      = 1 << 20
	hostPods = 500
)

func (a amounts) plus(b amounts) amounts { return amounts{a[cpu] + b[cpu], a[memory] + b[memory]} }

// within reports whether neither amount exceeds that in b.
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

// amountsIn returns the amounts in a list. An amount beyond int64 becomes the maximum.
func amountsIn(list corev1.ResourceList) amounts {
	return amounts{
		quantity.AmountOf(capacity.CPU, *list.Cpu(), quantity.Up),
		quantity.AmountOf(capacity.Memory, *list.Memory(), quantity.Up),
	}
}

// host is a node that the test created.
type host struct {
	zone        string
	allocatable amounts
	cordoned    bool
}

// load is a pod on a node. For one of the provider's own pods consumer is empty; otherwise slice is
// the slice that created it.
type load struct {
	node, consumer, slice string
	requests              amounts
	// waits is set until the pod is bound to its node, after the change number until. Only pods of
	// consumers wait. announced is set if Liqo creates the pod only then.
	waits, announced bool
	until            int
}

// share is the policy that the test wrote for the class of the same name.
type share struct {
	zones   []string
	percent int64
	reserve amounts
	// max is nil without a limit.
	max                         *amounts
	denyExcess, evicts, retains bool
}

// provider is everything that the operator decides by, except the slices, with its states over
// time. Only the test changes it.
type provider struct {
	t     *testing.T
	api   client.Client
	clock *clock
	// adversary is that of chaos.
	adversary bool
	// changing is held during one change.
	changing sync.Mutex
	// made counts nodes and pods, bound the pods that were bound after a wait, unannounced those of them that
	// were created only then, changed the calls of changeAtRandom.
	made, bound, unannounced, changed int

	mu     sync.Mutex
	hosts  map[string]host
	loads  map[string]load
	shares map[string]share
	// deletedPolicies has deleted policies, to be created again.
	deletedPolicies map[string]share
	// cordoned and drained have the consumers whose Tenants say so. absent has the consumers
	// without a Tenant.
	cordoned, drained, absent map[string]bool
	states                    []providerState
}

// providerState is the provider between two changes. During a change, the states before and after
// it are both in force.
type providerState struct {
	from, until time.Duration
	pools       map[string]pool
	// used is what pods request on all nodes, by consumer. created is the same by the slice that
	// created the pods.
	used, created             map[string]amounts
	cordoned, drained, absent map[string]bool
}

func (r providerState) offers(class string) bool {
	_, offered := r.pools[class]
	return offered
}

// pool is what one class has.
type pool struct {
	capacity amounts
	// used is what pods request on the nodes of the pool, by consumer.
	used map[string]amounts
	// created is the same by the slice that created the pods, as their label says, with the pods that
	// are not bound yet: whichever class their slice had them accepted in counts them.
	created map[string]amounts
	// max is nil without a limit.
	max *amounts
	// overlapping has the classes with which this class has a node in common, including itself,
	// sorted. together is the most that may be promised in all of them.
	overlapping []string
	together    amounts
}

func newProvider(t *testing.T, api client.Client, clock *clock, adversary bool) *provider {
	p := &provider{
		t: t, api: api, clock: clock, hosts: map[string]host{}, loads: map[string]load{},
		deletedPolicies: map[string]share{},
		cordoned:        map[string]bool{}, drained: map[string]bool{}, absent: map[string]bool{},
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
	p.states = []providerState{p.read()}
	for class := range p.shares {
		p.must(api.Create(t.Context(), p.policy(class)))
	}
	return p
}

func (p *provider) must(err error) {
	if err != nil && p.t.Context().Err() == nil {
		p.t.Errorf("the test cannot change the provider: %v", err)
	}
}

func (p *provider) policy(class string) *v1alpha1.ResourcePolicy {
	s := p.share(class)
	out := &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: v1alpha1.ResourcePolicySpec{
		Class: class, UpdateThresholdPercent: new(int32),
		Offer: v1alpha1.PolicyOffer{
			Nodes: &v1alpha1.Nodes{Selector: s.selector()}, Percent: new(v1alpha1.Percent(s.percent)),
		},
		Reclaim: v1alpha1.ReclaimUnused, Slices: &v1alpha1.Slices{OnExcess: v1alpha1.OnExcessCap, Defaults: v1alpha1.Quantities{}},
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

// change makes one change: model updates the test's state, apply writes to the API server.
func (p *provider) change(model func(), apply func(ctx context.Context) error) {
	p.mu.Lock()
	model()
	next := p.read()
	next.from = p.clock.now()
	p.states = append(p.states, next)
	p.mu.Unlock()

	p.must(apply(p.t.Context()))

	p.mu.Lock()
	defer p.mu.Unlock()
	p.states[len(p.states)-2].until = p.clock.now()
}

// read sums up the current state.
func (p *provider) read() providerState {
	r := providerState{
		until: math.MaxInt64, pools: map[string]pool{}, used: map[string]amounts{}, created: map[string]amounts{},
		cordoned: maps.Clone(p.cordoned),
	}
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
		out := pool{
			used: map[string]amounts{}, created: map[string]amounts{}, max: s.max, overlapping: p.overlapping(class),
		}
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
			if l.consumer == "" || !l.waits && !in(l.node) {
				continue
			}
			if !l.waits {
				out.used[l.consumer] = out.used[l.consumer].plus(l.requests)
			}
			creator := creatorOf(l.consumer, l.slice)
			out.created[creator] = out.created[creator].plus(l.requests)
		}
		r.pools[class] = out
	}
	for class, out := range r.pools {
		out.together = p.together(out.overlapping, local)
		r.pools[class] = out
	}
	return r
}

// together returns the most that may stay promised in overlapping classes: the sum over all their
// nodes, each node counted with the highest percentage of the classes. A single class gets more
// only if it has that amount left after all the others; but two classes whose nodes start to
// overlap keep what they have.
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

func (p *provider) overlapping(class string) []string {
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

// recent returns the states that were in force at some time from since to until, oldest first.
func (p *provider) recent(since, until time.Duration) []providerState {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := slices.IndexFunc(p.states, func(r providerState) bool { return r.until >= since })
	return slices.DeleteFunc(slices.Clone(p.states[first:]), func(r providerState) bool { return r.from > until })
}

// now returns the state in force. The caller makes no change meanwhile.
func (p *provider) now() providerState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.states[len(p.states)-1]
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
