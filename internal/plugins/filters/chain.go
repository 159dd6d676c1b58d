package filters

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/filter/memo"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/plugin"
)

// Chain has the filters of nodes, of consumers and of slices in the order in which they are asked. Basic
// and Affinity stand for the operator's own checks.
type Chain struct {
	nodes     []link[capacity.Node]
	consumers []link[offer.Consumer]
	slices    []link[offer.Request]
	// callers make the calls of all filters in Go.
	callers   []*caller
	questions *prometheus.CounterVec
}

// link is one filter of a chain. The filter is nil for Basic and Affinity.
type link[T any] struct {
	name   string
	filter *filter[T]
}

// Late asks again what evaluations did not wait for.
type Late struct {
	// Reconsider asks filters again about these nodes, and reports whether there is one.
	Reconsider func(nodes ...string) bool
	// Wake causes an evaluation.
	Wake func()
}

// builtIn are the operator's own checks.
var builtIn = []string{config.FilterBasic, config.FilterAffinity}

// BuiltIn reports whether one of the operator's own checks has the name.
func BuiltIn(name string) bool { return slices.Contains(builtIn, name) }

// CheckOrder checks a list of filters of the configuration. The field is its place there, registered
// are the names of filters in Go. The error says what to write.
func CheckOrder(field string, order, registered []string) error {
	if len(order) == 0 {
		return nil
	}
	for i, name := range order {
		if slices.Contains(order[:i], name) {
			return fmt.Errorf("%s lists %s twice: leave one of them out", field, name)
		}
		if !BuiltIn(name) && !slices.Contains(registered, name) {
			return fmt.Errorf("%s lists %q, and there is no such filter: write %s", field, name, anyOf(registered))
		}
	}
	for _, name := range builtIn {
		if !slices.Contains(order, name) {
			return fmt.Errorf("%s leaves out %s: add it, since fields of policies have no effect without it", field, name)
		}
	}
	return nil
}

// anyOf lists the filters that there are.
func anyOf(registered []string) string {
	all := slices.Concat(builtIn, registered)
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// New returns the chain in this order, which CheckOrder accepts; an empty list stands for Basic and
// Affinity. It has the filters by name.
func New(
	order config.Filters, nodes map[string]plugin.NodeFilter, consumers map[string]plugin.ConsumerFilter,
	requests map[string]plugin.SliceFilter, late Late, log logr.Logger,
) *Chain {
	c, b := &Chain{questions: newQuestions()}, &budget{}
	calls := func(of string, again func(keys []string)) func(name string) *caller {
		return func(name string) *caller {
			made := newCaller(name, of, log, again, b, c.questions)
			c.callers = append(c.callers, made)
			return made
		}
	}
	reconsider := func(nodes []string) {
		if late.Reconsider(nodes...) {
			late.Wake()
		}
	}
	wake := func([]string) { late.Wake() }
	c.nodes = links(order.Nodes, nodes, nodeOf, digestOfNode, calls("nodes", reconsider))
	c.consumers = links(order.Consumers, consumers, consumerOf, digestOfConsumer, calls("consumers", wake))
	c.slices = links(order.Slices, requests, requestOf, (*offer.Request).Digest, calls("slices", wake))
	return c
}

// links returns a part of the chain, for objects of type T, of which its filters in Go get an O.
func links[T, O any, F interface {
	Filter(p *plugin.Policy, object *O) (ok bool, why string)
}](
	order []string, registered map[string]F, copyOf func(*T) *O, digest func(*T) memo.Digest,
	calls func(name string) *caller,
) []link[T] {
	var all []link[T]
	for _, name := range order {
		l := link[T]{name: name}
		if f, ok := registered[name]; ok {
			ask := func(p *plugin.Policy, object *T) func() (bool, string) {
				given := copyOf(object)
				return func() (bool, string) { return f.Filter(p, given) }
			}
			l.filter = &filter[T]{caller: calls(name), ask: ask, digest: digest}
		}
		all = append(all, l)
	}
	return all
}

// Names are the names of the filters in Go, each once.
func (c *Chain) Names() (names []string) {
	if c == nil {
		return nil
	}
	for _, made := range c.callers {
		names = append(names, made.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// AddTo puts the filters into a policy that was parsed from the object. It may be called on nil, for
// no filters in Go.
func (c *Chain) AddTo(object *v1alpha1.ResourcePolicy, parsed *offer.Policy) {
	c.addTo(object, parsed, nil)
}

func (c *Chain) addTo(object *v1alpha1.ResourcePolicy, parsed *offer.Policy, r *Rehearsal) {
	if c == nil {
		return
	}
	p := &plugin.Policy{Name: parsed.Name, UID: string(object.UID), Generation: object.Generation, Spec: object.Spec}
	if parsed.Nodes != nil && len(c.nodes) > 0 {
		s := &parsed.Nodes.Selection
		basic := slices.IndexFunc(c.nodes, func(l link[capacity.Node]) bool { return l.name == config.FilterBasic })
		of := func(a *answers[capacity.Node]) capacity.NodeFilter { return nodeFilter{a} }
		s.Early, s.Filters = chained(c.nodes[:basic], p, parsed.Version, s.Filters, r, of),
			chained(c.nodes[basic:], p, parsed.Version, s.Filters, r, of)
	}
	if len(c.consumers) > 0 {
		parsed.Consumers.Filters = chained(c.consumers, p, parsed.Version, parsed.Consumers.Filters, r,
			func(a *answers[offer.Consumer]) offer.ConsumerFilter { return consumerFilter{a} })
	}
	if len(c.slices) > 0 {
		parsed.Slices.Filters = chained(c.slices, p, parsed.Version, parsed.Slices.Filters, r,
			func(a *answers[offer.Request]) offer.SliceFilter { return sliceFilter{a} })
	}
}

// chained returns the filters of a part of the chain. The affinity are those of the policy.
func chained[T any, F any](
	links []link[T], p *plugin.Policy, version string, affinity []F, r *Rehearsal, of func(*answers[T]) F,
) []F {
	var all []F
	for _, l := range links {
		switch {
		case l.name == config.FilterBasic:
		case l.filter == nil:
			all = append(all, affinity...)
		default:
			all = append(all, of(l.filter.answersFor(p, version, r)))
		}
	}
	return all
}
