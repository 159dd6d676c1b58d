package filters

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"

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
	c, b := &Chain{}, &budget{}
	reconsider := func(nodes []string) {
		if late.Reconsider(nodes...) {
			late.Wake()
		}
	}
	wake := func([]string) { late.Wake() }
	c.nodes = links(order.Nodes, nodes, log, reconsider, b, digestOfNode,
		func(f plugin.NodeFilter, p *plugin.Policy, n *capacity.Node) func() (bool, string) {
			given := nodeOf(n)
			return func() (bool, string) { return f.Filter(p, given) }
		})
	c.consumers = links(order.Consumers, consumers, log, wake, b, digestOfConsumer,
		func(f plugin.ConsumerFilter, p *plugin.Policy, k *offer.Consumer) func() (bool, string) {
			given := consumerOf(k)
			return func() (bool, string) { return f.Filter(p, &given) }
		})
	c.slices = links(order.Slices, requests, log, wake, b, (*offer.Request).Digest,
		func(f plugin.SliceFilter, p *plugin.Policy, r *offer.Request) func() (bool, string) {
			given := requestOf(r)
			return func() (bool, string) { return f.Filter(p, given) }
		})
	return c
}

// links returns a part of the chain. F is the interface of its filters in Go.
func links[T any, F any](
	order []string, registered map[string]F, log logr.Logger, again func(keys []string), b *budget,
	digest func(*T) memo.Digest,
	ask func(f F, p *plugin.Policy, object *T) func() (ok bool, why string),
) []link[T] {
	var all []link[T]
	for _, name := range order {
		l := link[T]{name: name}
		if f, ok := registered[name]; ok {
			l.filter = &filter[T]{
				caller: newCaller(name, log, again, b),
				ask:    func(p *plugin.Policy, object *T) func() (bool, string) { return ask(f, p, object) },
				digest: digest,
			}
		}
		all = append(all, l)
	}
	return all
}

// Names are the names of the filters in Go, each once.
func (c *Chain) Names() []string {
	if c == nil {
		return nil
	}
	names := slices.Concat(namesIn(c.nodes), namesIn(c.consumers), namesIn(c.slices))
	slices.Sort(names)
	return slices.Compact(names)
}

func namesIn[T any](links []link[T]) (names []string) {
	for _, l := range links {
		if l.filter != nil {
			names = append(names, l.name)
		}
	}
	return names
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
		s.Early, s.Filters = c.nodeFilters(p, parsed.Version, s.Filters, r)
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

// nodeFilters returns the filters before and after Basic. The affinity are those of the policy.
func (c *Chain) nodeFilters(
	p *plugin.Policy, version string, affinity []capacity.NodeFilter, r *Rehearsal,
) (early, rest []capacity.NodeFilter) {
	for _, l := range c.nodes {
		switch {
		case l.name == config.FilterBasic:
			early, rest = rest, nil
		case l.filter == nil:
			rest = append(rest, affinity...)
		default:
			rest = append(rest, nodeFilter{l.filter.answersFor(p, version, r)})
		}
	}
	return early, rest
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
