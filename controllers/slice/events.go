package slice

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
)

// Reasons of Events on slices, beside those of the condition.
const (
	eventRestored   = "Restored"
	eventLabels     = "LabelsStay"
	eventUnserved   = "NotServed"
	eventNotOpen    = "NotAnswered"
	eventUnwritable = "Unwritable"
	eventUnrecorded = "NotRecorded"
	eventAltered    = "Altered"
	actionAnswer    = "Answer"
)

// eventWriter tells admins of this cluster by Event what became of slices, once for each change.
type eventWriter struct {
	emitter kube.EventEmitter
	// reported is what was reported of slices that are not answered. It is used by whoever evaluates.
	reported map[types.UID]string
}

func newEvents(recorder events.EventRecorder) *eventWriter {
	return &eventWriter{emitter: kube.NewEventEmitter(recorder, actionAnswer), reported: map[types.UID]string{}}
}

// answered tells of an answer that was written: c is the slice as it was before.
func (w *eventWriter) answered(c *entry, g *decidedAnswer) {
	switch {
	case c.tampered():
		w.emit(c, corev1.EventTypeWarning, eventRestored, "Somebody else had changed the answer, which only the operator writes; it is restored: "+g.message)
		return
	case c.ours == nil && c.answer.verdict != unanswered && !strings.HasPrefix(c.answer.reason, reasonPrefix):
		w.emit(c, corev1.EventTypeNormal, strings.TrimPrefix(g.reason, reasonPrefix), "Answered by another before; now: "+g.message)
	case !onlyMessage(g.answer, c.answer):
		w.change(c, g)
	}
	stay := slices.Concat(dropped(c.answer.nodeLabels, g.nodeLabels), dropped(c.answer.nodeSelector, g.nodeSelector))
	if g.verdict == accepted && len(stay) > 0 {
		w.emit(c, corev1.EventTypeWarning, eventLabels, fmt.Sprintf(
			"No longer among the node labels or the node selector, and still on the consumer's VirtualNode, where Liqo keeps them: %s. They go when the slice is made anew.", kube.First(stay)))
	}
}

func (w *eventWriter) change(c *entry, g *decidedAnswer) {
	kind, note := corev1.EventTypeNormal, g.message
	if changes := capacity.Changes(c.answer.resources, g.resources); c.answer.verdict == accepted && changes != "" {
		note = changes + ": " + note
	}
	if g.verdict != accepted {
		kind = corev1.EventTypeWarning
	}
	for _, name := range []string{capacity.CPU, capacity.Memory} {
		if now, named := g.resources[name]; named && now == 0 && c.answer.resources[name] > 0 {
			kind, note = corev1.EventTypeWarning, note+"; its virtual node turns NotReady, and pods on it are evicted"
			break
		}
	}
	w.emit(c, kind, strings.TrimPrefix(g.reason, reasonPrefix), note)
}

// shut tells once why a slice is not answered, where that is not the usual course of things.
func (w *eventWriter) shut(c *entry, gate decision, served bool) {
	var reason, note string
	switch {
	case gate == wrongNamespace && c.originOK, gate == noTenant, gate == manyTenants:
		reason, note = eventNotOpen, "Not answered: "+gate.String()
	case gate == active && !served && c.class != "" && c.class != liqoClass && c.answer.verdict == unanswered:
		reason = eventUnserved
		note = fmt.Sprintf("No ResourcePolicy is for the class %s: write one, unless another controller answers this class", kube.Shorten(c.class, kube.MaxShown))
	}
	if w.reported[c.uid] == note {
		return
	}
	if note == "" {
		delete(w.reported, c.uid)
		return
	}
	w.reported[c.uid] = note
	w.emit(c, corev1.EventTypeWarning, reason, note)
}

// unwritable tells of a slice that no answer can be written to.
func (w *eventWriter) unwritable(c *entry, err error) {
	w.emit(c, corev1.EventTypeWarning, eventUnwritable, "No answer can be written to it, so what it was granted cannot be taken back: "+err.Error())
}

// unrecorded tells of a slice of which the API server refuses the Grant.
func (w *eventWriter) unrecorded(c *entry, err error) {
	w.emit(c, corev1.EventTypeWarning, eventUnrecorded, "It is granted nothing more, since that cannot be recorded: "+err.Error())
}

// altered tells of a slice that does not keep what is written to it.
func (w *eventWriter) altered(c *entry) {
	w.emit(c, corev1.EventTypeWarning, eventAltered, errAltered.Error())
}

// tidy forgets what was told of slices that are gone.
func (w *eventWriter) tidy(all []*entry) {
	if len(w.reported) > 0 {
		forgetGone(w.reported, all)
	}
}

func (w *eventWriter) emit(c *entry, kind, reason, note string) {
	w.emitter.Emit(c.object, kind, reason, note)
}

// dropped are the keys that were in a map and are not any more, sorted.
func dropped(was, is map[string]string) []string {
	var out []string
	for key := range was {
		if _, stays := is[key]; !stays {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}
