package policy

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kubetest"
	"proffer.dev/proffer/test"
)

func TestThePoliciesAreCompleteWhenTheReconcilerIsDoneAndAreFollowedAfterwards(t *testing.T) {
	const many = 30
	all := make([]*v1alpha1.ResourcePolicy, many)
	for i := range all {
		all[i] = kubetest.Create(t, kubetest.Policy(fmt.Sprintf("p-%02d", i), kubetest.Fixed("cpu", "1")))
	}
	informers, err := cache.New(kubetest.Cluster(t).Config, cache.Options{Scheme: kubetest.Scheme()})
	test.Must(t, err)
	var wakes, checks atomic.Int64
	policies := NewCache(nil)
	r, err := NewReconciler(informers, policies, func() { wakes.Add(1) },
		func(reconcile.Request) { checks.Add(1) }, logr.Discard())
	test.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, start := range []func(context.Context) error{informers.Start, r.Start} {
		running.Go(func() {
			if err := start(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	defer func() { cancel(); running.Wait() }()
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
