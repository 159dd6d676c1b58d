package orchestration

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// ours returns a NamespaceOffloading of ours that selects these providers, all of which have the
// namespace.
func ours(selected ...string) *offloading {
	o := &offloading{
		ours: true, exact: true, present: map[string]bool{},
		state: state{orchestration: "o", strategy: remoteStrategy, selected: selected, drain: 30 * time.Minute, draining: map[string]time.Time{}},
	}
	for _, id := range selected {
		o.present[id] = true
	}
	return o
}

// begun returns a NamespaceOffloading that drains a provider until a time.
func begun(provider string, deadline time.Time) *offloading {
	o := ours(provider)
	o.draining[provider] = deadline
	return o
}

// keeping adds a provider that has the namespace, and is not selected.
func keeping(o *offloading, provider string) *offloading {
	o.present[provider] = true
	return o
}

func want(chosen ...string) *wanted { return &wanted{"o", chosen, 30 * time.Minute} }

func TestEachStepOfANamespaceOffloading(t *testing.T) {
	for _, tc := range []struct {
		name string
		have *offloading
		want *wanted
		pods map[string]int
		// action, strategy, selected and notes are what is expected.
		action   action
		strategy string
		selected []string
		notes    []note
	}{
		{name: "nothing is wanted of what does not exist"},
		{name: "it is made", want: want("milan"), action: create, strategy: remoteStrategy, selected: []string{"milan"}},
		{name: "it is made for nobody", want: want(), action: create, strategy: remoteStrategy},
		{name: "it stays", have: ours("milan"), want: want("milan"), pods: map[string]int{}, strategy: remoteStrategy, selected: []string{"milan"}},
		{
			name: "pods keep a provider", have: ours("milan"), want: want("oslo"), pods: map[string]int{"milan": 2},
			action: update, strategy: remoteStrategy, selected: []string{"milan", "oslo"},
			notes: []note{{"ns", "milan", noon.Add(30 * time.Minute), "2 pods run there"}},
		},
		{
			name: "a shorter drain applies to one that has begun", have: begun("milan", noon.Add(20*time.Minute)),
			want: &wanted{"o", []string{"oslo"}, 10 * time.Minute}, pods: map[string]int{"milan": 2},
			action: update, strategy: remoteStrategy, selected: []string{"milan", "oslo"},
			notes: []note{{"ns", "milan", noon.Add(10 * time.Minute), "2 pods run there"}},
		},
		{
			name: "a longer one does not", have: begun("milan", noon.Add(20*time.Minute)),
			want: &wanted{"o", []string{"oslo"}, time.Hour}, pods: map[string]int{"milan": 2},
			action: update, strategy: remoteStrategy, selected: []string{"milan", "oslo"},
			notes: []note{{"ns", "milan", noon.Add(20 * time.Minute), "2 pods run there"}},
		},
		{
			name: "the new provider has no namespace", have: ours("milan"), want: want("oslo"), pods: map[string]int{},
			action: update, strategy: remoteStrategy, selected: []string{"milan", "oslo"},
			notes: []note{{"ns", "milan", noon.Add(30 * time.Minute), "what is chosen in its place does not have the namespace yet"}},
		},
		{
			name: "the pods are not known", have: ours("milan", "oslo"), want: want("oslo"),
			action: update, strategy: remoteStrategy, selected: []string{"milan", "oslo"},
			notes: []note{{"ns", "milan", noon.Add(30 * time.Minute), "the pods there are not known"}},
		},
		{
			name: "an empty provider is dropped", have: ours("milan", "oslo"), want: want("oslo"), pods: map[string]int{"oslo": 1},
			action: update, strategy: remoteStrategy, selected: []string{"oslo"},
		},
		{
			name: "nothing is chosen, and pods run", have: ours("milan"), want: want(), pods: map[string]int{"milan": 1},
			action: update, strategy: remoteStrategy, selected: []string{"milan"},
			notes: []note{{"ns", "milan", noon.Add(30 * time.Minute), "1 pod runs there"}},
		},
		{
			name: "nobody decides, and pods run", have: ours("milan"), pods: map[string]int{"milan": 1},
			action: update, strategy: localStrategy, selected: []string{"milan"},
			notes: []note{{"ns", "milan", noon.Add(30 * time.Minute), "1 pod runs there"}},
		},
		{
			name: "a provider has not deleted what it is not sent any more", have: keeping(ours("milan"), "oslo"), want: want("milan"), pods: map[string]int{},
			strategy: remoteStrategy, selected: []string{"milan"}, notes: []note{{namespace: "ns", provider: "oslo", because: stillThere}},
		},
		{
			name: "it is chosen again", have: keeping(ours("milan"), "oslo"), want: want("milan", "oslo"), pods: map[string]int{},
			action: update, strategy: remoteStrategy, selected: []string{"milan", "oslo"},
		},
		{name: "nobody decides, and no pod runs", have: ours("milan"), pods: map[string]int{}, action: remove, strategy: localStrategy},
		{
			name: "it is deleted already", have: func() *offloading { o := ours("milan"); o.deleting = true; return o }(), want: want("milan"),
			notes: []note{{namespace: "ns", because: "Liqo is deleting the NamespaceOffloading that it had"}},
		},
		{
			name: "somebody has changed the selector", have: func() *offloading { o := ours("milan"); o.exact = false; return o }(), want: want("milan"),
			action: update, strategy: remoteStrategy, selected: []string{"milan"}, pods: map[string]int{},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, notes := change("ns", tc.have, tc.want, tc.pods, noon)
			if w.action != tc.action || w.strategy != tc.strategy || !slices.Equal(w.selected, tc.selected) {
				t.Errorf("%s %s %v, want %s %s %v", w.action, w.strategy, w.selected, tc.action, tc.strategy, tc.selected)
			}
			if diff := cmp.Diff(tc.notes, notes, cmp.AllowUnexported(note{})); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

var anyIDs = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"milan", "oslo", "paris"}), 0, 3, rapid.ID[string])

