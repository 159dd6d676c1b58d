package controllers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
)

// informers hand the handlers over to the test, which then calls them as client-go does.
type informers struct {
	cache.Informers
	handlers map[string]toolscache.ResourceEventHandler
}

type informer struct {
	cache.Informer
	take func(toolscache.ResourceEventHandler)
}

type registration struct {
	toolscache.ResourceEventHandlerRegistration
}

func (i informers) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{take: func(h toolscache.ResourceEventHandler) { i.handlers[fmt.Sprintf("%T", object)] = h }}, nil
}

func (i informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.take(h)
	return registration{}, nil
}

func (registration) HasSyncedChecker() toolscache.DoneChecker { return nil }

// watched is the ledger behind the handlers that the operator gives to its informers of nodes and pods.
func watched(t *testing.T) (ledger *capacity.Ledger, nodes, pods toolscache.ResourceEventHandler) {
	t.Helper()
	ledger = capacity.NewLedger()
	i := informers{handlers: map[string]toolscache.ResourceEventHandler{}}
	if _, err := watchObjects(i, Options{Ledger: ledger, Batch: NewBatch(0)}, newPolicies(), func() {}); err != nil {
		t.Fatal(err)
	}
	return ledger, i.handlers["*v1.Node"], i.handlers["*v1.Pod"]
}

// free is what all nodes have left of a resource, in the units of the ledger.
func free(ledger *capacity.Ledger, resource string) int64 {
	view := ledger.View([]capacity.Selection{{}})
	for i, column := range view.Columns {
		if column == resource {
			return view.Pools[0].Free.At(i)
		}
	}
	return 0
}

// Under the race detector. Two informers write and the evaluator reads, each in its own goroutine; nothing is lost.
func TestFault_OneMapWrittenByTwoInformersWithoutALock(t *testing.T) {
	const n = 500
	ledger, nodes, pods := watched(t)
	stop := make(chan struct{})
	var writers, reader sync.WaitGroup
	writers.Go(func() {
		for i := range n {
			was := aNode(fmt.Sprintf("n%03d", i), list("cpu", "1"))
			nodes.OnAdd(was, true)
			nodes.OnUpdate(was, aNode(was.Name, list("cpu", "4")))
		}
	})
	writers.Go(func() {
		for i := range n {
			p := aPod(fmt.Sprintf("p%03d", i), fmt.Sprintf("n%03d", n-1-i), list("cpu", "1"))
			pods.OnAdd(p, true)
			if i%2 == 0 {
				pods.OnDelete(p)
			}
		}
	})
	reader.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if got := free(ledger, "cpu"); got < 0 || got > n*4000 {
					t.Errorf("%d milli are free", got)
					return
				}
			}
		}
	})
	writers.Wait()
	close(stop)
	reader.Wait()
	if got, want := free(ledger, "cpu"), int64(n*4000-n/2*1000); got != want {
		t.Errorf("%d milli are free, want %d", got, want)
	}
}

func TestFault_ADeletionThatWasMissedPanics(t *testing.T) {
	ledger, nodes, pods := watched(t)
	stays, goes, pod := aNode("stays", list("cpu", "4")), aNode("goes", list("cpu", "8")), aPod("p", "stays", list("cpu", "1"))
	nodes.OnAdd(stays, true)
	nodes.OnAdd(goes, true)
	pods.OnAdd(pod, true)
	if got := free(ledger, "cpu"); got != 11000 {
		t.Fatalf("%d milli are free, want 11000", got)
	}
	nodes.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "goes", Obj: goes})
	pods.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "default/p", Obj: pod})
	if got := free(ledger, "cpu"); got != 4000 {
		t.Errorf("%d milli are free, want 4000", got)
	}
}

func TestFault_NegativeAmountsAreAccepted(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.ResourcePolicySpec){
		"fixed": fixed("cpu", "-5"),
		"max":   func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = quantitiesOf("cpu", "-5") },
		"override": func(s *v1alpha1.ResourcePolicySpec) {
			s.Overrides = []v1alpha1.Override{{
				Consumers: v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}}, Offer: v1alpha1.OverrideOffer{Fixed: quantitiesOf("cpu", "-5")},
			}}
		},
	} {
		policy := aPolicy("negative", change)
		if err := api.Create(t.Context(), policy, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "not negative") {
			t.Errorf("%s: the API server says %v", name, err)
		}
		// Before Kubernetes 1.34 it may be only the operator that looks.
		policy.ObjectMeta = metav1.ObjectMeta{Name: "negative", UID: "1"}
		if _, problems := parsePolicy(policy); len(problems) == 0 {
			t.Errorf("%s: the operator accepts it", name)
		}
	}
}

func TestFault_PercentagesByFloatMathsLoseDevices(t *testing.T) {
	create(t, aNode("n", list("cpu", "1", "nvidia.com/gpu", "100")))
	create(t, aPolicy("p", func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer.Percentages = map[corev1.ResourceName]v1alpha1.Percent{"nvidia.com/gpu": 29}
	}))
	// As floats, 0.29 x 100 is 28.999999999999996.
	startOperator(t).offersOf("rome", "nvidia.com/gpu", 29)
}
