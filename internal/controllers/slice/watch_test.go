package slice

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test/kubetest"
)

// known returns a slice with this name and UID at a version.
func known(t testing.TB, name, uid string, version int, with ...func(*authv1beta1.ResourceSlice)) slice {
	s := kubetest.Slice(name, with...)
	s.UID, s.ResourceVersion = types.UID(uid), strconv.Itoa(version)
	return parseSlice(kubetest.Unstructured(t, s))
}

// in lists the slices of a cache by key, UID and version.
func in(b *grantCache) []string {
	out := []string{}
	for _, s := range b.list() {
		out = append(out, s.key+" "+string(s.uid)+" "+s.version())
	}
	return out
}

func class(class authv1beta1.ResourceSliceClass) func(*authv1beta1.ResourceSlice) {
	return func(s *authv1beta1.ResourceSlice) { s.Spec.Class = class }
}

func TestTheBookKeepsTheNewestOfEachSlice(t *testing.T) {
	b := newGrantCache()
	for _, step := range []struct {
		name string
		do   func() bool
		news bool
		want []string
	}{
		{"the first", func() bool { return b.set(known(t, "s", "a", 9)) }, true, []string{"default/s a 9"}},
		{"another slice", func() bool { return b.set(known(t, "r", "b", 5)) }, true, []string{"default/r b 5", "default/s a 9"}},
		{"the same again", func() bool { return b.set(known(t, "s", "a", 9)) }, false, []string{"default/r b 5", "default/s a 9"}},
		{"a newer version with the same content", func() bool { return b.set(known(t, "s", "a", 10)) }, false, []string{"default/r b 5", "default/s a 10"}},
		{"an older version with another class", func() bool { return b.set(known(t, "s", "a", 9, class("silver"))) }, false, []string{"default/r b 5", "default/s a 10"}},
		{"a newer version with another class", func() bool { return b.set(known(t, "s", "a", 11, class("silver"))) }, true, []string{"default/r b 5", "default/s a 11"}},
		{"a new slice of the same name", func() bool { return b.set(known(t, "s", "c", 20, class("silver"))) }, true, []string{"default/r b 5", "default/s c 20"}},
		{"a late version of the former slice", func() bool { return b.set(known(t, "s", "a", 12)) }, false, []string{"default/r b 5", "default/s c 20"}},
		{"the former slice is removed", func() bool { return b.remove(known(t, "s", "a", 13)) }, false, []string{"default/r b 5", "default/s c 20"}},
		{"the slice is removed", func() bool { return b.remove(known(t, "s", "c", 21)) }, true, []string{"default/r b 5"}},
		{"the slice is removed twice", func() bool { return b.remove(known(t, "s", "c", 21)) }, false, []string{"default/r b 5"}},
		{"a version from before the removal", func() bool { return b.set(known(t, "s", "c", 20)) }, false, []string{"default/r b 5"}},
		{"the version of the removal", func() bool { return b.set(known(t, "s", "c", 21)) }, false, []string{"default/r b 5"}},
		{"the slice is selected again", func() bool { return b.set(known(t, "s", "c", 22)) }, true, []string{"default/r b 5", "default/s c 22"}},
		{"all are removed", func() bool { b.removeAll(); return true }, true, []string{}},
		{"one of them is back", func() bool { return b.set(known(t, "r", "b", 5)) }, true, []string{"default/r b 5"}},
	} {
		if got := step.do(); got != step.news {
			t.Errorf("%s: changed is %v, want %v", step.name, got, step.news)
		}
		if diff := cmp.Diff(step.want, in(b)); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

// A watch reports versions in order. Lists and the results of writes may report any version at any
// time, before or long after the watch.
func TestWhoeverTellsOfItTheBookEndsWithWhatTheWatchToldLast(t *testing.T) {
	type event struct {
		slice
		gone bool
	}
	classes := []authv1beta1.ResourceSliceClass{"gold", "silver"}
	states := map[int][]slice{} // By version and UID. They are created only once, to save time.
	for version := range 40 {
		for uid := range 20 {
			states[version] = append(states[version], known(t, "s", "uid-"+strconv.Itoa(uid), version+1, class(classes[version%2])))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var history []event
		uid, there := 0, false
		for version := range rapid.IntRange(1, 20).Draw(t, "versions") {
			gone := there && rapid.Bool().Draw(t, "gone")
			history = append(history, event{states[version][uid], gone})
			there = !gone
			// The slice comes back with its label, or as another slice.
			if gone && rapid.Bool().Draw(t, "for good") {
				uid++
			}
		}
		b := newGrantCache()
		for _, e := range history {
			for range rapid.IntRange(0, 2).Draw(t, "others tell") {
				if stray := history[rapid.IntRange(0, len(history)-1).Draw(t, "of")]; !stray.gone {
					b.set(stray.slice)
				}
			}
			if e.gone {
				b.remove(e.slice)
			} else {
				b.set(e.slice)
			}
		}
		last := history[len(history)-1]
		for range 3 {
			if stray := history[rapid.IntRange(0, len(history)-1).Draw(t, "late")]; !stray.gone {
				b.set(stray.slice)
			}
		}
		want := []string{}
		if !last.gone {
			want = append(want, "default/s "+string(last.uid)+" "+last.version())
		}
		if diff := cmp.Diff(want, in(b)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAnOldListOfTheBookIsNotWrittenTo(t *testing.T) {
	b := newGrantCache()
	b.set(known(t, "a", "a", 1))
	b.set(known(t, "b", "b", 1))
	before := b.list()
	read := func() (all []slice) {
		for _, c := range before {
			all = append(all, c.slice)
		}
		return all
	}
	want := read()
	b.set(known(t, "a", "a", 2, class("silver")))
	b.remove(known(t, "b", "b", 2))
	if diff := cmp.Diff(want, read(), comparing); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"default/a a 2"}, in(b)); diff != "" {
		t.Error(diff)
	}
}

// Liqo writes to every slice of a tenant whose condition changes: the API server gives the slice another version
// while the change is being decided on, and the answer does not fit it any more.
func TestAVersionThatADecisionDoesNotKnowIsDecidedOnAgain(t *testing.T) {
	w := aLeader(t, known(t, "s", "a", 10, asking("1")))
	cache, wakes := w.decider.cache, 0
	handler := newSliceHandler(cache, func() { wakes++ }, func() {})
	touch := func(version int) {
		handler.Set(kubetest.Unstructured(t, kubetest.Slice("s", asking("1"), func(s *authv1beta1.ResourceSlice) {
			s.UID, s.ResourceVersion = "a", strconv.Itoa(version)
		})))
	}
	touch(11)
	if wakes != 0 {
		t.Errorf("a version with the same content wakes %d times, want never", wakes)
	}
	decided := w.decider.decide(time.Now(), func() *offer.AllocationInput { return goldOf(8000) })
	touch(12)
	w.commit(decided)
	if wakes != 1 || cache.byUID["a"].task != nil {
		t.Errorf("woken %d times, want once, and nothing to write: %+v", wakes, cache.byUID["a"].task)
	}
	w.decideBy(goldOf(8000))
	if cache.byUID["a"].task == nil {
		t.Error("the next decision writes nothing")
	}
}

func TestVersionsThatAreNoNumbersAreTakenInTheOrderTold(t *testing.T) {
	b := newGrantCache()
	b.set(known(t, "s", "a", 1))
	odd := known(t, "s", "a", 1, class("silver"))
	odd.object.SetResourceVersion("opaque")
	if !b.set(odd) {
		t.Error("a version that is not a number was ignored")
	}
	if !b.set(known(t, "s", "a", 2)) {
		t.Error("the version after it was ignored")
	}
}
