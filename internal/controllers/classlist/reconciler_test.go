package classlist

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube/kept"
	"proffer.dev/proffer/internal/kube/leading"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

var paramsResource = v1alpha1.GroupVersion.WithResource("admissionparams")

func TestOnlyClassesOfPoliciesInForceAndOfOthersAreServed(t *testing.T) {
	got := servedClasses([]table.Policy{
		{Name: "a", Parsed: &offer.Policy{Class: "silver"}},
		{Name: "b", Parsed: &offer.Policy{Class: "gold"}},
		{Name: "c", Parsed: &offer.Policy{Class: "gold"}},
		{Name: "dry-run", Parsed: &offer.Policy{Class: "trial", DryRun: true}},
		{Name: "unnamed", Parsed: &offer.Policy{}},
		{Name: "invalid"},
	}, map[string]offer.Awaited{
		"gone": {Policy: &offer.Policy{Class: "bronze"}}, "gone-dry-run": {Policy: &offer.Policy{Class: "iron", DryRun: true}},
	}, []string{"default", "gold"})
	if diff := cmp.Diff([]string{"bronze", "default", "gold", "silver"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAmendmentsAddServedClassesAndKeepEntriesOfOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		class := rapid.SampledFrom([]string{"default", "gold", "silver", "bronze", "iron"})
		listed := rapid.MapOf(class, rapid.SampledFrom([]string{servedByProffer, "liqo", ""})).Draw(t, "listed")
		served := slices.Sorted(maps.Keys(rapid.MapOf(class, rapid.Just(0)).Draw(t, "served")))

		want := maps.Clone(listed)
		maps.DeleteFunc(want, func(_, by string) bool { return by == servedByProffer })
		for _, c := range served {
			if _, theirs := want[c]; !theirs {
				want[c] = servedByProffer
			}
		}
		changes := amendments(listed, served)
		got := maps.Clone(listed)
		for c, by := range changes {
			if by == nil {
				delete(got, c)
			} else {
				got[c] = by.(string)
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if again := amendments(got, served); len(again) > 0 {
			t.Fatalf("changes to an up-to-date list: %v", again)
		}
		for c := range changes {
			if was, there := listed[c]; there && was == got[c] {
				t.Fatalf("%s is set to the value it already has", c)
			}
		}
	})
}

// testWriter is a Reconciler with a fake API.
type testWriter struct {
	*Reconciler
	client *dynamicfake.FakeDynamicClient
}

func newTestWriter(objects ...runtime.Object) testWriter {
	l := testWriter{client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(kubetest.Scheme(),
		map[schema.GroupVersionResource]string{paramsResource: "AdmissionParamsList"})}
	for _, o := range objects { // The fake client guesses another plural.
		if err := l.client.Tracker().Create(paramsResource, o, "n"); err != nil {
			panic(err)
		}
	}
	l.Reconciler = NewReconciler(&kept.Object{
		Client: l.client, Resource: paramsResource, Kind: "AdmissionParams", Name: types.NamespacedName{Namespace: "n", Name: "list"},
		Pacer: restore.New().Pacer("AdmissionParams", logr.Discard()), Log: logr.Discard(),
	}, table.New(), nil)
	return l
}

func (l testWriter) serve(classes ...string) {
	next := table.Snapshot{Result: &offer.Result{Offers: offer.Offers{Default: &offer.Entry{}}}}
	for _, c := range classes {
		next.Policies = append(next.Policies, table.Policy{Name: c, Parsed: &offer.Policy{Class: c}})
	}
	l.table.Publish(next)
	l.Wake()
}

// writes counts the attempts to write the list.
func (l testWriter) writes() int {
	n := 0
	for _, a := range l.client.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, a.GetVerb()) {
			n++
		}
	}
	return n
}

func (l testWriter) listed(t *testing.T) map[string]string {
	t.Helper()
	u, err := l.client.Resource(paramsResource).Namespace("n").Get(t.Context(), "list", metav1.GetOptions{})
	test.Must(t, err)
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	test.Must(t, err)
	return data
}

func aList(data map[string]string) *v1alpha1.AdmissionParams {
	return &v1alpha1.AdmissionParams{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "list"}, Data: data}
}

// withWriter runs the test in a synctest bubble while the writer runs. The list is this one, nil for none.
func withWriter(t *testing.T, object *v1alpha1.AdmissionParams, f func(*testing.T, testWriter)) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestWriter()
		if object != nil {
			l = newTestWriter(object)
		}
		test.Background(t, l.Start)
		synctest.Wait()
		f(t, l)
	})
}

