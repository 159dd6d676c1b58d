package podsecurity

import (
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// sent is a namespace that rome has sent.
func sent(name string, version int) *unstructured.Unstructured {
	u := namespace(map[string]string{liqo.RemoteClusterIDLabel: "rome", enforceLabel: "privileged"},
		map[string]string{liqo.ManagedByMapAnnotation: "liqo-tenant-rome/milan"})
	u.SetAPIVersion("v1")
	u.SetKind("Namespace")
	u.SetName(name)
	u.SetUID(types.UID("uid-of-" + name))
	u.SetResourceVersion(strconv.Itoa(version))
	return u
}

func TestALabellerIsCorrectedLessAndLessOftenAndDelaysNoOtherNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := dynamicfake.NewSimpleDynamicClient(kubetest.Scheme(), sent("contested", 1))
		var contested, others atomic.Int64
		// Another client sets the label of one namespace back as soon as it is written.
		client.PrependReactor("patch", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if a.(clienttesting.PatchAction).GetName() != "contested" {
				others.Add(1)
				return false, nil, nil
			}
			object := sent("contested", 1+int(contested.Add(1)))
			return true, object, client.Tracker().Update(namespaceResource, object, "")
		})
		restores := restore.New()
		w := NewController(client, "baseline", restores, logr.Discard())
		test.Background(t, w.Start)

		test.Pass(time.Minute)
		if n := contested.Load(); n < 5 || n > 12 {
			t.Errorf("%d writes in the first minute, want 5 to 12", n)
		}
		test.Pass(10 * time.Minute)
		before := contested.Load()
		test.Pass(10 * time.Minute)
		if n := contested.Load() - before; n < 9 || n > 10 {
			t.Errorf("%d writes in 10 minutes, want one a minute", n)
		}
		if n := testutil.ToFloat64(restores.WithLabelValues("Namespace")); int64(n) != contested.Load()-1 {
			t.Errorf("%v restores, want all %d writes but the first", n, contested.Load())
		}

		if _, err := client.Resource(namespaceResource).Create(t.Context(), sent("new", 1), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		test.Pass(20 * time.Millisecond)
		if n := others.Load(); n != 1 {
			t.Errorf("%d writes to a new namespace, want 1", n)
		}
	})
}

// A consumer may create and delete a namespace any number of times.
func TestANamespaceThatIsCreatedAgainIsRaisedImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := dynamicfake.NewSimpleDynamicClient(kubetest.Scheme())
		w := NewController(client, "baseline", restore.New(), logr.Discard())
		test.Background(t, w.Start)
		synctest.Wait()
		namespaces := client.Resource(namespaceResource)
		for i := range 20 {
			object := sent("n", i)
			object.SetUID(types.UID(strconv.Itoa(i)))
			if _, err := namespaces.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			test.Pass(20 * time.Millisecond)
			now, err := namespaces.Get(t.Context(), "n", metav1.GetOptions{})
			test.Must(t, err)
			if got := now.GetLabels()[enforceLabel]; got != "baseline" {
				t.Fatalf("time %d: the level is %q", i, got)
			}
			test.Must(t, namespaces.Delete(t.Context(), "n", metav1.DeleteOptions{}))
			synctest.Wait()
		}
	})
}
