package orchestration

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/broker"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
)

// readyCondition is the type of the one condition.
const readyCondition = "Ready"

// statusInterval is the maximum age of the measurements in a status. It is less than broker.MaxGap, so
// that a restart loses no time of an uptime.
const statusInterval = time.Minute

// measure adds to the histories in the status what is observed now, and sets the providers to choose
// from. A provider without a virtual node is remembered for the window.
func (d *deciding) measure(providers []provider, now time.Time) {
	ready, offers := map[string]bool{}, map[string][]rest.FederationOffer{}
	plain := make([]broker.Provider, 0, len(providers))
	for _, p := range providers {
		ready[p.ID], offers[p.ID] = p.ready, p.offers
		plain = append(plain, p.Provider)
	}
	before := map[string]v1alpha1.ProviderStatus{}
	for _, s := range d.object.Status.Providers {
		before[string(s.ClusterID)] = s
	}
	selected, all := d.parsed.Of(plain, v1alpha1.MaxOrchestrationProviders)
	d.status.ProviderCount, d.status.Providers = int32(all), nil
	for _, p := range selected {
		history := historyOf(before[p.ID]).Observe(ready[p.ID], now, d.parsed.Window)
		delete(before, p.ID)
		values := maps.Clone(p.Values)
		notes := map[broker.Measure]string{}
		maps.Copy(notes, p.Notes)
		addPrices(values, notes, offers[p.ID], d.object.Spec.Currency)
		if uptime, measured := history.Uptime(); measured {
			values[broker.Measure{KPI: broker.Uptime}] = uptime
		}
		p.Values, p.Notes = values, notes
		d.providers = append(d.providers, p)
		d.status.Providers = append(d.status.Providers, statusOf(p, history))
	}
	for _, s := range d.object.Status.Providers {
		_, gone := before[string(s.ClusterID)]
		if gone && len(d.status.Providers) < v1alpha1.MaxOrchestrationProviders &&
			!historyOf(s).Forgotten(now, d.parsed.Window) {
			s.Ready, s.LatencyMs = false, ""
			d.status.Providers = append(d.status.Providers, s)
		}
	}
	slices.SortFunc(d.status.Providers, func(a, b v1alpha1.ProviderStatus) int {
		return strings.Compare(string(a.ClusterID), string(b.ClusterID))
	})
}

func historyOf(s v1alpha1.ProviderStatus) broker.History {
	h := broker.History{
		Ready:    time.Duration(s.ReadySeconds) * time.Second,
		Observed: time.Duration(s.ObservedSeconds) * time.Second,
		WasReady: s.Ready,
	}
	if s.LastObservedTime != nil {
		h.Last = s.LastObservedTime.UTC()
	}
	return h
}

func statusOf(p broker.Provider, h broker.History) v1alpha1.ProviderStatus {
	return v1alpha1.ProviderStatus{
		ClusterID: v1alpha1.ClusterID(p.ID), Ready: h.WasReady, ReadySeconds: int64(h.Ready / time.Second),
		ObservedSeconds: int64(h.Observed / time.Second), LastObservedTime: timeOf(h.Last),
		UptimePercent: p.Decimal(broker.Measure{KPI: broker.Uptime}),
		LatencyMs:     p.Decimal(broker.Measure{KPI: broker.Latency}),
	}
}

// previousOf returns the choice for a consumer that the status has.
func previousOf(s *v1alpha1.OrchestrationStatus, consumer string) broker.Previous {
	previous := broker.Previous{Chosen: map[string]time.Time{}, Left: map[string]time.Time{}}
	for i := range s.Choices {
		if string(s.Choices[i].Consumer) != consumer {
			continue
		}
		for _, c := range s.Choices[i].Chosen {
			previous.Chosen[string(c.ClusterID)] = c.Since.UTC()
		}
		for _, r := range s.Choices[i].Rejected {
			if r.Left != nil {
				previous.Left[string(r.ClusterID)] = r.Left.UTC()
			}
		}
	}
	return previous
}

