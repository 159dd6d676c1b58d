package filters

import (
	"maps"
	"strings"
	"sync"
	"weak"

	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/plugin"
)

// filter is one filter in Go. T is capacity.Node, offer.Consumer or offer.Request.
type filter[T any] struct {
	caller *caller
	// late takes the key of an object of which an answer has arrived late, or has changed.
	late func(key string)
	// same reports whether two states of an object are one question.
	same func(a, b *T) bool
	// standsFor reports whether the answer about an earlier state counts for the present one until that is
	// answered.
	standsFor func(earlier, present *T) bool
	// ask returns a function that asks about an object.
	ask func(p *plugin.Policy, object *T) func() (ok bool, why string)

	mu sync.Mutex
	// all are the answers to all policies, in the order in which they are asked again. Those of policies
	// that are no more are nil after a while.
	all []weak.Pointer[answers[T]]
}

// answersTo returns answers to a policy, without any as yet. Those that count replace the answers to
// earlier edits of the policy. The filter is given a copy of the policy, because other filters have it
// at the same time.
func (f *filter[T]) answersTo(p *plugin.Policy, version, name string, r *Rehearsal) *answers[T] {
	own := *p
	p.Spec.DeepCopyInto(&own.Spec)
	a := newAnswers(f, &own, strings.Join([]string{name, p.Name, version}, "\x00"))
	if a.rehearsal = r; r == nil {
		for _, earlier := range f.policies() {
			if earlier.policy.Name == p.Name {
				f.caller.drop(earlier.policy)
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all = append(f.all, weak.Make(a))
	}
	return a
}

// askAgain asks one question again, if the filter has nothing else to do. It may be called on nil.
func (f *filter[T]) askAgain() {
	if f == nil || !f.caller.idle() {
		return
	}
	for range len(f.policies()) {
		f.mu.Lock()
		next := f.all[0]
		f.all = append(f.all[1:], next)
		f.mu.Unlock()
		if a := next.Value(); a != nil && a.askAgain() {
			return
		}
	}
}

// policies returns the answers to all policies that there are, and forgets the others.
func (f *filter[T]) policies() []*answers[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	var there []*answers[T]
	kept := f.all[:0]
	for _, p := range f.all {
		if a := p.Value(); a != nil {
			there, kept = append(there, a), append(kept, p)
		}
	}
	f.all = kept
	return there
}

// unanswered counts the objects whose present state is not answered.
func (f *filter[T]) unanswered() int {
	n := 0
	for _, a := range f.policies() {
		a.mu.Lock()
		n += len(a.pending)
		a.mu.Unlock()
	}
	return n
}

// nodeFilter implements capacity.NodeFilter.
type nodeFilter struct{ *answers[capacity.Node] }

// Admits implements capacity.NodeFilter.
func (f nodeFilter) Admits(n *capacity.Node) (ok bool, why string) {
	a := f.of(n.Name, n)
	return a == "", string(a)
}

// consumerFilter implements offer.ConsumerFilter.
type consumerFilter struct{ *answers[offer.Consumer] }

// Admits implements offer.ConsumerFilter.
func (f consumerFilter) Admits(c offer.Consumer) (ok bool, why string) {
	a := f.of(c.ID, &c)
	return a == "", string(a)
}

// sliceFilter implements offer.SliceFilter.
type sliceFilter struct{ *answers[offer.Request] }

// Rule implements offer.SliceFilter.
func (f sliceFilter) Rule(r *offer.Request) (ruling offer.Ruling, why string) {
	switch a := f.of(r.Key, r); a {
	case "":
		return offer.Admitted, ""
	case f.unanswered(), f.tooLate():
		return offer.Undecided, string(a)
	default:
		return offer.Refused, string(a)
	}
}

// sameRequest reports whether a slice still asks for the same. Its consumer must not be granted anything on the
// strength of what it asked for before.
func sameRequest(a, b *offer.Request) bool {
	return maps.Equal(a.Resources, b.Resources) && maps.Equal(a.Labels, b.Labels)
}

// always is for what only admins of the provider change.
func always[T any](_, _ *T) bool { return true }

func sameConsumer(a, b *offer.Consumer) bool { return a.ID == b.ID && maps.Equal(a.Labels, b.Labels) }

func consumerOf(c *offer.Consumer) plugin.Consumer {
	return plugin.Consumer{ClusterID: c.ID, Labels: maps.Clone(c.Labels)}
}

func requestOf(r *offer.Request) *plugin.Request {
	out := &plugin.Request{
		Consumer: consumerOf(&r.Consumer), Labels: maps.Clone(r.Labels), Age: r.Age, Resources: listOf(r.Resources),
	}
	out.Namespace, out.Name, _ = strings.Cut(r.Key, "/")
	return out
}

func listOf(amounts capacity.Amounts) corev1.ResourceList {
	list := make(corev1.ResourceList, len(amounts))
	for name, amount := range amounts {
		list[corev1.ResourceName(name)] = quantity.Of(name, amount)
	}
	return list
}

// nodeOf converts a node. A filter that changes it, which it must not, changes nothing of the ledger.
func nodeOf(n *capacity.Node) *plugin.Node {
	out := &plugin.Node{
		Name: n.Name, Labels: maps.Clone(n.Labels), Ready: n.State == capacity.Ready, Cordoned: n.State == capacity.Cordoned,
		Allocatable: listOf(n.Allocatable),
	}
	for _, t := range n.Taints {
		out.Taints = append(out.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return out
}

// lateNodes has nodes reconsidered, many at a time. Its goroutine lives while there are any: a caller
// must not wait for the ledger, which may be waiting for the caller.
type lateNodes struct {
	Late
	mu      sync.Mutex
	names   map[string]struct{}
	running bool
}

func (l *lateNodes) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names[name] = struct{}{}
	if !l.running {
		l.running = true
		go l.run()
	}
}

func (l *lateNodes) run() {
	for {
		l.mu.Lock()
		var names []string
		for name := range l.names {
			names = append(names, name)
		}
		clear(l.names)
		l.running = len(names) > 0
		l.mu.Unlock()
		if len(names) == 0 {
			return
		}
		if l.Reconsider(names...) {
			l.Wake()
		}
	}
}
