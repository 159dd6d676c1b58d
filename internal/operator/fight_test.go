package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/controllers/catalog"
	"proffer.dev/proffer/internal/controllers/podsecurity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// contest is an object that another client writes as soon as the operator has restored it.
type contest struct {
	kind     string
	object   client.Object
	restored func() bool
	change   func()
	status   bool
	// least and most bound how often the other client gets to write in fightTime. On a busy machine the fight goes on
	// until it has written least times.
	least, most int
}

const fightTime = 6 * time.Second

// fight writes as soon as the object is restored, for some time, and returns how often it did.
func (c *contest) fight(ctx context.Context, api client.WithWatch, during time.Duration) (writes int, err error) {
	err = eachChange(ctx, api, c.object, during, func() error {
		if !c.restored() {
			return nil
		}
		c.change()
		write := kubetest.WriteSpec
		if c.status {
			write = kubetest.WriteStatus
		}
		err := write(ctx, api, c.object)
		if err == nil {
			writes++
		}
		return err
	}, func() bool { return writes >= c.least })
	return writes, err
}

// paced is a contest over an object that is restored less and less often: first after 50 ms, 50 ms, 100 ms ...
func paced(kind string, object client.Object, restored func() bool, change func()) *contest {
	return &contest{kind: kind, object: object, restored: restored, change: change, least: 5, most: 9}
}

// contestedList is a contest over a list of the operator, which is restored when it has all entries again.
func contestedList(list *v1alpha1.AdmissionParams, restored func() bool) *contest {
	return paced("AdmissionParams", list, restored, func() { list.Data = nil })
}

// contestedGrant is a contest over what is on record for a slice.
func contestedGrant(t *testing.T, namespace string, slice client.Object) *contest {
	t.Helper()
	grant := grantOf(t, namespace, slice)
	return paced("Grant", grant, func() bool { return grant.Spec.Resources.Cpu().Value() == 1 },
		func() { grant.Spec.Resources = nodestest.List("cpu", "9") })
}

// contestedCatalog has a contest over an Offer and the RoleBinding beside it. Both are restored once in 10 s.
func contestedCatalog(t *testing.T, api client.Client, namespace string) []*contest {
	t.Helper()
	offer := &v1alpha1.Offer{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gold"}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: catalog.OfferBinding.Name}}
	awaitObjects(t, api, offer, binding)
	t.Cleanup(func() {
		for _, object := range []client.Object{offer, binding} {
			test.Check(t, api.Delete(context.WithoutCancel(t.Context()), object))
		}
	})
	return []*contest{
		{
			kind: "Offer", object: offer, least: 1, most: 2,
			restored: func() bool { return offer.Status.ClusterID == "rome" }, change: func() { offer.Status.ClusterID = "other" },
		},
		{
			kind: "RoleBinding", object: binding, least: 1, most: 2,
			restored: func() bool { return len(binding.Subjects) > 0 }, change: func() { binding.Subjects = nil },
		},
	}
}

// contestedOrchestrations has a contest over what sends a namespace on, and over the statuses of an Orchestration that
// sends nothing and of a ProviderChoice. Each is restored at most once in a second. The operator must not run before the
// first call.
func contestedOrchestrations(t *testing.T) (contests func(client.Client) []*contest) {
	t.Helper()
	for _, name := range []string{"namespaceoffloadings", "virtualnodes"} {
		kubetest.Keep(t, controlplane.LiqoCRD(t, "offloading.liqo.io_"+name+".yaml"))
	}
	tenant := kubetest.CreateTenantNamespace(t, "lima")
	sent := kubetest.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "sent-", Labels: map[string]string{"liqo.io/remote-cluster-id": "lima"},
		Annotations: map[string]string{"liqo.io/managed-by-namespace-map": tenant.Name + "/turin", "liqo.io/original-name": "sent"},
	}})
	kubetest.Create(t, kubetest.OfLiqo(t, "offloading.liqo.io/v1beta1", "VirtualNode", &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Name: "milan", Namespace: metav1.NamespaceDefault}, Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan"},
	}))
	kubetest.Create(t, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": "milan"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
	of := func(name string, consumer v1alpha1.ClusterID) *v1alpha1.Orchestration {
		return kubetest.Create(t, &v1alpha1.Orchestration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.OrchestrationSpec{Consumers: &v1alpha1.Clusters{ClusterIDs: []v1alpha1.ClusterID{consumer}}},
		})
	}
	of("busy", "lima")
	choice := kubetest.Create(t, providerChoice(tenant.Name, v1alpha1.ChoiceName))
	idle, offloading := of("idle", "nobody"), &unstructured.Unstructured{}
	offloading.SetAPIVersion("offloading.liqo.io/v1beta1")
	offloading.SetKind("NamespaceOffloading")
	offloading.SetNamespace(sent.Name)
	offloading.SetName("offloading")
	return func(api client.Client) []*contest {
		awaitObjects(t, api, offloading)
		t.Cleanup(func() {
			test.Check(t, client.IgnoreNotFound(api.Delete(context.WithoutCancel(t.Context()), offloading)))
		})
		spec := offloading.DeepCopy().Object["spec"]
		return []*contest{
			{
				kind: "NamespaceOffloading", object: offloading, least: 4, most: 7,
				restored: func() bool { return equality.Semantic.DeepEqual(offloading.Object["spec"], spec) },
				change:   func() { kubetest.SetField(offloading, "LocalAndRemote", "spec", "podOffloadingStrategy") },
			},
			{
				kind: "Orchestration", object: idle, status: true, least: 4, most: 7,
				restored: func() bool { return len(idle.Status.Conditions) > 0 }, change: func() { idle.Status.Conditions = nil },
			},
			{
				kind: "ProviderChoice", object: choice, status: true, least: 4, most: 7,
				restored: func() bool { return len(choice.Status.Conditions) > 0 }, change: func() { choice.Status.Conditions = nil },
			},
		}
	}
}