func setChoice(to *v1alpha1.ConsumerChoice, c broker.Choice) {
	for _, p := range c.Chosen {
		to.Chosen = append(to.Chosen, v1alpha1.ChosenProvider{
			ClusterID: v1alpha1.ClusterID(p.ID), Score: int32(p.Score), Since: metav1.NewTime(p.Since),
			Because: because(p.Because),
		})
	}
	for _, p := range c.Rejected {
		r := v1alpha1.RejectedProvider{
			ClusterID: v1alpha1.ClusterID(p.ID), By: v1alpha1.RejectedBy(p.By), Because: because(p.Because),
		}
		if !p.Left.IsZero() {
			r.Left = timeOf(p.Left)
		}
		to.Rejected = append(to.Rejected, r)
	}
}

func setNotes(to *v1alpha1.ConsumerChoice, notes []note) {
	for _, n := range notes[:min(len(notes), v1alpha1.MaxOrchestrationNotes)] {
		to.Notes = append(to.Notes, n.status())
	}
}

// conclude sets what the status says of all consumers.
func (d *deciding) conclude(offloadable bool, now time.Time) {
	d.status.ConsumerCount = 0
	var chosen []string
	for i := range d.status.Choices {
		if d.status.Choices[i].DecidedBy == "" {
			d.status.ConsumerCount++
		}
		for _, p := range d.status.Choices[i].Chosen {
			chosen = append(chosen, string(p.ClusterID))
		}
	}
	slices.Sort(chosen)
	d.status.ChosenProviders = kube.First(slices.Compact(chosen))
	ready := metav1.ConditionFalse
	var reason, message string
	switch {
	case !offloadable:
		reason = v1alpha1.OrchestrationNoLiqo
		message = "The CRD namespaceoffloadings.offloading.liqo.io does not exist: install Liqo v1"
	case d.tooMany > 0:
		reason = v1alpha1.OrchestrationTooMany
		message = fmt.Sprintf("%d consumers are left out: an Orchestration decides for %d, write a second one for the others",
			d.tooMany, v1alpha1.MaxOrchestrationConsumers)
	case len(d.problems) > 0:
		reason = v1alpha1.OrchestrationNoProvider
		message = "No provider qualifies for " + kube.First(d.problems) + ": see rejected"
	case d.parsed.DryRun:
		ready, reason, message = metav1.ConditionTrue, v1alpha1.OrchestrationDryRun, "The choices are only shown"
	default:
		ready, reason, message = metav1.ConditionTrue, v1alpha1.OrchestrationActive, "The choices are in force"
	}
	setReady(d.status, d.object, ready, reason, message, now)
}

func setReady(
	s *v1alpha1.OrchestrationStatus, o *v1alpha1.Orchestration, ready metav1.ConditionStatus, reason, message string,
	now time.Time,
) {
	s.ObservedGeneration = o.Generation
	meta.SetStatusCondition(&s.Conditions, readyIs(ready, reason, message, o.Generation, now))
}

func timeOf(t time.Time) *metav1.Time {
	return new(metav1.NewTime(t.UTC().Truncate(time.Second)))
}

func because(text string) string { return kube.Shorten(text, v1alpha1.MaxBecause) }

// annotations has no entry for drains if there are none.
func (s *state) annotations() map[string]any {
	out := map[string]any{
		Annotation: s.orchestration, drainTimeAnnotation: strconv.Itoa(int(s.drain / time.Minute)), drainingAnnotation: nil,
	}
	if len(s.draining) > 0 {
		out[drainingAnnotation] = deadlines(s.draining)
	}
	return out
}

// object returns a new NamespaceOffloading. It drains nothing yet.
func (w *write) object() *unstructured.Unstructured {
	annotations := w.annotations()
	delete(annotations, drainingAnnotation)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": liqo.NamespaceOffloadings.GroupVersion().String(), "kind": liqo.NamespaceOffloading,
		"metadata": map[string]any{
			"name": offloadingName, "namespace": w.namespace,
			"labels": map[string]any{ManagedByLabel: proffer}, "annotations": annotations,
		},
		"spec": map[string]any{
			"namespaceMappingStrategy": mapping, "podOffloadingStrategy": w.strategy, "clusterSelector": selector(w.selected),
		},
	}}
}

// patch returns a merge patch that fails if the object has changed.
func (w *write) patch() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"uid": w.have.uid, "resourceVersion": w.have.version, "annotations": w.annotations()},
		"spec":     map[string]any{"podOffloadingStrategy": w.strategy, "clusterSelector": selector(w.selected)},
	}
}
