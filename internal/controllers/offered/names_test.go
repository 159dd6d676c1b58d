package offered

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
)

// offeredOf returns a record of lines such as "class: name name".
func offeredOf(t *testing.T, lines ...string) resourceNames {
	t.Helper()
	var o resourceNames
	for _, line := range lines {
		class, names, _ := strings.Cut(line, ":")
		if _, room := o.add(class, strings.Fields(names)); !room {
			t.Fatalf("no room for %s", line)
		}
	}
	return o
}

func TestARecordIsParsedAsItWasEncoded(t *testing.T) {
	for _, o := range []resourceNames{
		{}, offeredOf(t, ": cpu memory"), offeredOf(t, ":pods cpu", "gold: nvidia.com/gpu cpu", "silver: cpu"),
	} {
		text := encode(o.byClass)
		byClass, err := parse[map[string][]string](text)
		test.Must(t, err)
		if diff := cmp.Diff(o, boundNames(byClass), cmp.AllowUnexported(resourceNames{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"x", "[]", `{"gold": "cpu"}`} {
		if got, err := parse[map[string][]string](text); err == nil || len(got) > 0 {
			t.Errorf("parse(%s) = %v, %v; want an error", text, got, err)
		}
	}
}

func TestAnEditedRecordIsNormalized(t *testing.T) {
	got, err := parse[map[string][]string](`{"gold":["memory","cpu","memory"],"none":[],"":null}`)
	test.Must(t, err)
	if diff := cmp.Diff(map[string][]string{"gold": {"cpu", "memory"}}, boundNames(got).byClass); diff != "" {
		t.Error(diff)
	}
}

func TestARecordHasBounds(t *testing.T) {
	numbered := func(n int, format string) []string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf(format, i)
		}
		return names
	}
	t.Run("names of a class", func(t *testing.T) {
		var o resourceNames
		if more, room := o.add("gold", numbered(maxNames, "name-%03d")); !more || !room {
			t.Error("no room for maxNames names")
		}
		if more, room := o.add("gold", []string{"name-000", "one-more"}); more || room {
			t.Error("room for more than maxNames names")
		}
		if more, room := o.add("silver", []string{"one-more"}); !more || !room {
			t.Error("no room for another class")
		}
	})
	t.Run("classes", func(t *testing.T) {
		var o resourceNames
		for _, class := range numbered(maxClasses, "class-%03d") {
			if _, room := o.add(class, []string{"cpu"}); !room {
				t.Fatalf("no room for %s", class)
			}
		}
		if more, room := o.add("one-more", []string{"cpu"}); more || room || len(o.byClass) != maxClasses {
			t.Error("room for more than maxClasses classes")
		}
		if more, room := o.add("class-000", []string{"memory"}); !more || !room {
			t.Error("no room for another name of a recorded class")
		}
	})
	t.Run("bytes", func(t *testing.T) {
		var o resourceNames
		long := "example.com/" + strings.Repeat("x", 200)
		for _, class := range numbered(maxClasses, "class-%03d") {
			o.add(class, numbered(maxNames, long+"%03d"))
		}
		if text := encode(o.byClass); len(text) > maxBytes+len("{}") || len(text) < maxBytes*9/10 {
			t.Errorf("%d bytes; want 90 to 100 %% of %d bytes", len(text), maxBytes)
		}
	})
}

func TestARecordOnlyGrows(t *testing.T) {
	o := offeredOf(t, "gold: cpu pods")
	before := o.byClass["gold"]
	if more, room := o.add("gold", []string{"memory", "cpu"}); !more || !room {
		t.Error("adding memory does not report a new name")
	}
	if !slices.Equal(before, []string{"cpu", "pods"}) {
		t.Errorf("adding a name changed an earlier list to %v", before)
	}
	if more, _ := o.add("gold", []string{"cpu", "memory"}); more {
		t.Error("adding recorded names reports a new name")
	}
	if more, _ := o.addAll(offeredOf(t, "gold: pods", "silver: cpu")); !more {
		t.Error("adding silver does not report a new name")
	}
	want := map[string][]string{"gold": {"cpu", "memory", "pods"}, "silver": {"cpu"}}
	if diff := cmp.Diff(want, o.byClass); diff != "" {
		t.Error(diff)
	}
}

func TestAClassIsRetiredIfNoStatusHasOneOfItsNames(t *testing.T) {
	o := offeredOf(t, ": cpu gpu memory", "gold: cpu", "silver: cpu memory")
	status := func(class string, names ...string) offer.PreviousOffers {
		return offer.PreviousOffers{Policy: "p-" + class, Class: class, Names: names, Complete: true}
	}
	for _, tc := range []struct {
		name      string
		statuses  []offer.PreviousOffers
		unwritten []string
		want      []string
	}{
		{"no policy", nil, nil, []string{"", "gold", "silver"}},
		{"a policy without a status yet", nil, []string{"gold"}, []string{"", "silver"}},
		{"statuses have all names", []offer.PreviousOffers{
			status("", "cpu", "gpu", "memory"), status("gold", "cpu"), status("silver", "cpu", "memory", "pods"),
		}, nil, nil},
		{"two statuses of one class have all names", []offer.PreviousOffers{
			status("", "cpu", "gpu"), status("", "memory"), status("gold", "cpu"), status("silver", "cpu", "memory"),
		}, nil, nil},
		{"no status has one name", []offer.PreviousOffers{
			status("", "cpu", "memory"), status("gold", "cpu"), status("silver", "cpu", "memory"),
		}, nil, []string{""}},
		{"no status of one class", []offer.PreviousOffers{
			status("", "cpu", "gpu", "memory"), status("silver", "cpu", "memory"),
		}, nil, []string{"gold"}},
	} {
		var got []string
		for _, p := range o.retired(tc.statuses, tc.unwritten, nil) {
			if p.Complete || p.Offers != nil || !slices.Equal(p.Names, o.byClass[p.Class]) {
				t.Errorf("%s: %+v", tc.name, p)
			}
			got = append(got, p.Class)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	// A policy of the class was deleted while no operator ran.
	left := withdrawals{"gold": {Served: true, Dropped: []string{"memory"}}}
	if past := o.retired([]offer.PreviousOffers{status("", "cpu", "gpu", "memory"), status("silver", "cpu", "memory")}, nil, left); len(past) != 1 ||
		past[0].Class != "gold" {
		t.Errorf("a class that was served and has no policy is not retired: %+v", past)
	}
	if len(o.byClass) != 3 || len(slices.Collect(maps.Keys(o.byClass))) != 3 {
		t.Error("retired changed the record")
	}
}
