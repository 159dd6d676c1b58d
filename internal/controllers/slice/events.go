package slice

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/visible"
)

// Reasons of Events on slices, in addition to those of the condition.
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

// Events that a slice is not answered: a few at once, then one in each eventInterval. The consumer can
// change the cause by each write.
const (
	eventBurst    = 5
	eventInterval = time.Minute
)

// eventWriter emits one Event for each change of a slice, for the admins of this cluster.
type eventWriter struct {
	kube.EventEmitter
	// reported has the last note about each slice that is not answered, and paces limits these notes.
	// Only the goroutine that evaluates uses both.
	reported map[types.UID]string
	paces    paces
}

func newEvents(recorder events.EventRecorder) *eventWriter {
	return &eventWriter{
		EventEmitter: kube.EventEmitter{Recorder: recorder, Action: actionAnswer}, reported: map[types.UID]string{},
		paces: newPaces(eventInterval, eventBurst),
	}
}

// answered emits the Event for an answer that was written. The entry is the slice before the write.
func (w *eventWriter) answered(c *sliceEntry, g *sliceAnswer) {
	switch {
	case c.tampered():
		w.Emit(c.object, corev1.EventTypeWarning, eventRestored,
			"Restored the answer, which another writer had changed: "+g.message)
		return
	case c.ours == nil && c.answer.verdict != unanswered && !strings.HasPrefix(c.answer.reason, reasonPrefix):
		w.Emit(c.object, corev1.EventTypeNormal, strings.TrimPrefix(g.reason, reasonPrefix),
			"Replaced the answer of another controller: "+g.message)
	case !onlyMessage(*g, c.answer):
		w.change(c, g)
	}
	stay := slices.Concat(dropped(c.answer.nodeLabels, g.nodeLabels), dropped(c.answer.nodeSelector, g.nodeSelector))
	if g.verdict == accepted && len(stay) > 0 {
		w.Emit(c.object, corev1.EventTypeWarning, eventLabels, fmt.Sprintf(
			"Removed from the answer, but Liqo keeps these labels on the consumer's VirtualNode: %s. "+
				"To remove them there too, create the slice again.", kube.First(stay)))
	}
}

func (w *eventWriter) change(c *sliceEntry, g *sliceAnswer) {
	kind, note := corev1.EventTypeNormal, g.message
	if changes := capacity.Changes(c.answer.resources, g.resources); c.answer.verdict == accepted && changes != "" {
		note = changes + ": " + note
	}
	if g.verdict != accepted || g.reason == reasonPrefix+grant.ReasonIncomplete {
		kind = corev1.EventTypeWarning
	}
	for _, name := range []string{capacity.CPU, capacity.Memory} {
		if now, named := g.resources[name]; named && now == 0 && c.answer.resources[name] > 0 {
			kind, note = corev1.EventTypeWarning, note+"; its virtual node becomes NotReady, and pods on it are evicted"
			break
		}
	}
	w.Emit(c.object, kind, strings.TrimPrefix(g.reason, reasonPrefix), note)
}

// reportUnanswered emits one Event that says why a slice is not answered, if an admin has to do something
// about it, and whether one is held back. Crowded is set for one that has no place on the list of placements.
func (w *eventWriter) reportUnanswered(c *sliceEntry, gate gateState, served, crowded bool, now time.Time) (held bool) {
	var reason, note string
	switch {
	case gate == wrongNamespace && c.originOK, gate == noTenant, gate == manyTenants:
		reason, note = eventNotOpen, "Not answered: "+gate.String()
	case crowded:
		reason = eventNotOpen
		note = "Not answered, or its pods are refused: the list of placements has no room for more slices of this " +
			"consumer. Have it delete some, or use shorter names"
	case c.MovedTo == holding.LiqoClass && gate != cordoned: // Liqo is about to answer it.
	case c.MovedTo != "":
		reason, note = eventUnserved, "Not answered: "+whyInFormerClass(&c.Slice)
	case gate == active && !served && len(c.Holds) > 0 && c.answer.verdict == denied && !c.answer.ours():
		reason = eventUnserved
		note = fmt.Sprintf("Another controller has denied the slice in the class %s, which leaves its Quota. What the slice "+
			"was granted counts until that controller accepts it, or the slice moves back or is deleted",
			visible.Class(c.class))
	case gate == active && !served && !c.OfLiqo() && c.answer.verdict == unanswered:
		reason = eventUnserved
		note = fmt.Sprintf("No ResourcePolicy serves the class %s: create one, unless another controller answers this class",
			visible.Class(c.class))
	}
	switch {
	case w.reported[c.uid] == note:
	case note == "":
		delete(w.reported, c.uid)
	case w.paces.allow(c.uid, now):
		w.reported[c.uid] = note
		w.Emit(c.object, corev1.EventTypeWarning, reason, note)
	default:
		return true
	}
	return false
}

// forgetGone forgets the notes about slices that are gone.
func (w *eventWriter) forgetGone(all []*sliceEntry) {
	if len(w.reported) == 0 {
		return
	}
	there := sets.New[types.UID]()
	for _, c := range all {
		there.Insert(c.uid)
	}
	maps.DeleteFunc(w.reported, func(uid types.UID, _ string) bool { return !there.Has(uid) })
}

// dropped returns the keys that are in the first map and not in the second, sorted.
func dropped(was, is map[string]string) []string {
	return sets.List(sets.KeySet(was).Difference(sets.KeySet(is)))
}
