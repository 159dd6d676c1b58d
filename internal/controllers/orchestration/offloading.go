package orchestration

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"proffer.dev/proffer/api/v1alpha1"
)

// wanted is the state that the deciding Orchestration wants for a namespace.
type wanted struct {
	orchestration string
	chosen        []string
	drain         time.Duration
}

// A note says what a namespace waits for. stillThere is the note about a provider that has not deleted
// a namespace.
const stillThere = "it is not sent there any more, but the provider has not deleted it, and gets what is in it"

type note struct {
	namespace, provider string
	until               time.Time
	because             string
}

// action is an operation on a NamespaceOffloading.
type action string

const (
	create, update, remove, keep action = "create", "update", "delete", ""
)

// state is the content of a NamespaceOffloading of ours.
type state struct {
	orchestration, strategy string
	// selected are the IDs in the selector, sorted, without broker.None.
	selected []string
	// draining are the deadlines of the selected providers that are no longer chosen, drain the time that
	// a drain takes at most.
	draining map[string]time.Time
	drain    time.Duration
}

// write is one write of the NamespaceOffloading of a namespace.
type write struct {
	namespace string
	action    action
	state
	have *offloading
}

// change works out the NamespaceOffloading of a namespace, from the present one, nil for none, and
// what is wanted, nil if no Orchestration decides any more. pods has the numbers of pods by provider,
// nil if they are not known.
//
// The providers that are selected and no longer wanted stay until their deadline, or until no pod runs
// there and a wanted one has the namespace. When none stays and nothing is wanted, the
// NamespaceOffloading is deleted.
func change(ns string, have *offloading, want *wanted, pods map[string]int, now time.Time) (write, []note) {
	w := write{namespace: ns, have: have}
	switch {
	case have == nil && want == nil:
		return w, nil
	case have == nil:
		w.action = create
		w.state = state{want.orchestration, remoteStrategy, want.chosen, nil, want.drain}
		return w, nil
	case !have.ours:
		return w, []note{{namespace: ns, because: "it has a NamespaceOffloading that is not Proffer's: " +
			"delete that one to have the pods sent on"}}
	case have.deleting:
		return w, []note{{namespace: ns, because: "Liqo is deleting the NamespaceOffloading that it had"}}
	}
	w.state = state{orchestration: have.orchestration, strategy: localStrategy, drain: have.drain}
	if want != nil {
		w.state = state{
			orchestration: want.orchestration, strategy: remoteStrategy, drain: want.drain,
			selected: slices.Clone(want.chosen),
		}
	}
	notes := append(w.drainOthers(pods, now), w.kept()...)
	slices.Sort(w.selected)
	switch {
	case want == nil && len(w.selected) == 0:
		w.action = remove
	case !have.says(w.state):
		w.action = update
	}
	return w, notes
}

// drainOthers adds the selected providers that are not wanted and that cannot be dropped yet.
func (w *write) drainOthers(pods map[string]int, now time.Time) (notes []note) {
	w.draining = map[string]time.Time{}
	chosen := w.selected
	absent := func(id string) bool { return !w.have.present[id] }
	// One that leaves has nothing to wait for: its pods run on the nodes of this cluster.
	ready := w.strategy == localStrategy || len(chosen) > 0 && !slices.ContainsFunc(chosen, absent)
	for _, id := range w.have.selected {
		if slices.Contains(chosen, id) {
			continue
		}
		// A drain that has begun gets shorter if its time is made shorter, and not longer.
		deadline := now.Add(w.drain)
		if began, ok := w.have.draining[id]; ok && began.Before(deadline) {
			deadline = began
		}
		n := note{namespace: w.namespace, provider: id, until: deadline}
		switch running := pods[id]; {
		case !now.Before(deadline):
			continue
		case pods == nil:
			n.because = "the pods there are not known"
		case running == 1:
			n.because = "1 pod runs there"
		case running > 0:
			n.because = fmt.Sprintf("%d pods run there", running)
		case !ready:
			n.because = "what is chosen in its place does not have the namespace yet"
		default:
			continue
		}
		w.draining[id] = deadline
		notes = append(notes, n)
	}
	w.selected = slices.AppendSeq(w.selected, maps.Keys(w.draining))
	return notes
}

// kept reports the providers that have the namespace although it is not sent there any more. Liqo sends
// them what is in it, until they delete it.
func (w *write) kept() (notes []note) {
	for _, id := range slices.Sorted(maps.Keys(w.have.present)) {
		if w.have.present[id] && !slices.Contains(w.have.selected, id) && !slices.Contains(w.selected, id) {
			notes = append(notes, note{namespace: w.namespace, provider: id, because: stillThere})
		}
	}
	return notes
}

// drops reports whether the write drops a provider.
func (w *write) drops() bool {
	return w.have != nil && slices.ContainsFunc(w.have.selected, func(id string) bool {
		return !slices.Contains(w.selected, id)
	})
}

// content renders the write without the deadlines, for the pacer.
func (w *write) content() string {
	draining := slices.Sorted(maps.Keys(w.draining))
	return fmt.Sprint(w.action == remove, w.orchestration, w.strategy, w.selected, w.drain, draining)
}

// manager returns who else has changed the object last, empty if that is not known.
func (w *write) manager() string {
	if w.have == nil {
		return ""
	}
	return w.have.manager
}

// says reports whether the object says this.
func (o *offloading) says(s state) bool {
	return o.exact && o.orchestration == s.orchestration && o.strategy == s.strategy && o.drain == s.drain &&
		slices.Equal(o.selected, s.selected) && maps.EqualFunc(o.draining, s.draining, time.Time.Equal)
}

// status returns the note for the status of an Orchestration.
func (n note) status() v1alpha1.NamespaceNote {
	out := v1alpha1.NamespaceNote{
		Namespace: n.namespace, Provider: v1alpha1.OptionalClusterID(n.provider), Because: because(n.because),
	}
	if !n.until.IsZero() {
		out.Until = timeOf(n.until)
	}
	return out
}
