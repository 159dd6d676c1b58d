package controllers

import (
	"fmt"
	"maps"
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
	maxChangeNames  = 5
)

// sliceAnnouncer tells admins of this cluster by Event what became of slices, once for each change.
type sliceAnnouncer struct {
	events kube.EventEmitter
	// told is what was told of slices that are not answered. It is used by whoever evaluates.
	told map[types.UID]string
}

func newSliceAnnouncer(recorder events.EventRecorder) *sliceAnnouncer {
	return &sliceAnnouncer{events: kube.NewEventEmitter(recorder, actionAnswer), told: map[types.UID]string{}}
}

// answered tells of an answer that was written: c is the slice as it was before.
func (a *sliceAnnouncer) answered(c *claim, g *given) {
	switch {
	case c.tampered():
		a.tell(c, corev1.EventTypeWarning, eventRestored, "Somebody else had changed the answer, which only the operator writes; it is restored: "+g.message)
		return
	case c.ours == nil && c.answer.verdict != unanswered && !strings.HasPrefix(c.answer.reason, reasonPrefix):
		a.tell(c, corev1.EventTypeNormal, strings.TrimPrefix(g.reason, reasonPrefix), "Answered by another before; now: "+g.message)
	case !onlyMessage(g.answer, c.answer):
		a.change(c, g)
	}
	stay := slices.Concat(dropped(c.answer.nodeLabels, g.nodeLabels), dropped(c.answer.nodeSelector, g.nodeSelector))
	if g.verdict == accepted && len(stay) > 0 {
		a.tell(c, corev1.EventTypeWarning, eventLabels, fmt.Sprintf(
			"No longer among the node labels or the node selector, and still on the consumer's VirtualNode, where Liqo keeps them: %s. They go when the slice is made anew.", kube.First(stay)))
	}
}

func (a *sliceAnnouncer) change(c *claim, g *given) {
	kind, note := corev1.EventTypeNormal, g.message
	if changes := changesOf(c.answer.resources, g.resources); c.answer.verdict == accepted && changes != "" {
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
	a.tell(c, kind, strings.TrimPrefix(g.reason, reasonPrefix), note)
}

// shut tells once why a slice is not answered, where that is not the usual course of things.
func (a *sliceAnnouncer) shut(c *claim, gate decision, served bool) {
	var reason, note string
	switch {
	case gate == wrongNamespace && c.originOK, gate == noTenant, gate == manyTenants:
		reason, note = eventNotOpen, "Not answered: "+gate.String()
	case gate == active && !served && c.class != "" && c.class != liqoClass && c.answer.verdict == unanswered:
		reason = eventUnserved
		note = fmt.Sprintf("No ResourcePolicy is for the class %s: write one, unless another controller answers this class", kube.Shorten(c.class, kube.MaxShown))
	}
	if a.told[c.uid] == note {
		return
	}
	if note == "" {
		delete(a.told, c.uid)
		return
	}
	a.told[c.uid] = note
	a.tell(c, corev1.EventTypeWarning, reason, note)
}

// unwritable tells of a slice that no answer can be written to.
func (a *sliceAnnouncer) unwritable(c *claim, err error) {
	a.tell(c, corev1.EventTypeWarning, eventUnwritable, "No answer can be written to it, so what it was granted cannot be taken back: "+err.Error())
}

// unrecorded tells of a slice of which the API server refuses the Grant.
func (a *sliceAnnouncer) unrecorded(c *claim, err error) {
	a.tell(c, corev1.EventTypeWarning, eventUnrecorded, "It is granted nothing more, since that cannot be recorded: "+err.Error())
}

// altered tells of a slice that does not keep what is written to it.
func (a *sliceAnnouncer) altered(c *claim) {
	a.tell(c, corev1.EventTypeWarning, eventAltered, errAltered.Error())
}

// tidy forgets what was told of slices that are gone.
func (a *sliceAnnouncer) tidy(all []*claim) {
	if len(a.told) > 0 {
		forgetGone(a.told, all)
	}
}

func (a *sliceAnnouncer) tell(c *claim, kind, reason, note string) {
	a.events.Emit(c.object, kind, reason, note)
}

// changesOf says what changed between two lists of amounts, such as "cpu 8 -> 4".
func changesOf(was, is capacity.Amounts) string {
	names := map[string]struct{}{}
	for name := range was {
		names[name] = struct{}{}
	}
	for name := range is {
		names[name] = struct{}{}
	}
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if was[name] == is[name] {
			continue
		}
		q := capacity.HumanFormat(name, was[name], is[name])
		changes = append(changes, fmt.Sprintf("%s %s -> %s", kube.Shorten(name, kube.MaxShown), q(was[name]), q(is[name])))
	}
	if len(changes) > maxChangeNames {
		changes = append(changes[:maxChangeNames], "...")
	}
	return strings.Join(changes, ", ")
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
