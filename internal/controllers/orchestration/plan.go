package orchestration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/broker"
	"proffer.dev/proffer/internal/kube/liqo"
)

// MaxNamespaces bounds the namespaces of a consumer that are sent on, the oldest first. A consumer can
// send any number, and each is one more on every chosen provider.
const MaxNamespaces = 250

// world is all that a plan depends on.
type world struct {
	// self is the ID of this cluster.
	self string
	// offloadable is set if Liqo's CRD exists.
	offloadable    bool
	orchestrations []orchestration
	namespaces     map[string]namespace
	offloadings    map[string]offloading
	// choices are the ProviderChoices by namespace.
	choices   map[string]providerChoice
	providers []provider
	// labels holds the labels of the consumers.
	labels map[string]map[string]string
	// running has the numbers of pods by namespace and provider, nil if they are not known.
	running map[string]map[string]int
}

// plan is the wanted state.
type plan struct {
	// orchestrations lists the Orchestrations that the plan was made from, and statuses their statuses
	// by name.
	orchestrations []orchestration
	statuses       map[string]*v1alpha1.OrchestrationStatus
	// choices are the ProviderChoices of consumers, with their statuses.
	choices  []*ownChoice
	writes   []write
	refusals []refusal
	// next is the earliest deadline, zero if there is none.
	next time.Time
	// drops is set if a write drops a provider because no pod runs there.
	drops bool
	// numbers of namespaces by their state.
	placed, waiting, foreign int
}

// wait returns the time until the next pass, if nothing wakes it earlier.
func (p *plan) wait(now time.Time) time.Duration {
	next := observePeriod
	if !p.next.IsZero() {
		next = min(next, max(p.next.Sub(now), passPeriod))
	}
	if p.waiting > 0 {
		next = min(next, podsPeriod)
	}
	return next
}

// refusal is a namespace that is not sent on.
type refusal struct {
	namespace
	consumer, because string
}

// planning is the work on a plan.
type planning struct {
	*world
	*plan
	now time.Time
	// sent are the namespaces to send on, by consumer.
	sent map[string][]namespace
	// own are the ProviderChoices that count, by consumer.
	own map[string]*ownChoice
	// deciders are the Orchestrations that take part, sorted by name.
	deciders []*deciding
	// handled are the namespaces for which an Orchestration decides.
	handled map[string]bool
}

// deciding is an Orchestration that takes part.
type deciding struct {
	orchestration
	status    *v1alpha1.OrchestrationStatus
	providers []broker.Provider
	problems  []string
	tooMany   int
}

// work works out a plan.
func (w *world) work(now time.Time) *plan {
	p := &planning{
		world: w, now: now, sent: map[string][]namespace{}, handled: map[string]bool{},
		plan: &plan{orchestrations: w.orchestrations, statuses: map[string]*v1alpha1.OrchestrationStatus{}},
	}
	for i := range w.providers {
		p.wake(w.providers[i].expires)
	}
	p.recognise()
	for _, o := range p.world.orchestrations {
		status := o.object.Status.DeepCopy()
		p.statuses[o.object.Name] = status
		if o.parsed == nil { // What it has chosen stays.
			setReady(status, o.object, metav1.ConditionFalse, v1alpha1.OrchestrationInvalid, o.problem, now)
			continue
		}
		d := &deciding{orchestration: o, status: status}
		d.measure(w.providers, now)
		status.Choices = nil
		p.deciders = append(p.deciders, d)
	}
	slices.SortFunc(p.deciders, func(a, b *deciding) int { return cmp.Compare(a.object.Name, b.object.Name) })
	for _, id := range p.consumers() {
		p.decide(id)
	}
	p.planLeftovers()
	p.takeTurns()
	for _, d := range p.deciders {
		d.conclude(p.offloadable, now)
	}
	for _, c := range p.plan.choices {
		c.conclude(now)
	}
	return p.plan
}

// consumers returns the IDs of those that have sent a namespace, or have a ProviderChoice.
func (p *planning) consumers() []string {
	ids := slices.AppendSeq(slices.Collect(maps.Keys(p.sent)), maps.Keys(p.own))
	slices.Sort(ids)
	return slices.Compact(ids)
}

// takeTurns orders the writes by turns, so that no consumer waits for all namespaces of another: the first
// of each consumer, then the second.
func (p *planning) takeTurns() {
	turns, taken := map[string]int{}, map[string]int{}
	for _, w := range p.writes {
		consumer := p.namespaces[w.namespace].cluster
		turns[w.namespace] = taken[consumer]
		taken[consumer]++
	}
	slices.SortStableFunc(p.writes, func(a, b write) int {
		return cmp.Compare(turns[a.namespace], turns[b.namespace])
	})
}

