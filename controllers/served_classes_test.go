package controllers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kubetest"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

func TestOnlyClassesOfPoliciesInForceAreServed(t *testing.T) {
	got := activeClasses([]policy{
		{name: "a", parsed: &offer.Policy{Class: "silver"}},
		{name: "b", parsed: &offer.Policy{Class: "gold"}},
		{name: "c", parsed: &offer.Policy{Class: "gold"}},
		{name: "dry-run", parsed: &offer.Policy{Class: "trial", DryRun: true}},
		{name: "unnamed", parsed: &offer.Policy{}},
		{name: "invalid"},
	})
	if diff := cmp.Diff([]string{"gold", "silver"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheListHasWhatIsServedAndWhatOthersWroteAndNoMore(t *testing.T) {
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
			t.Fatalf("changes to a list that is right: %v", again)
		}
		for c := range changes {
			if was, there := listed[c]; there && was == got[c] {
				t.Fatalf("%s changes to what it was", c)
			}
		}
	})
}

// listing is a writer of the list with time and API of its own.
type listing struct {
	*servedClasses
	client *dynamicfake.FakeDynamicClient
}

func newListing(objects ...runtime.Object) listing {
	l := listing{client: dynamicfake.NewSimpleDynamicClient(NewScheme(), objects...)}
	l.servedClasses = &servedClasses{
		client: l.client, list: types.NamespacedName{Namespace: "n", Name: "list"},
		outcome: &atomic.Pointer[outcome]{}, debouncer: debounce.New(servedBatch), log: logr.Discard(),
	}
	return l
}

func (l listing) serve(classes ...string) {
	found := &outcome{}
	for _, c := range classes {
		found.policies = append(found.policies, policy{name: c, parsed: &offer.Policy{Class: c}})
	}
	l.outcome.Store(found)
	l.debouncer.Wake()
}

// writes are how often the list was written, or tried to be.
func (l listing) writes() int {
	n := 0
	for _, a := range l.client.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, a.GetVerb()) {
			n++
		}
	}
	return n
}

func (l listing) listed(t *testing.T) map[string]string {
	t.Helper()
	u, err := l.client.Resource(configMapResource).Namespace("n").Get(t.Context(), "list", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func aList(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "list"}, Data: data}
}

// withListing runs the test in a bubble, with the writer running.
func withListing(t *testing.T, object *corev1.ConfigMap, test func(*testing.T, listing)) {
	synctest.Test(t, func(t *testing.T) {
		l := newListing(object)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = l.Start(ctx) }()
		defer func() { cancel(); <-done }()
		synctest.Wait()
		test(t, l)
	})
}

func TestNothingIsListedBeforeTheFirstEvaluation(t *testing.T) {
	withListing(t, aList(map[string]string{"gold": servedByProffer}), func(t *testing.T, l listing) {
		l.debouncer.Wake()
		pass(time.Minute)
		if n := l.writes(); n != 0 {
			t.Errorf("%d writes, of a list that was right for all that is known", n)
		}
		l.serve("gold", "silver")
		pass(time.Second)
		if diff := cmp.Diff(map[string]string{"gold": servedByProffer, "silver": servedByProffer}, l.listed(t)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAListThatIsRightIsNotWritten(t *testing.T) {
	withListing(t, aList(map[string]string{"gold": servedByProffer, "default": "liqo"}), func(t *testing.T, l listing) {
		for range 10 {
			l.serve("gold")
			pass(time.Minute)
		}
		if n := l.writes(); n != 0 {
			t.Errorf("%d writes", n)
		}
	})
}

func TestAListThatCannotBeWrittenIsTriedAgainWithoutHaste(t *testing.T) {
	for _, refusal := range []error{
		apierrors.NewServiceUnavailable("away"),
		apierrors.NewForbidden(configMapResource.GroupResource(), "list", errors.New("no role")),
		apierrors.NewConflict(configMapResource.GroupResource(), "list", errors.New("changed")),
	} {
		withListing(t, aList(nil), func(t *testing.T, l listing) {
			var refusing atomic.Bool
			refusing.Store(true)
			l.client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return refusing.Load(), nil, refusal })
			l.serve("gold")
			pass(time.Minute)
			if n := l.writes(); n < 2 || n > 15 {
				t.Errorf("%v: tried %d times in a minute", refusal, n)
			}
			refusing.Store(false)
			pass(servedRetry + time.Second)
			if diff := cmp.Diff(map[string]string{"gold": servedByProffer}, l.listed(t)); diff != "" {
				t.Errorf("%v: %s", refusal, diff)
			}
		})
	}
}

func TestAListThatCannotBeReadIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newListing(aList(nil))
		var refusing atomic.Bool
		refusing.Store(true)
		l.client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return refusing.Load(), nil, apierrors.NewForbidden(configMapResource.GroupResource(), "list", errors.New("no role"))
		})
		term := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			if err := l.Start(ctx); err != nil {
				t.Error(err)
			}
		}
		l.serve("gold")
		term(time.Minute) // Which ends when it is over, and ends nothing else.
		if n := l.writes(); n != 0 {
			t.Errorf("%d writes of a list that was not read", n)
		}
		refusing.Store(false)
		term(time.Minute)
		if diff := cmp.Diff(map[string]string{"gold": servedByProffer}, l.listed(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// aServedList is a list that the operator is told of, in the namespace of a Lease of its own.
func aServedList(t *testing.T) (list *corev1.ConfigMap, with func(*Options)) {
	t.Helper()
	election := longLease(t)
	list = kubetest.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: election.Namespace, Name: "served"}})
	return list, func(o *Options) { o.LeaderElection, o.ServedClasses = election, list.Name }
}

