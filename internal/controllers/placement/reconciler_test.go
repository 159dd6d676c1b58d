package placement

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// decided are decisions on slices.
type decided []table.DecidedSlice

func (decided) Granted() map[string]map[string]capacity.Amounts             { return nil }
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

func TestARivalOfTheListIsRestoredLessAndLessOftenAndNoNewSliceIsAnsweredMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(kubetest.Scheme(),
			map[schema.GroupVersionResource]string{paramsResource: "AdmissionParamsList"})
		// The fake client guesses another plural, and lists no unstructured object of a known kind.
		first := &v1alpha1.AdmissionParams{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "list", ResourceVersion: "1"}}
		test.Must(t, client.Tracker().Create(paramsResource, first, "n"))
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
		from := table.New()
		w := NewReconciler(client, types.NamespacedName{Namespace: "n", Name: "list"}, from, func() { woken.Add(1) }, restore.New(), logr.Discard())
		from.Publish(table.Snapshot{
			Result:   &offer.Result{Offers: offer.Offers{Default: &offer.Entry{}}},
			Policies: policies(gold), Slices: decided{accepted("mine-1", gold)},
		})
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
