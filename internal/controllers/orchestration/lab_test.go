package orchestration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// lab is a broker on a real API server with Liqo's CRDs. The test plays Liqo and the kubelets.
type lab struct {
	t        *testing.T
	admin    client.Client
	user     dynamic.Interface
	pods     client.Reader
	recorder *events.FakeRecorder
	// suffix ends the names of the namespaces of this test: without kube-controller-manager none ever
	// goes.
	suffix string

	mu  sync.Mutex
	now time.Time
	// federation is nil without Offers of providers.
	federation Federation
	// left is the number of writes until the operator is killed, below 0 for none.
	left int
}

// liqoCRDs are those that the writer reads.
var liqoCRDs = []string{
	"offloading.liqo.io_namespaceoffloadings.yaml", "offloading.liqo.io_virtualnodes.yaml", "networking.liqo.io_connections.yaml",
	"core.liqo.io_foreignclusters.yaml",
}

// newLab returns a lab with a tenant namespace of rome. By default it has all CRDs of Liqo, and the
// providers milan and oslo, else only these CRDs.
func newLab(t *testing.T, crds ...string) *lab {
	t.Helper()
	complete := len(crds) == 0
	config := kubetest.Cluster(t).Config
	scheme := kubetest.Scheme()
	for _, add := range []func() error{
		func() error { return offloadingv1beta1.AddToScheme(scheme) }, func() error { return rbacv1.AddToScheme(scheme) },
	} {
		test.Must(t, add())
	}
	if complete {
		for _, name := range liqoCRDs {
			kubetest.Keep(t, controlplane.LiqoCRD(t, name))
		}
	} else {
		kubetest.Without(t)
		for _, name := range crds {
			kubetest.Install(t, controlplane.LiqoCRD(t, name))
		}
	}
	l := &lab{
		t: t, recorder: events.NewFakeRecorder(1000), left: -1, now: time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC),
		suffix: fmt.Sprint(time.Now().UnixNano()),
	}
	var err error
	if l.admin, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	l.grantRights()
	user, err := kubetest.Cluster(t).UserConfig("orchestrator")
	test.Must(t, err)
	user.QPS = -1
	if l.user, err = dynamic.NewForConfig(user); err != nil {
		t.Fatal(err)
	}
	if l.pods, err = client.New(user, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	l.namespace("liqo-tenant-rome", map[string]string{liqo.TenantNamespaceLabel: "true", liqo.RemoteClusterIDLabel: "rome"}, nil)
	if complete {
		l.provider("milan", "0.02")
		l.provider("oslo", "0.03")
	}
	return l
}

// grantRights gives the user of the writer the rights of the component, and those of the default
// manifests that the component builds on.
func (l *lab) grantRights() {
	for _, file := range []string{"../../../config/rbac/role.yaml", "../../../config/components/orchestrator/role.yaml"} {
		text := test.Read(l.t, file)
		for document := range strings.SplitSeq(text, "\n---\n") {
			role := &rbacv1.ClusterRole{}
			test.Must(l.t, yaml.Unmarshal([]byte(document), role))
			if role.Kind != "ClusterRole" || role.Name == "proffer-provider-choice" {
				continue
			}
			l.create(role)
			l.create(&rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role.Name},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "orchestrator"}},
			})
		}
	}
}

// create creates an object until the end of the test.
func (l *lab) create(object client.Object) {
	l.t.Helper()
	test.Eventually(l.t, func() string {
		if err := l.admin.Create(l.t.Context(), object); err != nil {
			return err.Error()
		}
		return ""
	})
	nodestest.DeleteAfter(l.t, l.admin, object)
}

func (l *lab) named(name string) string { return name + "-" + l.suffix }

func (l *lab) namespace(name string, labels, annotations map[string]string) {
	l.t.Helper()
	l.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.named(name), Labels: labels, Annotations: annotations}})
}

// sent creates a namespace as Liqo does for one that rome has sent. It returns its name.
func (l *lab) sent(name, original string) string {
	l.t.Helper()
	l.namespace(name, map[string]string{liqo.RemoteClusterIDLabel: "rome"},
		map[string]string{liqo.ManagedByMapAnnotation: l.named("liqo-tenant-rome") + "/milan", liqo.OriginalNameAnnotation: original})
	return l.named(name)
}

// provider creates what Liqo has of a provider: a VirtualNode, its Node, and a ForeignCluster.
func (l *lab) provider(id, price string) {
	l.t.Helper()
	cluster := kubetest.ForeignCluster(l.t, id, id, nil)
	cluster.SetAnnotations(map[string]string{PriceAnnotation + "cpu": price})
	l.create(cluster)
	l.create(&offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: metav1.NamespaceDefault}, Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: clusterID(id)},
	})
	kubetest.Create(l.t, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: id, Labels: map[string]string{liqo.NodeTypeLabel: liqo.VirtualNodeType, liqo.RemoteClusterIDLabel: id}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	})
}

// setReady sets the condition of a provider's virtual node.
func (l *lab) setReady(id string, ready corev1.ConditionStatus) {
	l.t.Helper()
	kubetest.Edit(l.t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: id}}, func(o client.Object) {
		o.(*corev1.Node).Status.Conditions[0].Status = ready
	}, kubetest.WriteStatus)
}