// lists waits until the list has exactly this.
func lists(t *testing.T, list *corev1.ConfigMap, want map[string]string) {
	t.Helper()
	kubetest.Eventually(t, func() string {
		var now corev1.ConfigMap
		if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(list), &now); err != nil {
			return err.Error()
		}
		return cmp.Diff(want, now.Data, cmpopts.EquateEmpty())
	})
}

func ofClass(class string) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Class = class }
}

func TestTheListFollowsThePolicies(t *testing.T) {
	list, listing := aServedList(t)
	gold := kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "1"), ofClass("gold")))
	twin := kubetest.Create(t, kubetest.Policy("twin", kubetest.Fixed("cpu", "2"), ofClass("gold")))
	trial := kubetest.Create(t, kubetest.Policy("trial", kubetest.Fixed("cpu", "1"), ofClass("trial"), func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeDryRun }))
	kubetest.Create(t, kubetest.Policy("unnamed", kubetest.Fixed("cpu", "1")))
	startOperator(t, listing)
	lists(t, list, map[string]string{"gold": servedByProffer})

	editPolicy(t, trial, func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeActive })
	lists(t, list, map[string]string{"gold": servedByProffer, "trial": servedByProffer})
	kubetest.Edit(t, list, func(o client.Object) { o.(*corev1.ConfigMap).Data["default"] = "liqo" }, kubetest.WriteSpec)
	editPolicy(t, trial, ofClass("silver"))
	lists(t, list, map[string]string{"gold": servedByProffer, "silver": servedByProffer, "default": "liqo"})

	// A class is served for as long as any policy names it.
	kubetest.Remove(t, gold)
	kubetest.Remove(t, trial)
	lists(t, list, map[string]string{"gold": servedByProffer, "default": "liqo"})
	kubetest.Remove(t, twin)
	lists(t, list, map[string]string{"default": "liqo"})
}

func TestWhatOthersDoToTheListIsPutRight(t *testing.T) {
	list, listing := aServedList(t)
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "1"), ofClass("gold")))
	startOperator(t, listing)
	right := map[string]string{"gold": servedByProffer}
	lists(t, list, right)

	kubetest.Edit(t, list, func(o client.Object) { o.(*corev1.ConfigMap).Data = map[string]string{"lead": servedByProffer} }, kubetest.WriteSpec)
	lists(t, list, right)
	kubetest.Remove(t, list)
	lists(t, list, right)
}

func TestOnlyTheLeaderWritesTheList(t *testing.T) {
	list, listing := aServedList(t)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LeaderElectionID}, Spec: somebodys()}
	if _, err := leases(t, list.Namespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o := startOperator(t, listing)
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "1"), ofClass("gold")))
	o.eventually(func() string { return cmp.Diff(int64(1000), o.offered("rome")["gold"]["cpu"]) })
	lists(t, list, nil)

	lease.Spec.HolderIdentity = new("")
	setHolder(t, list.Namespace, lease.Spec)
	lists(t, list, map[string]string{"gold": servedByProffer})
}

func TestWithoutANamespaceThereIsNoList(t *testing.T) {
	mgr, err := ctrl.NewManager(rest.CopyConfig(kubetest.Cluster(t).Config), ctrl.Options{Scheme: NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	debouncer := debounce.New(0)
	err = Setup(mgr, Options{Ledger: capacity.NewLedger(), Table: table.New(), Debouncer: debouncer, ServedClasses: "served"})
	if err == nil || !strings.Contains(err.Error(), "write --leader-elect and --leader-election-namespace=NAMESPACE") {
		t.Errorf("got %v", err)
	}
}