// TestNoProviderWithPodsIsDroppedBeforeItsDeadline goes through changes of the choice, with each write
// applied as it is.
func TestNoProviderWithPodsIsDroppedBeforeItsDeadline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, now, begun := ours(slices.Sorted(slices.Values(anyIDs.Draw(t, "selected")))...), noon, map[string]time.Time{}
		for range 8 {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "minutes")) * time.Minute)
			chosen := slices.Sorted(slices.Values(anyIDs.Draw(t, "chosen")))
			pods := map[string]int{}
			for _, id := range anyIDs.Draw(t, "running") {
				pods[id] = 1
			}
			w, _ := change("ns", have, want(chosen...), pods, now)
			for _, id := range have.selected {
				switch {
				case slices.Contains(chosen, id):
					delete(begun, id)
				case begun[id].IsZero():
					begun[id] = now
				}
				early := now.Sub(begun[id]) < 30*time.Minute
				if !slices.Contains(w.selected, id) && pods[id] > 0 && early {
					t.Fatalf("%s is dropped with pods, %v after it was last chosen", id, now.Sub(begun[id]))
				} else if !early && !slices.Contains(chosen, id) && slices.Contains(w.selected, id) {
					t.Fatalf("%s stays after %v", id, now.Sub(begun[id]))
				}
			}
			for _, id := range chosen {
				if !slices.Contains(w.selected, id) {
					t.Fatalf("%s is chosen and not selected", id)
				}
			}
			if selector(w.selected)["nodeSelectorTerms"] == nil || len(w.draining)+len(chosen) != len(w.selected) {
				t.Fatalf("selected %v, chosen %v, draining %v", w.selected, chosen, w.draining)
			}
			for id := range begun {
				if !slices.Contains(w.selected, id) {
					delete(begun, id)
				}
			}
			next := ours(w.selected...)
			next.draining = parseDeadlines(deadlines(w.draining)) // As the annotation keeps it.
			all := next.present
			next.present = have.present // Liqo has not made a namespace yet.
			if again, _ := change("ns", next, want(chosen...), pods, now); again.action != keep {
				t.Fatalf("the same again is a write: %+v", again)
			}
			next.present, have = all, next
		}
	})
}
