package policy

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// startReconciler runs a Reconciler of the shared cluster until stop is called.
func startReconciler(
	t *testing.T, policies *Cache, wake func(), check func(reconcile.Request),
) (r *Reconciler, stop func()) {
	informers, err := cache.New(kubetest.Cluster(t).Config, cache.Options{Scheme: kubetest.Scheme()})
	test.Must(t, err)
	r, err = NewReconciler(informers, policies, wake, check, logr.Discard())
	test.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, start := range []func(context.Context) error{informers.Start, r.Start} {
		running.Go(func() {
			test.Check(t, start(ctx))
		})
	}
	return r, func() { cancel(); running.Wait() }
}

func TestThePoliciesAreCompleteWhenTheReconcilerIsDoneAndAreFollowedAfterwards(t *testing.T) {
	const many = 30
	all := make([]*v1alpha1.ResourcePolicy, many)
	for i := range all {
		all[i] = kubetest.Create(t, kubetest.Policy(fmt.Sprintf("p-%02d", i), kubetest.Fixed("cpu", "1")))
	}
	var wakes, checks atomic.Int64
	policies := NewCache(nil)
	r, stop := startReconciler(t, policies, func() { wakes.Add(1) }, func(reconcile.Request) { checks.Add(1) })
	defer stop()
	select {
	case <-r.Done():
	case <-time.After(test.Timeout):
		t.Fatal("not done in time")
	}
	if n := len(policies.List().Valid); n != many || wakes.Load() != many {
		t.Fatalf("%d policies and %d wake-ups when the reconciler is done, want %d", n, wakes.Load(), many)
	}

	kubetest.Edit(t, all[0], func(o client.Object) {
		o.(*v1alpha1.ResourcePolicy).Spec.Offer.Fixed = kubetest.Policy("", kubetest.Fixed("cpu", "2")).Spec.Offer.Fixed
	}, kubetest.WriteSpec)
	cpu := func() int64 { return policies.List().Valid[0].Fixed["cpu"] }
	test.Eventually(t, func() string {
		if got := cpu(); got != 2000 {
			return fmt.Sprintf("cpu is %d after the edit", got)
		}
		return ""
	})

	// A status that somebody writes is checked, but wakes no evaluation.
	woken, checked := wakes.Load(), checks.Load()
	kubetest.Edit(t, all[1], func(o client.Object) {
		o.(*v1alpha1.ResourcePolicy).Status.ObservedGeneration = 7
	}, kubetest.WriteStatus)
	test.Eventually(t, func() bool { return checks.Load() == checked })
	if more := wakes.Load() - woken; more != 0 {
		t.Errorf("%d wake-ups after a status was written", more)
	}

	kubetest.Remove(t, all[2])
	test.Eventually(t, func() string {
		if n := len(policies.List().Valid); n != many-1 {
			return fmt.Sprintf("%d policies after one of %d was deleted", n, many)
		}
		return ""
	})
}

// panicking panics at policies of one class, as a bug of the parser would.
type panicking struct{}

func (panicking) AddTo(object *v1alpha1.ResourcePolicy, _ *offer.Policy) {
	if object.Spec.Class == "panic" {
		panic("no such class")
	}
}

// A replica that starts and one that runs do the same: the policy is Invalid, and all others are parsed.
func TestAPanicOfTheParserMakesThePolicyInvalid(t *testing.T) {
	ofClass := func(name, class string) *v1alpha1.ResourcePolicy {
		return kubetest.Create(t, kubetest.Policy(name, kubetest.Fixed("cpu", "1"),
			func(s *v1alpha1.ResourcePolicySpec) { s.Class = class }))
	}
	edited := ofClass("a-later", "silver")
	ofClass("b-at-the-start", "panic")
	ofClass("c", "gold")
	policies := NewCache(panicking{})
	r, stop := startReconciler(t, policies, func() {}, func(reconcile.Request) {})
	defer stop()
	expect := func(want string) {
		t.Helper()
		test.Eventually(t, func() string {
			var got []string
			for _, p := range policies.List().All {
				if p.Parsed == nil {
					got = append(got, p.Name)
					if len(p.Problems) != 1 || !strings.Contains(p.Problems[0], "a bug of Proffer") {
						return fmt.Sprintf("the problems of %s are %q", p.Name, p.Problems)
					}
				}
			}
			if fmt.Sprint(got) != want || len(policies.List().All) != 3 {
				return fmt.Sprintf("invalid are %v of %d, want %s of 3", got, len(policies.List().All), want)
			}
			return ""
		})
	}
	select {
	case <-r.Done():
	case <-time.After(test.Timeout):
		t.Fatal("not done in time")
	}
	expect("[b-at-the-start]")
	kubetest.Edit(t, edited, func(o client.Object) { o.(*v1alpha1.ResourcePolicy).Spec.Class = "panic" }, kubetest.WriteSpec)
	expect("[a-later b-at-the-start]")
}
