package filters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/plugin"
)

// Chain has the filters of nodes and of consumers in the order in which they are asked. Basic and
// Affinity stand for the operator's own checks.
type Chain struct {
	nodes     []link[capacity.Node]
	consumers []link[offer.Consumer]
}

// link is one filter of a chain. The filter is nil for Basic and Affinity.
type link[T any] struct {
	name   string
	filter *filter[T]
}

// Late is what to do once answers have arrived that evaluations did not wait for.
type Late struct {
	// Reconsider has filters asked again about these nodes, and reports whether there is one.
	Reconsider func(nodes ...string) bool
	// Wake causes an evaluation.
	Wake func()
}

// builtIn are the operator's own checks.
var builtIn = []string{config.FilterBasic, config.FilterAffinity}

// BuiltIn reports whether the name is that of one of the operator's own checks.
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
	late Late, log logr.Logger,
) *Chain {
	c := &Chain{}
	queue := &lateNodes{Late: late, names: map[string]struct{}{}}
	for _, name := range order.Nodes {
		l := link[capacity.Node]{name: name}
		if f := nodes[name]; f != nil {
			l.filter = &filter[capacity.Node]{
				caller: &caller{name: name, log: log.WithValues("filter", name)}, late: queue.add, same: (*capacity.Node).Equal,
				ask: func(p *plugin.Policy, n *capacity.Node) func() (bool, string) {
					given := nodeOf(n)
					return func() (bool, string) { return f.Filter(p, given) }
				},
			}
		}
		c.nodes = append(c.nodes, l)
	}
	for _, name := range order.Consumers {
		l := link[offer.Consumer]{name: name}
		if f := consumers[name]; f != nil {
			l.filter = &filter[offer.Consumer]{
				caller: &caller{name: name, log: log.WithValues("filter", name)}, same: sameConsumer,
				late: func(string) { late.Wake() },
				ask: func(p *plugin.Policy, k *offer.Consumer) func() (bool, string) {
					given := &plugin.Consumer{ClusterID: k.ID, Labels: maps.Clone(k.Labels)}
					return func() (bool, string) { return f.Filter(p, given) }
				},
			}
		}
		c.consumers = append(c.consumers, l)
	}
	return c
}

// Names are the names of the filters in Go, each once.
func (c *Chain) Names() []string {
	var names []string
	if c == nil {
		return nil
	}
	for _, l := range c.nodes {
		if l.filter != nil {
			names = append(names, l.name)
		}
	}
	for _, l := range c.consumers {
		if l.filter != nil {
			names = append(names, l.name)
		}
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
		s.Early, s.Filters = c.nodeFilters(p, parsed.Version, s.Filters, r)
	}
	if len(c.consumers) > 0 {
		parsed.Consumers.Filters = c.consumerFilters(p, parsed.Version, parsed.Consumers.Filters, r)
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
			rest = append(rest, nodeFilter{l.filter.answersTo(p, version, l.name, r)})
		}
	}
	return early, rest
}

func (c *Chain) consumerFilters(
	p *plugin.Policy, version string, affinity []offer.ConsumerFilter, r *Rehearsal,
) []offer.ConsumerFilter {
	var all []offer.ConsumerFilter
	for _, l := range c.consumers {
		switch {
		case l.name == config.FilterBasic:
		case l.filter == nil:
			all = append(all, affinity...)
		default:
			all = append(all, consumerFilter{l.filter.answersTo(p, version, l.name, r)})
		}
	}
	return all
}

// askPeriod is the time between two questions that are asked again.
const askPeriod = time.Second

// NeedLeaderElection is false: every replica evaluates.
func (c *Chain) NeedLeaderElection() bool { return false }

// Start asks each filter one question again from time to time, until the context ends.
func (c *Chain) Start(ctx context.Context) error {
	ticker := time.NewTicker(askPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for _, l := range c.nodes {
			l.filter.askAgain()
		}
		for _, l := range c.consumers {
			l.filter.askAgain()
		}
	}
}