// awaitObjects reads the objects as soon as they exist.
func awaitObjects(t *testing.T, api client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		test.Eventually(t, func() string {
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// restoreLog counts the lines about restores, by kind.
type restoreLog struct {
	mu    sync.Mutex
	lines map[string]int
}

func (l *restoreLog) logger() logr.Logger {
	return funcr.New(func(_, text string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, about, is := strings.Cut(text, "Another client changed "); is {
			_, kind, _ := strings.Cut(about, `"kind"="`)
			kind, _, _ = strings.Cut(kind, `"`)
			l.lines[cmp.Or(kind, "ResourceSlice")]++ // The line about answers has no kind.
		}
	}, funcr.Options{})
}

// Each bound is that of "Other writers" in docs/explanation/availability.md. A longer fight is that of the Pacer's own tests. All
// fights are at the same time, so that their number costs no time.
func TestOtherWritersAreFoughtWithinTheDocumentedBounds(t *testing.T) {
	installSliceCRDs(t)
	installCatalog(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "16Gi", "pods", "10")
	list, listing := newPlacements(t)
	served := &v1alpha1.AdmissionParams{ObjectMeta: metav1.ObjectMeta{Namespace: list.Namespace, Name: "served"}}
	policy := kubetest.Create(t, classGold(enforcing))
	const enforce = "pod-security.kubernetes.io/enforce"
	namespace := kubetest.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "contested-", Labels: map[string]string{"liqo.io/remote-cluster-id": "rome"},
		Annotations: map[string]string{"liqo.io/managed-by-namespace-map": "liqo-tenant-rome/milan"},
	}})
	orchestrated := contestedOrchestrations(t)
	rome := newTenancy(t, "rome")
	slice := rome.ask("s", nodestest.List("cpu", "2", "memory", "1Gi", "pods", "5"))
	recorded := rome.ask("recorded", nodestest.List("cpu", "1", "memory", "1Gi", "pods", "2"))

	log, metrics := restoreLog{lines: map[string]int{}}, prometheus.NewPedanticRegistry()
	launchLoggingOperator(t, kubetest.Cluster(t).Config, log.logger(), listing, publishing(t, 20), func(p *parts) {
		p.metrics, p.OffloadedPodSecurity, p.ServedClasses, p.OrchestrateAs = metrics, podsecurity.Level("baseline"), served.Name, "turin"
	})
	awaitAnswer(t, slice, "Accepted Granted cpu=2,memory=1Gi,pods=5")
	awaitAnswer(t, recorded, "Accepted Granted cpu=1,memory=1Gi,pods=2")
	awaitPlacements(t, list, map[string]string{creatorOf("s", "rome"): "pool=gold", creatorOf("recorded", "rome"): "pool=gold"})
	awaitList(t, served, map[string]string{"gold": servedByProffer})
	api := rbac(t)

	contests := []*contest{
		paced("Namespace", namespace, func() bool { return namespace.Labels[enforce] == "baseline" },
			func() { namespace.Labels[enforce] = "privileged" }),
		contestedList(list, func() bool {
			return len(list.Data) == 3 && list.Data[".complete"] == fmt.Sprintf("%s/%d", list.UID, list.Generation)
		}),
		contestedList(served, func() bool { return len(served.Data) == 1 }),
		contestedGrant(t, list.Namespace, recorded),
		{
			kind: "ResourcePolicy", object: policy, status: true, least: 1, most: 2,
			restored: func() bool { return policy.Status.Class == "gold" }, change: func() { policy.Status.Class = "other" },
		},
		{ // Its pauses do not grow: five at once, then one in each second.
			kind: "ResourceSlice", object: slice, status: true, least: 4 + int(fightTime/time.Second), most: 7 + int(fightTime/time.Second),
			restored: func() bool { return !strings.Contains(fmt.Sprint(slice.Object["status"]), "999") },
			change:   func() { kubetest.SetField(slice, map[string]any{"cpu": "999"}, "status", "resources") },
		},
	}
	contests = slices.Concat(contests, contestedCatalog(t, api, rome.namespace.Name), orchestrated(api))
	fightAll(t, api, contests, metrics, &log)
}

// fightAll fights all contests, and requires their bounds, the metric and one line in the log for each kind.
func fightAll(t *testing.T, api client.WithWatch, contests []*contest, metrics *prometheus.Registry, log *restoreLog) {
	t.Helper()
	errs, writes := make([]error, len(contests)), make([]int, len(contests))
	var all sync.WaitGroup
	for i, c := range contests {
		all.Go(func() { writes[i], errs[i] = c.fight(t.Context(), api, fightTime) })
	}
	all.Wait()
	test.Must(t, errors.Join(errs...))
	objects, changes := map[string]int{}, map[string]int{}
	for i, c := range contests {
		objects[c.kind]++
		changes[c.kind] += writes[i]
		if writes[i] > c.most {
			t.Errorf("%s: another client wrote %d times in %v, want at most %d", c.kind, writes[i], fightTime, c.most)
		}
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	for kind, n := range objects {
		restores := restoresOf(t, metrics, kind)
		if restores < changes[kind]-n || restores > changes[kind] {
			t.Errorf("%s: %d restores counted, %d writes of another client", kind, restores, changes[kind])
		}
		if log.lines[kind] > 1 || restores > 0 && log.lines[kind] == 0 {
			t.Errorf("%s: %d lines in the log about %d restores, want one", kind, log.lines[kind], restores)
		}
	}
}
