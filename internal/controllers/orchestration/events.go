package orchestration

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
)

// Reasons of Events.
const (
	eventChosen  = "ProvidersChosen"
	eventRefused = "NotSentOn"
	actionPlace  = "Place"
)

// maxRefusals bounds the refusals that are remembered, and so the Events about them.
const maxRefusals = 1000

// eventWriter emits one Event about each change of a choice, and one about each namespace that is
// refused.
type eventWriter struct {
	emitter kube.EventEmitter
	refused map[types.UID]string
}

func newEvents(recorder events.EventRecorder) *eventWriter {
	return &eventWriter{
		emitter: kube.EventEmitter{Recorder: recorder, Action: actionPlace}, refused: map[types.UID]string{},
	}
}

// chosen reports the choices that differ.
func (w *eventWriter) chosen(o *v1alpha1.Orchestration, now *v1alpha1.OrchestrationStatus) {
	before := map[v1alpha1.ClusterID]string{}
	for i := range o.Status.Choices {
		before[o.Status.Choices[i].Consumer] = chosenText(&o.Status.Choices[i])
	}
	for i := range now.Choices {
		c := &now.Choices[i]
		was, known := before[c.Consumer]
		text := chosenText(c)
		if c.DecidedBy != "" || known && was == text {
			continue
		}
		if !known {
			was = "no choice"
		}
		w.emitter.Emit(&corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "Orchestration", Name: o.Name, UID: o.UID,
		}, corev1.EventTypeNormal, eventChosen, fmt.Sprintf("Consumer %s: %s, after %s", c.Consumer, text, was))
	}
}

func chosenText(c *v1alpha1.ConsumerChoice) string {
	if len(c.Chosen) == 0 {
		return "no provider"
	}
	ids := make([]string, 0, len(c.Chosen))
	for _, p := range c.Chosen {
		ids = append(ids, string(p.ClusterID))
	}
	slices.Sort(ids)
	return strings.Join(ids, ", ")
}

// refuse reports the namespaces that are refused.
func (w *eventWriter) refuse(refusals []refusal) {
	now := make(map[types.UID]string, min(len(refusals), maxRefusals))
	for _, r := range refusals[:min(len(refusals), maxRefusals)] {
		now[r.uid] = r.because
		if w.refused[r.uid] == r.because {
			continue
		}
		w.emitter.Emit(&corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: r.name, UID: r.uid},
			corev1.EventTypeWarning, eventRefused, "The pods of this namespace are not sent on: "+r.because)
	}
	w.refused = now
}
