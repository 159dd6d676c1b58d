package placement

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/kept"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

var paramsResource = v1alpha1.GroupVersion.WithResource("admissionparams")

// decided are decisions on slices.
type decided []table.DecidedSlice

func (decided) Granted() map[string]map[string]capacity.Amounts             { return nil }
func (decided) GrantedBy() map[string]map[string][]string                   { return nil }
func (decided) Under(string) table.PolicyGrants                             { return table.PolicyGrants{} }
func (d decided) DryRun(func() *offer.AllocationInput) table.SliceDecisions { return d }
func (d decided) All(yield func(table.DecidedSlice) bool) {
	for _, s := range d {
		if !yield(s) {
			return
		}
	}
}

// emptyList is the list at a version, without entries.
func emptyList(version int) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AdmissionParams"))
	u.SetNamespace("n")
	u.SetName("list")
	u.SetResourceVersion(strconv.Itoa(version))
	u.SetGeneration(int64(version))
	return u
}

// newFakeList returns a client with a list at version 1.
func newFakeList(t *testing.T) *dynamicfake.FakeDynamicClient {
	t.Helper()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(kubetest.Scheme(),
		map[schema.GroupVersionResource]string{paramsResource: "AdmissionParamsList"})
	// The fake client guesses another plural, and lists no unstructured object of a known kind.
	first := &v1alpha1.AdmissionParams{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "list", ResourceVersion: "1"}}
	test.Must(t, client.Tracker().Create(paramsResource, first, "n"))
	return client
}

// newOn returns a Reconciler of the list, for a slice that was granted something.
func newOn(client *dynamicfake.FakeDynamicClient, wake func()) *Reconciler {
	from := table.New()
	from.Publish(table.Snapshot{
		Result:   &offer.Result{Offers: offer.Offers{Default: &offer.Entry{}}},
		Policies: policies(gold), Slices: decided{accepted("mine-1", gold)},
	})
	return NewReconciler(&kept.Object{
		Client: client, Resource: paramsResource, Kind: "AdmissionParams", Name: types.NamespacedName{Namespace: "n", Name: "list"},
		Pacer: restore.New().Pacer("AdmissionParams", logr.Discard()), Log: logr.Discard(),
	}, from, wake)
}

func TestARivalOfTheListIsRestoredLessAndLessOftenAndNoNewSliceIsAnsweredMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newFakeList(t)
		var writes atomic.Int64
		var peace atomic.Bool
		// Another client empties the list as soon as it is written.
		client.PrependReactor("patch", paramsResource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			n := 2 * int(writes.Add(1))
			ours := emptyList(n)
			ours.Object["data"] = map[string]any{"mine-1": "pool=gold,zone=a", complete: fmt.Sprintf("/%d", n)}
			if err := client.Tracker().Update(paramsResource, ours, "n"); err != nil || peace.Load() {
				return true, ours, err
			}
			return true, ours, client.Tracker().Update(paramsResource, emptyList(n+1), "n")
		})
		var woken atomic.Int64
		w := newOn(client, func() { woken.Add(1) })
		test.Background(t, w.Start)

		test.Pass(20 * time.Second)
		if n := writes.Load(); n < 5 || n > 11 {
			t.Errorf("%d writes in 20 s, want 5 to 11", n)
		}
		if w.Requires("mine-1", gold.Slices.NodeSelector) {
			t.Error("the list counts as written while it is empty")
		}
		peace.Store(true)
		before := woken.Load()
		test.Pass(restore.MaxDelay + debouncePeriod)
		if !w.Requires("mine-1", gold.Slices.NodeSelector) || woken.Load() == before {
			t.Error("the list was restored, but slices still wait for it")
		}
	})
}

// The versions of a store that was restored from a backup are lower than those that were written before.
func TestAListOfARestoredStoreIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newFakeList(t)
		version, conflicts, now := 1, 0, emptyList(1)
		put := func(next int, data map[string]any) *unstructured.Unstructured {
			list := emptyList(next)
			list.Object["data"] = data
			version, now = next, list
			test.Must(t, client.Tracker().Update(paramsResource, list, "n")) // From here on, a write may change both.
			return list.DeepCopy()
		}
		client.PrependReactor("list", paramsResource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			all := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*now.DeepCopy()}}
			all.SetResourceVersion("1")
			return true, all, nil
		})
		client.PrependReactor("patch", paramsResource.Resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
			var body struct {
				Metadata struct{ ResourceVersion string }
			}
			test.Must(t, json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &body))
			if body.Metadata.ResourceVersion != strconv.Itoa(version) {
				conflicts++
				return true, nil, apierrors.NewConflict(paramsResource.GroupResource(), "list", nil)
			}
			next := version + 100
			return true, put(next, map[string]any{"mine-1": "pool=gold,zone=a", complete: fmt.Sprintf("/%d", next)}), nil
		})
		put(1, nil) // The tracker brings no event after a watch that begins with a typed object.
		w := newOn(client, func() {})
		require := func(what string, written, most int) {
			t.Helper()
			test.Pass(20 * time.Second)
			if version != written || conflicts > most || !w.Requires("mine-1", gold.Slices.NodeSelector) {
				t.Errorf("%s: version %d, want %d; %d conflicts, want at most %d", what, version, written, conflicts, most)
			}
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Start(ctx) }()
		require("the first list", 101, 0)
		put(50, map[string]any{complete: "/50"})
		require("restored during a term", 150, 1)
		end()
		test.Must(t, <-ended)
		put(20, map[string]any{complete: "/20"})
		test.Background(t, w.Start)
		require("restored between two terms", 120, 1)
	})
}