// recognise finds the namespaces that consumers have sent, and refuses some.
func (p *planning) recognise() {
	owners := map[string]string{}
	for _, n := range p.namespaces {
		if n.tenant {
			owners[n.name] = n.cluster
		}
	}
	p.findChoices(owners)
	for _, n := range p.namespaces {
		if n.tenant || n.managedBy == "" || n.deleting {
			continue
		}
		tenant, _, _ := strings.Cut(n.managedBy, "/")
		owner := owners[tenant]
		switch {
		case owner == "" || !isID(owner):
			p.refuse(n, owner, "its NamespaceMap is in no tenant namespace of a consumer")
		case owner != n.cluster:
			p.refuse(n, owner, fmt.Sprintf("consumer %s has sent it, and its label %s names %q",
				owner, liqo.RemoteClusterIDLabel, n.cluster))
		case len(n.original) >= maxOriginal:
			p.refuse(n, owner, "its name at the consumer is not the name of a namespace")
		case broker.BeenHere(n.original, p.self):
			p.refuse(n, owner, fmt.Sprintf("it has been on this cluster before: its name at the consumer is %s", n.original))
		default:
			p.sent[owner] = append(p.sent[owner], n)
		}
	}
	for owner, all := range p.sent {
		slices.SortFunc(all, func(a, b namespace) int {
			return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name))
		})
		for _, n := range all[min(len(all), MaxNamespaces):] {
			p.refuse(n, owner, fmt.Sprintf("consumer %s has sent %d older ones, and no more are sent on", owner, MaxNamespaces))
		}
		p.sent[owner] = all[:min(len(all), MaxNamespaces)]
	}
	slices.SortFunc(p.refusals, func(a, b refusal) int { return cmp.Compare(a.name, b.name) })
}

func (p *planning) refuse(n namespace, consumer, because string) {
	p.refusals = append(p.refusals, refusal{n, consumer, because})
}

// decide lets each Orchestration that selects a consumer choose, and puts the choice of one into
// force.
func (p *planning) decide(id string) {
	consumer := broker.Consumer{ID: id, Labels: p.labels[id]}
	parsed := make([]*broker.Orchestration, 0, len(p.deciders))
	for _, d := range p.deciders {
		parsed = append(parsed, d.parsed)
	}
	decides, own := broker.Decider(parsed, consumer), p.own[id]
	for _, d := range p.deciders {
		switch {
		case !d.parsed.Consumers.Selects(consumer.ID, consumer.Labels):
			continue
		case len(p.sent[id]) == 0 && !d.parsed.ConsumersChoose:
			if d.parsed == decides {
				own.decided(d, broker.Choice{}, nil)
			}
			continue
		case len(d.status.Choices) == v1alpha1.MaxOrchestrationConsumers:
			d.tooMany++
			if d.parsed == decides { // Its NamespaceOffloadings stay as they are.
				p.handle(id)
			}
			continue
		}
		choice := v1alpha1.ConsumerChoice{Consumer: v1alpha1.ClusterID(id), Namespaces: int32(len(p.sent[id]))}
		if !d.parsed.DryRun && d.parsed != decides {
			choice.DecidedBy = decides.Name
			d.status.Choices = append(d.status.Choices, choice)
			continue
		}
		previous := previousOf(&d.object.Status, id)
		got := broker.Choose(d.parsed, id, own.wishAfter(previous), d.providers, previous, p.now)
		choice.ConsumerChose = own != nil && d.parsed.ConsumersChoose
		setChoice(&choice, got)
		if len(got.Chosen) == 0 && !got.Wished() {
			d.problems = append(d.problems, id)
		}
		notes := p.refused(id)
		if d.parsed == decides {
			if p.offloadable {
				notes = append(notes, p.place(id, &wanted{d.object.Name, got.IDs(), d.parsed.Drain})...)
			}
			own.decided(d, got, notes)
		}
		setNotes(&choice, notes)
		d.status.Choices = append(d.status.Choices, choice)
	}
}

func (p *planning) handle(consumer string) {
	for _, n := range p.sent[consumer] {
		p.handled[n.name] = true
	}
}

// refused returns notes on the refused namespaces of a consumer.
func (p *planning) refused(consumer string) (notes []note) {
	for _, r := range p.refusals {
		if r.consumer == consumer {
			notes = append(notes, note{namespace: r.name, because: r.because})
		}
	}
	return notes
}

// place plans the NamespaceOffloadings of a consumer.
func (p *planning) place(consumer string, want *wanted) (notes []note) {
	p.handle(consumer)
	for _, n := range p.sent[consumer] {
		notes = append(notes, p.change(n.name, want)...)
	}
	return notes
}

// change plans the NamespaceOffloading of a namespace.
func (p *planning) change(name string, want *wanted) []note {
	var have *offloading
	if o, exists := p.offloadings[name]; exists {
		have = &o
	}
	var pods map[string]int
	if p.running != nil {
		pods = map[string]int{}
		maps.Copy(pods, p.running[name])
	}
	w, notes := change(name, have, want, pods, p.now)
	if w.action != keep {
		p.drops = p.drops || w.drops()
		p.writes = append(p.writes, w)
	}
	switch {
	case have != nil && !have.ours:
		p.foreign++
	case len(notes) > 0:
		p.waiting++
	default:
		p.placed++
	}
	for _, n := range notes {
		p.wake(n.until)
	}
	return notes
}

// wake has the next pass made at this time at the latest, unless it is zero.
func (p *plan) wake(at time.Time) {
	if !at.IsZero() && (p.next.IsZero() || at.Before(p.next)) {
		p.next = at
	}
}

// planLeftovers plans the end of our NamespaceOffloadings for which no Orchestration decides any more. The
// ones of an Orchestration that is invalid or a DryRun stay as they are.
func (p *planning) planLeftovers() {
	for _, name := range slices.Sorted(maps.Keys(p.offloadings)) {
		o := p.offloadings[name]
		if !o.ours || p.handled[name] || p.rests(o.orchestration) {
			continue
		}
		p.change(name, nil)
	}
}

func (p *planning) rests(name string) bool {
	return slices.ContainsFunc(p.world.orchestrations, func(o orchestration) bool {
		return o.object.Name == name && (o.parsed == nil || o.parsed.DryRun)
	})
}
