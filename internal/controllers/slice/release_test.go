package slice

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// Each leader waits after its start for pods of a deleted slice that are on their way, unless an earlier
// leader has found out long ago that the slice is gone.
func TestLeadersThatEndAgainAndAgainFreeWhatADeletedSliceHeld(t *testing.T) {
	terms := goldOf(8000, capacity.Pod{
		Key: "pod", Node: "gold", Consumer: "rome", Creator: liqo.SliceCreator("s", "rome"), Requests: capacity.Amounts{"cpu": 2000},
	})
	now := time.Now()
	for name, tc := range map[string]struct {
		written time.Time
		state   v1alpha1.GrantState
		want    int64
	}{
		"released long ago":                        {now.Add(-holding.ReleaseGrace - clockSkew), v1alpha1.GrantReleased, 2000},
		"released just now":                        {now, v1alpha1.GrantReleased, 6000},
		"released before, by a clock that is slow": {now.Add(-clockSkew), v1alpha1.GrantReleased, 6000},
		"released in the future":                   {now.Add(time.Hour), v1alpha1.GrantReleased, 6000},
		"released at an unknown time":              {time.Time{}, v1alpha1.GrantReleased, 6000},
		"deleted while nobody led":                 {now.Add(-time.Hour), v1alpha1.GrantGranted, 6000},
	} {
		record := recordOf(5, 6000)
		object := record.grantObject(metav1.NamespaceDefault)
		object.Spec.State = tc.state
		if !tc.written.IsZero() {
			object.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: "admin", Time: new(metav1.NewTime(tc.written.Add(-time.Hour)))},
				{Manager: "proffer", Time: new(metav1.NewTime(tc.written))}, {Manager: "other"},
			}
		}
		w := aLeader(t)
		w.decider.cache.endTerm()
		w.decider.cache.setRecord(record) // The watch knows nothing of the time.
		w.decider.cache.beginTerm("next", nil, []grantRecord{parseGrant(object)}, nobody)
		a := w.decider.decide(now.Add(time.Second), func() *offer.AllocationInput { return terms })
		if got := a.Granted()["gold"]["rome"]["cpu"]; got != tc.want {
			t.Errorf("%s: %d of gold count as granted, want %d", name, got, tc.want)
		}
	}
}

func TestAListOfGrantsSaysWhenEachWasWritten(t *testing.T) {
	api := kubetest.API(t)
	grants := &grantClient{reader: api, writer: api, namespace: metav1.NamespaceDefault}
	record := recordOf(0, 4000)
	record.version, record.Released = "", true
	written, err := grants.write(t.Context(), &record)
	test.Must(t, err)
	t.Cleanup(func() {
		test.Check(t, grants.remove(context.WithoutCancel(t.Context()), &written))
	})
	listed, err := grants.list(t.Context())
	if err != nil || len(listed) != 1 {
		t.Fatalf("%d Grants are listed, %v, want 1", len(listed), err)
	}
	for _, r := range []grantRecord{written, listed[0]} {
		if age := time.Since(r.written); age < -time.Minute || age > time.Minute {
			t.Errorf("the Grant was written %v ago", age)
		}
	}
}

// The pods of both slices have one creator.
func TestPodsOfASliceOnOtherNodesDoNotKeepTheGrantOfTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(&scene{
			process: newProcess(t), capacity: 2, granted: []int64{2, 0}, ask: []int64{2, 0}, pods: [2][2]int64{{1}}, acting: 1,
			events: [numEvents]int{passes: 1, deletes: 1, creates: 1, ends: 1},
		})
		settle := func() {
			for range 5 {
				w.decide()
				w.commit()
				w.writeAll()
				w.news()
			}
		}
		settle()
		for _, what := range []string{"is deleted", "creates a slice again", "another policy decides"} {
			i := slices.IndexFunc(w.steps(), func(s step) bool { return strings.Contains(s.what, what) })
			w.steps()[i].do(w)
		}
		settle()
		w.pass()
		settle()
		w.pods[0] = [len(pools)]int64{0, 2} // The last pod on gold has ended, and others have started on silver.
		settle()
		if before, now := w.objects[0].record, w.objects[1].record; before != nil || now == nil || now.Present.Amounts[thing] != 2 {
			t.Errorf("on record for the slice before: %+v, and for this one: %+v, want none and 2", before, now)
		}
	})
}