func TestNothingIsListedBeforeTheFirstEvaluation(t *testing.T) {
	withWriter(t, aList(map[string]string{"gold": servedByProffer}), func(t *testing.T, l testWriter) {
		l.Wake()
		test.Pass(time.Minute)
		if n := l.writes(); n != 0 {
			t.Errorf("%d writes before the first evaluation", n)
		}
		l.serve("gold", "silver")
		test.Pass(time.Second)
		if diff := cmp.Diff(map[string]string{"gold": servedByProffer, "silver": servedByProffer}, l.listed(t)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnUpToDateListIsNotWritten(t *testing.T) {
	withWriter(t, aList(map[string]string{"gold": servedByProffer, "default": "liqo"}), func(t *testing.T, l testWriter) {
		for range 10 {
			l.serve("gold")
			test.Pass(time.Minute)
		}
		if n := l.writes(); n != 0 {
			t.Errorf("%d writes of an up-to-date list", n)
		}
	})
}

func TestAFailedWriteOfTheListIsRetriedSlowly(t *testing.T) {
	for _, refusal := range []error{
		apierrors.NewServiceUnavailable("away"),
		apierrors.NewForbidden(paramsResource.GroupResource(), "list", errors.New("no role")),
		apierrors.NewConflict(paramsResource.GroupResource(), "list", errors.New("changed")),
	} {
		withWriter(t, aList(nil), func(t *testing.T, l testWriter) {
			var refusing atomic.Bool
			refusing.Store(true)
			l.client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				return refusing.Load(), nil, refusal
			})
			l.serve("gold")
			test.Pass(time.Minute)
			if n := l.writes(); n < 2 || n > 15 {
				t.Errorf("%v: tried %d times in a minute, want 2 to 15", refusal, n)
			}
			refusing.Store(false)
			test.Pass(leading.RetryAfter + time.Second)
			if diff := cmp.Diff(map[string]string{"gold": servedByProffer}, l.listed(t)); diff != "" {
				t.Errorf("%v: %s", refusal, diff)
			}
		})
	}
}

// No watch brings a kind or a namespace that is missing, so the failure is counted and logged.
func TestAListWhoseKindIsMissingIsReported(t *testing.T) {
	withWriter(t, nil, func(t *testing.T, l testWriter) {
		missing := apierrors.NewNotFound(paramsResource.GroupResource(), "list")
		l.client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, missing
		})
		l.serve("gold")
		test.Pass(time.Second)
		if _, err := l.Reconcile(t.Context(), reconcile.Request{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want an error", err)
		}
	})
}

func TestNothingIsWrittenUntilTheListIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestWriter(aList(nil))
		var refusing atomic.Bool
		refusing.Store(true)
		l.client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return refusing.Load(), nil, apierrors.NewForbidden(paramsResource.GroupResource(), "list", errors.New("no role"))
		})
		term := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			test.Check(t, l.Start(ctx))
		}
		l.serve("gold")
		term(time.Minute) // The term ends without an error.
		if n := l.writes(); n != 0 {
			t.Errorf("%d writes of a list that could not be read", n)
		}
		refusing.Store(false)
		term(time.Minute)
		if diff := cmp.Diff(map[string]string{"gold": servedByProffer}, l.listed(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// rival plays a client that removes the data of an object whenever the writer has written it. It
// returns the number of the writes.
func (l testWriter) rival() (written func() int) {
	var n atomic.Int64
	version := 1
	l.client.PrependReactor("patch", paramsResource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		n.Add(1)
		version++
		changed := aList(nil)
		changed.ResourceVersion = strconv.Itoa(version)
		changed.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "rival", Time: &metav1.Time{Time: time.Now()}}}
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(changed)
		if err != nil {
			return true, nil, err
		}
		object := &unstructured.Unstructured{Object: u}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AdmissionParams"))
		return true, object, l.client.Tracker().Update(paramsResource, object, "n")
	})
	return func() int { return int(n.Load()) }
}

func TestTheListIsRestoredLessAndLessOftenFromARival(t *testing.T) {
	withWriter(t, aList(nil), func(t *testing.T, l testWriter) {
		written := l.rival()
		l.serve("gold")
		test.Pass(time.Minute)
		if n := written(); n < 5 || n > 12 {
			t.Errorf("%d writes in the first minute, want 5 to 12", n)
		}
		test.Pass(10 * time.Minute)
		before := written()
		test.Pass(10 * time.Minute)
		if n := written() - before; n < 9 || n > 10 {
			t.Errorf("%d writes in 10 minutes, want one a minute", n)
		}

		// A class that is new is listed as promptly as in peace.
		before = written()
		l.serve("gold", "silver")
		test.Pass(2 * debouncePeriod)
		if n := written() - before; n != 1 {
			t.Errorf("%d writes for a new class, want 1", n)
		}
	})
}
