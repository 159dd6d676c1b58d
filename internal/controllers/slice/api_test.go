package slice

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

const (
	sliceCRD  = "authentication.liqo.io_resourceslices.yaml"
	tenantCRD = "authentication.liqo.io_tenants.yaml"
)

// following is a Decider whose watches follow the API server until the test ends.
type following struct {
	*Decider
	client *Clients
	woken  atomic.Int64
}

func newTestClients(t *testing.T) *Clients {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(kubetest.Cluster(t).Config)
	test.Must(t, err)
	c, err := NewClients(kubetest.Cluster(t).Config, httpClient)
	test.Must(t, err)
	return c
}

// follow starts the watches, and returns when every object has been seen once.
func follow(t *testing.T) *following {
	t.Helper()
	client := newTestClients(t)
	f := &following{client: client}
	wake := func() { f.woken.Add(1) }
	f.Decider = NewDecider(client, 0, wake, wake, log.Log)
	tenants := kube.Kind{
		GroupVersionResource: authv1beta1.TenantGroupVersionResource, Strip: kube.KeepFields(TenantFields...),
	}
	watches := append(kube.CRDInformers{kube.NewCRDInformer(client, tenants, wake, log.Log, f.Tenants())}, f.Informers...)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := watches.Start(ctx); err != nil {
			t.Errorf("the watches ended: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	for _, w := range watches {
		select {
		case <-w.Done():
		case <-time.After(test.Timeout):
			t.Fatalf("timed out waiting for %s", w.Name())
		}
	}
	return f
}

// write writes an answer to a slice, like the leader.
func (f *following) write(t *testing.T, s *slice, a sliceAnswer) error {
	t.Helper()
	patch, err := a.patch(s.object, time.Now())
	test.Must(t, err)
	_, err = f.client.slices.patchStatus(t.Context(), s.namespace, s.name, patch)
	return err
}

// lists waits until these slices are in the cache, by name and class.
func (f *following) lists(t *testing.T, want map[string]string) {
	t.Helper()
	test.Eventually(t, func() string {
		got := map[string]string{}
		for _, s := range f.cache.list() {
			got[s.name] = s.class
		}
		return cmp.Diff(want, got)
	})
}

func TestSlicesAreReadWhenTheirKindComesLaterAndAfterItWasGone(t *testing.T) {
	kubetest.Without(t)
	f := follow(t)
	f.lists(t, map[string]string{})

	uninstall := kubetest.Install(t, controlplane.LiqoCRD(t, sliceCRD))
	// Slices of this cluster are watched too: the labels that tell them apart can be changed by a
	// consumer.
	own := kubetest.CreateSlice(t, kubetest.Slice("own", func(s *authv1beta1.ResourceSlice) { delete(s.Labels, liqo.ReplicatedLabel) }))
	u := kubetest.CreateSlice(t, kubetest.Slice("copy"))
	f.lists(t, map[string]string{"copy": "gold", "own": "gold"})
	kubetest.Remove(t, own)
	kubetest.Edit(t, u, func(o client.Object) {
		_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "default", "spec", "class")
	}, kubetest.WriteSpec)
	f.lists(t, map[string]string{"copy": "default"})

	// The kind is removed with its objects, and installed again.
	uninstall()
	f.lists(t, map[string]string{})
	kubetest.Install(t, controlplane.LiqoCRD(t, sliceCRD))
	kubetest.CreateSlice(t, kubetest.Slice("copy"))
	f.lists(t, map[string]string{"copy": "gold"})
}

func TestSlicesThatAreThereAtTheStartAreAllThereOnceSynced(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, sliceCRD))
	for _, name := range []string{"a", "b", "c"} {
		kubetest.CreateSlice(t, kubetest.Slice(name))
	}
	if got := len(follow(t).cache.list()); got != 3 {
		t.Errorf("%d slices are known once the watches are synced, want 3", got)
	}
}

