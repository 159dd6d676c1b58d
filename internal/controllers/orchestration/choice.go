package orchestration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/broker"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/quantity"
)

// providerChoice is the ProviderChoice in a namespace. It has a problem if its spec cannot be read.
type providerChoice struct {
	object  *v1alpha1.ProviderChoice
	wish    broker.Wish
	problem string
}

func parseChoice(u *unstructured.Unstructured) providerChoice {
	c := providerChoice{object: &v1alpha1.ProviderChoice{}}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c.object)
	// A consumer can write metadata of any size.
	c.object.ObjectMeta = metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		Generation: u.GetGeneration(), DeletionTimestamp: u.GetDeletionTimestamp(),
	}
	if err == nil {
		c.wish, err = parseWish(&c.object.Spec)
	}
	if err != nil {
		c.problem = err.Error()
	}
	return c
}

// stripChoice keeps what parseChoice reads.
func stripChoice(obj any) (any, error) {
	kept, err := kube.KeepFields([]string{"metadata", "generation"}, []string{"spec"}, []string{"status"})(obj)
	if u, ok := kept.(*unstructured.Unstructured); ok {
		u.SetLabels(nil)
	}
	return kept, err
}

// ownChoice is the ProviderChoice of a consumer in a plan.
type ownChoice struct {
	providerChoice
	consumer string
	// counts is the namespace with the ProviderChoice that counts instead, if the consumer has several.
	counts string
	// decider is the Orchestration that decides for the consumer, nil for none. got is its choice, and notes
	// say what namespaces wait for.
	decider *deciding
	got     broker.Choice
	notes   []note
	status  *v1alpha1.ProviderChoiceStatus
}

// findChoices finds the ProviderChoices of consumers, by the owners of their namespaces. Of several tenant
// namespaces of one consumer, the first by name counts.
func (p *planning) findChoices(owners map[string]string) {
	p.own = map[string]*ownChoice{}
	for _, ns := range slices.Sorted(maps.Keys(p.world.choices)) {
		c := &ownChoice{providerChoice: p.world.choices[ns], consumer: owners[ns]}
		if c.object.DeletionTimestamp != nil || !isID(c.consumer) {
			continue
		}
		p.plan.choices = append(p.plan.choices, c)
		if first := p.own[c.consumer]; first != nil {
			c.counts = first.object.Namespace
			continue
		}
		p.own[c.consumer] = c
	}
}

// wishAfter returns the wish of a consumer, whose previous choice stays if the wish cannot be read.
func (c *ownChoice) wishAfter(previous broker.Previous) broker.Wish {
	switch {
	case c == nil:
		return broker.Wish{}
	case c.problem == "":
		return c.wish
	}
	keep := broker.Wish{Providers: map[string]struct{}{}}
	for id := range previous.Chosen {
		keep.Providers[id] = struct{}{}
	}
	return keep
}

// decided records what an Orchestration has decided for the consumer.
func (c *ownChoice) decided(by *deciding, got broker.Choice, notes []note) {
	if c != nil {
		c.decider, c.got, c.notes = by, got, notes
	}
}

// conclude sets the status. A consumer that may not choose sees no providers.
func (c *ownChoice) conclude(now time.Time) {
	c.status = &v1alpha1.ProviderChoiceStatus{
		ObservedTime: timeOf(now), ObservedGeneration: c.object.Generation,
		Conditions: slices.Clone(c.object.Status.Conditions),
	}
	if c.decider != nil && c.decider.parsed.ConsumersChoose {
		c.show()
	}
	ready := metav1.ConditionFalse
	var reason, message string
	switch {
	case c.counts != "":
		reason = v1alpha1.ProviderChoiceNotAllowed
		message = fmt.Sprintf("The ProviderChoice in namespace %s counts for cluster %s", c.counts, c.consumer)
	case c.decider == nil:
		reason = v1alpha1.ProviderChoiceNotOrchestrated
		message = fmt.Sprintf("The broker chooses no providers for cluster %s", c.consumer)
	case !c.decider.parsed.ConsumersChoose:
		reason = v1alpha1.ProviderChoiceNotAllowed
		message = fmt.Sprintf("The broker does not let cluster %s choose: ask its admin", c.consumer)
	case c.problem != "":
		reason, message = v1alpha1.ProviderChoiceInvalid, "What is chosen stays as it is: "+c.problem
	case len(c.got.Chosen) == 0:
		reason, message = v1alpha1.ProviderChoiceNoProvider, "No provider is left: see providers"
	default:
		ready, reason = metav1.ConditionTrue, v1alpha1.ProviderChoiceInForce
		message = "The choice follows this ProviderChoice"
	}
	meta.SetStatusCondition(&c.status.Conditions, readyIs(ready, reason, message, c.object.Generation, now))
}

// show sets the providers, with what the broker has measured.
func (c *ownChoice) show() {
	s, byID := c.status, map[string]v1alpha1.ChoiceOfProvider{}
	s.Currency = c.decider.object.Spec.Currency
	for _, p := range c.got.Chosen {
		byID[p.ID] = v1alpha1.ChoiceOfProvider{Chosen: true, Because: because(p.Because)}
	}
	for _, p := range c.got.Rejected {
		byID[p.ID] = v1alpha1.ChoiceOfProvider{RejectedBy: v1alpha1.RejectedBy(p.By), Because: because(p.Because)}
	}
	for _, p := range c.decider.providers {
		shown := byID[p.ID]
		if p.ID != c.consumer {
			measured := statusOf(p, broker.History{})
			shown.ClusterID, shown.Resources = measured.ClusterID, resourcesOf(p.Values)
			shown.UptimePercent, shown.LatencyMs = measured.UptimePercent, measured.LatencyMs
			s.Providers = append(s.Providers, shown)
		}
		byID[p.ID] = shown
	}
	for _, id := range slices.Sorted(maps.Keys(c.wish.Providers)) {
		if byID[id].ClusterID == "" {
			s.Unknown = append(s.Unknown, v1alpha1.ClusterID(id))
		}
	}
	s.ChosenProviders = kube.First(c.got.IDs())
	for _, n := range c.notes {
		if n.provider != "" && !n.until.IsZero() && len(s.Draining) < v1alpha1.MaxOrchestrationNotes {
			s.Draining = append(s.Draining, n.status())
		}
	}
}

// resourcesOf returns what is measured of resources: the first by name.
func resourcesOf(values map[broker.Measure]int64) []v1alpha1.ResourceOfProvider {
	byName := map[string]v1alpha1.ResourceOfProvider{}
	for m, v := range values {
		r := byName[m.Of]
		switch m.KPI {
		case broker.Price:
			r.Price = m.Decimal(v)
		case broker.Remaining:
			remaining := quantity.Of(m.Of, v)
			r.Remaining = remaining.String()
		default:
			continue
		}
		r.Name = m.Of
		byName[m.Of] = r
	}
	all := slices.SortedFunc(maps.Values(byName), func(a, b v1alpha1.ResourceOfProvider) int {
		return cmp.Compare(a.Name, b.Name)
	})
	return all[:min(len(all), v1alpha1.MaxChoiceResources)]
}