// setPrice sets the price of a provider.
func (l *lab) setPrice(id, price string) {
	l.t.Helper()
	cluster := kubetest.ForeignCluster(l.t, id, id, nil)
	kubetest.Edit(l.t, cluster, func(o client.Object) {
		o.SetAnnotations(map[string]string{PriceAnnotation + "cpu": price})
	}, kubetest.WriteSpec)
}

// pod creates a running pod on a provider. The returned function ends it.
func (l *lab) pod(namespace, on string) (end func()) {
	l.t.Helper()
	pod := kubetest.Create(l.t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod-" + on, Namespace: namespace},
		Spec:       corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	})
	return func() { kubetest.Remove(l.t, pod) }
}

// orchestrate creates an Orchestration with the spec, which is YAML.
func (l *lab) orchestrate(name, spec string) *v1alpha1.Orchestration {
	l.t.Helper()
	o := &v1alpha1.Orchestration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	test.Must(l.t, yaml.UnmarshalStrict([]byte(spec), &o.Spec))
	l.create(o)
	return o
}

// clock returns the time of the lab.
func (l *lab) clock() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *lab) pass(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(d)
}

// holding lets the operator write until it is killed.
func (l *lab) holding() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left > 0 {
		l.left--
		return true
	}
	return l.left < 0
}

// run starts a writer, until the end of the test or until the returned function is called.
func (l *lab) run() (w *Writer, stop func()) {
	l.t.Helper()
	w = NewWriter(Config{
		ClusterID: "milano", Client: l.user, Pods: l.pods, Holding: l.holding, Recorder: l.recorder, Restores: restore.New(), Log: logr.Discard(),
		Now: l.clock, Federation: l.federation,
		Consumers: func() []offer.Consumer {
			return []offer.Consumer{{ID: "rome", Labels: map[string]string{"tier": "gold"}}}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		test.Check(l.t, w.Start(ctx))
	})
	stop = func() { cancel(); wg.Wait() }
	l.t.Cleanup(stop)
	return w, stop
}

// offloading returns the NamespaceOffloading of a namespace, nil for none.
func (l *lab) offloading(namespace string) *offloadingv1beta1.NamespaceOffloading {
	l.t.Helper()
	o := &offloadingv1beta1.NamespaceOffloading{}
	err := l.admin.Get(l.t.Context(), client.ObjectKey{Namespace: namespace, Name: offloadingName}, o)
	if client.IgnoreNotFound(err) != nil {
		l.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return o
}

// summary is what the tests compare: strategy, selector, and what is drained until when.
func (l *lab) summary(namespace string) string {
	l.t.Helper()
	o := l.offloading(namespace)
	if o == nil {
		return "none"
	}
	var values []string
	for _, term := range o.Spec.ClusterSelector.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			values = append(values, e.Key+" "+string(e.Operator)+" "+strings.Join(e.Values, "+"))
		}
	}
	text := fmt.Sprintf("%s %s: %s", o.Spec.NamespaceMappingStrategy, o.Spec.PodOffloadingStrategy, strings.Join(values, ", "))
	if draining := o.Annotations[drainingAnnotation]; draining != "" {
		text += "; draining " + draining
	}
	return text
}

// is compares a summary, in which the label is left out.
func (l *lab) is(namespace, want string) bool {
	l.t.Helper()
	return l.summary(namespace) == strings.Replace(want, " In ", " "+liqo.RemoteClusterIDLabel+" In ", 1)
}

// until waits for a summary.
func (l *lab) until(namespace, want string) {
	l.t.Helper()
	test.Eventually(l.t, func() string {
		if !l.is(namespace, want) {
			return fmt.Sprintf("got %q, want %q", l.summary(namespace), want)
		}
		return ""
	})
}

// present plays Liqo: the namespace exists on a provider.
func (l *lab) present(namespace string, ids ...string) {
	l.t.Helper()
	o := l.offloading(namespace)
	o.Status.RemoteNamespacesConditions = map[string]offloadingv1beta1.RemoteNamespaceConditions{}
	for _, id := range ids {
		o.Status.RemoteNamespacesConditions[id] = offloadingv1beta1.RemoteNamespaceConditions{
			{Type: offloadingv1beta1.NamespaceReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
		}
	}
	test.Must(l.t, l.admin.Status().Update(l.t.Context(), o))
}

// status waits for a status of an Orchestration, for which problem returns an empty text.
func (l *lab) status(name string, problem func(*v1alpha1.OrchestrationStatus) string) {
	l.t.Helper()
	test.Eventually(l.t, func() string {
		o := &v1alpha1.Orchestration{}
		if err := l.admin.Get(l.t.Context(), client.ObjectKey{Name: name}, o); err != nil {
			return err.Error()
		}
		text := problem(&o.Status)
		if text != "" {
			status, _ := json.MarshalIndent(o.Status, "", " ")
			text += "\n" + string(status)
		}
		return text
	})
}

// event waits for an Event with this text.
func (l *lab) event(text string) {
	l.t.Helper()
	var seen []string
	test.Eventually(l.t, func() string {
		for {
			select {
			case e := <-l.recorder.Events:
				seen = append(seen, e)
				continue
			default:
			}
			break
		}
		if slices.ContainsFunc(seen, func(e string) bool { return strings.Contains(e, text) }) {
			return ""
		}
		return fmt.Sprintf("no Event has %q: %q", text, seen)
	})
}