func TestAnAnswerIsWrittenWithWhatTheWatchKept(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, sliceCRD))
	f := follow(t)
	kubetest.CreateSlice(t, kubetest.Slice("s"))
	test.Eventually(t, func() string {
		if list := f.cache.list(); len(list) == 1 && list[0].authenticated {
			return ""
		}
		return "the slice is not known as authenticated"
	})
	resources := f.client.Resource(liqo.ResourceSlices).Namespace(metav1.NamespaceDefault)
	before, err := resources.Get(t.Context(), "s", metav1.GetOptions{})
	test.Must(t, err)
	read := f.cache.list()[0]
	want := sliceAnswer{
		verdict: accepted, reason: "Capped", message: "granted 2 of 4 cpu", resources: capacity.Amounts{"cpu": 2000, "memory": 0},
		storageClasses: []namedClass{{"fast", true}, {"slow", false}}, ingressClasses: []namedClass{{"nginx", false}},
		loadBalancerClasses: []namedClass{{"lb", true}}, nodeLabels: map[string]string{"tier": "gold"}, nodeSelector: map[string]string{"dedicated": "liqo"},
	}
	test.Must(t, f.write(t, &read.slice, want))
	written, err := resources.Get(t.Context(), "s", metav1.GetOptions{})
	test.Must(t, err)
	if diff := cmp.Diff(want, readAnswer(written), comparing); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before.Object["spec"], written.Object["spec"]); diff != "" {
		t.Errorf("the spec changed: %s", diff)
	}
	if diff := cmp.Diff(before.GetAnnotations(), written.GetAnnotations()); diff != "" || len(before.GetAnnotations()) == 0 {
		t.Errorf("the annotations changed: %s", diff)
	}
	if got, had := len(written.GetManagedFields()), len(before.GetManagedFields()); got < had {
		t.Errorf("%d entries of managed fields, want at least %d", got, had)
	}
	was, _, _ := unstructured.NestedMap(before.Object, "status", "authParams")
	is, _, _ := unstructured.NestedMap(written.Object, "status", "authParams")
	if diff := cmp.Diff(was, is); diff != "" || len(was) == 0 {
		t.Errorf("Liqo's part of the status changed: %s", diff)
	}
	test.Eventually(t, func() string { return cmp.Diff(want, f.cache.list()[0].answer, comparing) })

	// A write based on the old version is a conflict.
	if err := f.write(t, &read.slice, sliceAnswer{verdict: denied}); !apierrors.IsConflict(err) {
		t.Errorf("a write over a newer version: %v, want a conflict", err)
	}
}

func TestTheWatchTakesWhatTheAPIServerTakes(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, sliceCRD))
	f := follow(t)
	u := kubetest.Unstructured(t, kubetest.Slice("hostile"))
	u.SetUID("")
	u.SetResourceVersion("")
	u.SetManagedFields(nil)
	asked := map[string]any{"cpu": "1e999999999", "memory": "-1", "pods": int64(3), "a b": "1e100"}
	test.Must(t, unstructured.SetNestedMap(u.Object, asked, "spec", "resources"))
	kubetest.Create(t, u)
	f.lists(t, map[string]string{"hostile": "gold"})
	s := f.cache.list()[0]
	if diff := cmp.Diff(capacity.Amounts{"pods": 3}, s.request); diff != "" {
		t.Error(diff)
	}
	want := []string{
		`asks for the resource "a b": write a name such as cpu, memory or nvidia.com/gpu`,
		"asks for 1e999999999 cpu: " + v1alpha1.AmountNotAQuantity,
		"asks for -1 memory: " + v1alpha1.AmountNegative,
	}
	if diff := cmp.Diff(want, s.problems); diff != "" {
		t.Error(diff)
	}
}

func TestTheGatesFollowNamespacesAndTenants(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, sliceCRD))
	f := follow(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "tenant-"}}
	kubetest.Create(t, namespace)
	kubetest.CreateSlice(t, kubetest.Slice("s", func(s *authv1beta1.ResourceSlice) { s.Namespace = namespace.Name }))
	decides := func(want gateState) {
		t.Helper()
		test.Eventually(t, func() string {
			return cmp.Diff([]gateState{want}, f.gates.decide(f.gates.owners.All(), f.cache.list()))
		})
	}
	labels := func(labels map[string]string) {
		t.Helper()
		kubetest.Edit(t, namespace, func(o client.Object) { o.SetLabels(labels) }, kubetest.WriteSpec)
	}
	newTenant := func(name string, condition authv1beta1.TenantCondition) *unstructured.Unstructured {
		u := kubetest.OfLiqo(t, "authentication.liqo.io/v1beta1", "Tenant", &authv1beta1.Tenant{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace.Name},
			Spec:       authv1beta1.TenantSpec{ClusterID: corev1beta1.ClusterID("rome"), TenantCondition: condition},
		})
		return kubetest.Create(t, u)
	}
	decides(wrongNamespace)
	labels(map[string]string{liqo.TenantNamespaceLabel: "true", liqo.RemoteClusterIDLabel: "oslo"})
	decides(wrongNamespace)
	labels(map[string]string{liqo.TenantNamespaceLabel: "true", liqo.RemoteClusterIDLabel: "rome"})
	decides(noTenant)

	uninstall := kubetest.Install(t, controlplane.LiqoCRD(t, tenantCRD))
	first := newTenant("first", "") // The default of the CRD applies.
	decides(active)
	for condition, want := range map[string]gateState{"Cordoned": cordoned, "Drained": drained, "Active": active} {
		kubetest.Edit(t, first, func(o client.Object) {
			_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, condition, "spec", "tenantCondition")
		}, kubetest.WriteSpec)
		decides(want)
	}
	kubetest.Edit(t, first, func(o client.Object) {
		_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "Active", "spec", "tenantCondition")
	}, kubetest.WriteSpec)
	second := newTenant("second", authv1beta1.TenantConditionActive)
	decides(manyTenants)
	kubetest.Remove(t, second)
	decides(active)
	labels(nil)
	decides(wrongNamespace)
	labels(map[string]string{liqo.TenantNamespaceLabel: "true", liqo.RemoteClusterIDLabel: "rome"})
	decides(active)
	uninstall()
	decides(noTenant)
}

func TestStorageClassesAreFollowed(t *testing.T) {
	f := follow(t)
	storage := func(name string, annotations map[string]string) *unstructured.Unstructured {
		u := kubetest.Unstructured(t, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Provisioner: "example.com/p"})
		u.SetAPIVersion("storage.k8s.io/v1")
		u.SetKind("StorageClass")
		return kubetest.Create(t, u)
	}
	lists := func(want ...namedClass) {
		t.Helper()
		test.Eventually(t, func() string { return cmp.Diff(want, listStorage(f.storage.All()), comparing) })
	}
	slow := storage("slow", nil)
	fast := storage("fast", map[string]string{defaultStorageAnnotations[1]: "true"})
	lists(namedClass{"fast", true}, namedClass{"slow", false})
	kubetest.Edit(t, fast, func(o client.Object) { o.SetAnnotations(nil) }, kubetest.WriteSpec)
	lists(namedClass{"fast", false}, namedClass{"slow", false})
	kubetest.Remove(t, slow)
	lists(namedClass{"fast", false})
}

func TestOnlyWhatMattersOfASliceWakes(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, sliceCRD))
	f := follow(t)
	u := kubetest.CreateSlice(t, kubetest.Slice("s"))
	test.Eventually(t, func() string {
		if list := f.cache.list(); len(list) == 1 && list[0].authenticated {
			return ""
		}
		return "the slice is not known as authenticated"
	})
	before := f.woken.Load()
	for i := range 5 {
		kubetest.Edit(t, u, func(o client.Object) {
			o.SetAnnotations(map[string]string{"note": time.Duration(i).String()})
		}, kubetest.WriteSpec)
		kubetest.Edit(t, u, func(o client.Object) {
			_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, time.Duration(i).String(), "status", "authParams", "apiServer")
		}, kubetest.WriteStatus)
	}
	// The cache still has the newest version, which a write needs.
	test.Eventually(t, func() string { return cmp.Diff(u.GetResourceVersion(), f.cache.list()[0].version()) })
	if after := f.woken.Load(); after != before {
		t.Errorf("woken %d times by changes that affect no decision", after-before)
	}
	kubetest.Edit(t, u, func(o client.Object) {
		_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "8", "spec", "resources", "cpu")
	}, kubetest.WriteSpec)
	test.Eventually(t, func() string { return cmp.Diff(before+1, f.woken.Load()) })
	kubetest.Edit(t, u, func(o client.Object) { // A filter may read it.
		labels := o.GetLabels()
		labels["note"] = "new"
		o.SetLabels(labels)
	}, kubetest.WriteSpec)
	test.Eventually(t, func() string { return cmp.Diff(before+2, f.woken.Load()) })
}

// copyTo writes the answer to the object.
func (a sliceAnswer) copyTo(u *unstructured.Unstructured) { u.Object = a.writeTo(u, time.Now()).Object }

// answerOf reads the answer of a slice from the API server.
func answerOf(t *testing.T, slice *unstructured.Unstructured) sliceAnswer {
	t.Helper()
	u := slice.DeepCopy()
	test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(slice), u))
	return readAnswer(u)
}
