package command

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/operator"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/nodestest"
	"proffer.dev/proffer/test/process"
)

// multitenant is a provider with two consumers, rome and oslo, that do not trust each other. They
// have the rights that Liqo gives them, and no others.
type multitenant struct {
	t       *testing.T
	cluster *controlplane.Cluster
	guarded bool
	// admin acts as the provider's admin, and as Liqo.
	admin     client.Client
	consumers map[string]client.Client
	history   *history
	operator  *process.Process
	made      int
}

// spare is a class that has room whatever happens in other classes.
const spare = "spare"

// answerTimeout is the timeout of a condition that a test waits for.
const answerTimeout = time.Minute

// quietPeriod is how long a test watches for something that must not happen, after everything that
// must happen has.
const quietPeriod = 1500 * time.Millisecond

// withAndWithoutGuards runs the test twice in parallel, with the admission policies of config and
// without them. Each run starts with a cluster that has two Tenants, the class spare, and no
// operator yet.
func withAndWithoutGuards(t *testing.T, test func(t *testing.T, m *multitenant)) {
	for _, guarded := range []bool{false, true} {
		name := "without the guards"
		if guarded {
			name = "with the guards"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newMultitenant(t, guarded))
		})
	}
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := operator.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{authv1beta1.AddToScheme, clientgoscheme.AddToScheme} {
		test.Must(t, add(scheme))
	}
	return scheme
}

func newMultitenant(t *testing.T, guarded bool) *multitenant {
	t.Helper()
	cluster := isolationClusterOf(t, guarded)
	m := &multitenant{t: t, cluster: cluster, guarded: guarded, consumers: map[string]client.Client{}}
	var err error
	if m.admin, err = client.New(cluster.Config, client.Options{Scheme: newScheme(t)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		test.Check(t, empty(context.WithoutCancel(t.Context()), cluster.Config, m.admin))
	})
	watching, err := dynamic.NewForConfig(cluster.Config)
	test.Must(t, err)
	m.history = newHistory(t, watching)
	for _, id := range []string{"rome", "oslo"} {
		m.consumers[id] = asConsumer(t, cluster.Config, id)
		m.create(tenantOf(id))
	}
	m.node(spare, "1000")
	m.createPolicy(spare)
	return m
}

func (m *multitenant) create(o client.Object) {
	m.t.Helper()
	test.Must(m.t, m.admin.Create(m.t.Context(), o))
}

// start runs an operator, which leads before start returns.
func (m *multitenant) start() {
	m.t.Helper()
	before := m.holder()
	m.operator = startProcessIn(m.t, m.cluster, operatorNamespace, "--served-classes=proffer-served-classes")
	test.EventuallyWithin(m.t, answerTimeout, func() error {
		requireAlive(m.t, m.operator)
		if holder := m.holder(); holder == "" || holder == before {
			return fmt.Errorf("the Lease has the holder %q", holder)
		}
		return nil
	})
}

// kill ends the operator with SIGKILL.
func (m *multitenant) kill() {
	m.t.Helper()
	test.Must(m.t, m.operator.Kill())
}

func (m *multitenant) restart() {
	m.t.Helper()
	m.kill()
	m.start()
}

func (m *multitenant) holder() string {
	var l coordinationv1.Lease
	key := client.ObjectKey{Namespace: operatorNamespace, Name: operator.LeaderElectionID}
	if err := m.admin.Get(m.t.Context(), key, &l); err != nil || l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// node creates the node of a class, which has the class as its label pool.
func (m *multitenant) node(class, cpu string) {
	m.t.Helper()
	resources := nodestest.List("cpu", cpu, "memory", "1Ti", "pods", "500")
	nodestest.Create(m.t, m.admin, nodestest.Node("node-"+class, resources, nodestest.NodeLabel("pool", class)))
}

// createPolicy creates the policy of a class, with the name of the class. It offers the nodes of
// the class.
func (m *multitenant) createPolicy(class string, with ...func(*v1alpha1.ResourcePolicySpec)) {
	m.t.Helper()
	m.create(policyFor(class, with...))
}

// startWithGold starts the operator with the class gold, on a node with 8 cpu, and checks that the
// operator never grants more.
func (m *multitenant) startWithGold() {
	m.t.Helper()
	m.node("gold", "8")
	m.createPolicy("gold")
	m.history.setBounds("gold", 8000, 0)
	m.start()
}

func policyFor(class string, with ...func(*v1alpha1.ResourcePolicySpec)) *v1alpha1.ResourcePolicy {
	p := &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: v1alpha1.ResourcePolicySpec{
		Class: class, UpdateThresholdPercent: new(int32),
		Offer: v1alpha1.PolicyOffer{
			Nodes: &v1alpha1.Nodes{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": class}}},
		},
	}}
	for _, f := range with {
		f(&p.Spec)
	}
	return p
}

func withMax(cpu string) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = cpuQuantities(cpu) }
}

func withEvict(s *v1alpha1.ResourcePolicySpec) { s.Reclaim = v1alpha1.ReclaimEvict }

func cpuQuantities(cpu string) v1alpha1.Quantities {
	return v1alpha1.Quantities{"cpu": {Quantity: resource.MustParse(cpu)}}
}

func (m *multitenant) editPolicy(class string, spec object) {
	m.t.Helper()
	test.Must(m.t, m.admin.Patch(m.t.Context(), &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: class}},
		patchOf(object{"spec": spec})))
}

func (m *multitenant) deletePolicy(class string) {
	m.t.Helper()
	test.Must(m.t, m.admin.Delete(m.t.Context(), &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: class}}))
}

// awaitGrant waits until the slice has this much cpu accepted in its current class, or is denied if
// cpu is 0.
func (m *multitenant) awaitGrant(key, cpu string) {
	m.t.Helper()
	q := resource.MustParse(cpu)
	m.await(key, func(s sliceState) error {
		if s.status == "" || s.granted[0] != q.MilliValue() {
			return fmt.Errorf("%s is %s with %d: %s", key, s.status, s.granted[0], s.message)
		}
		return nil
	})
}

func (m *multitenant) await(key string, is func(sliceState) error) {
	m.t.Helper()
	test.EventuallyWithin(m.t, answerTimeout, func() error {
		s, err := m.get(key)
		if err != nil {
			return err
		}
		return is(sliceStateOf(s))
	})
}

// awaitAnswer waits until the slice has an answer.
func (m *multitenant) awaitAnswer(key string) {
	m.t.Helper()
	m.await(key, func(s sliceState) error {
		if s.status == "" {
			return fmt.Errorf("%s has no answer yet", key)
		}
		return nil
	})
}

// awaitClass waits until the operator has answered the slice in this class.
func (m *multitenant) awaitClass(key, class string) {
	m.t.Helper()
	test.EventuallyWithin(m.t, answerTimeout, func() error {
		m.history.mu.Lock()
		defer m.history.mu.Unlock()
		if p := m.history.promised[key]; p.class != class {
			return fmt.Errorf("%s was last answered in class %q", key, p.class)
		}
		return nil
	})
}

// awaitProbe creates a slice and waits for its answer. By then the operator has looked at
// everything that existed before.
func (m *multitenant) awaitProbe() {
	m.t.Helper()
	m.made++
	m.awaitGrant(m.ask("oslo", fmt.Sprintf("probe-%d", m.made), spare, "1m"), "1m")
}

// waiting creates a pod of the consumer's slice that is not bound yet.
func (m *multitenant) waiting(class, id, slice, cpu string) *corev1.Pod {
	m.t.Helper()
	pod := m.podOn(class, cpu)
	pod.Spec.NodeName = ""
	pod.Labels = map[string]string{"offloading.liqo.io/origin": id, "liqo.io/creator-user": creatorOf(id, slice)}
	m.create(pod)
	return pod
}

// accepted creates a ShadowPod of a slice, as its consumer does, and returns the pod that Liqo is to make of it.
func (m *multitenant) accepted(class, id, slice, cpu string) *corev1.Pod {
	m.t.Helper()
	pod := m.podOn(class, cpu)
	pod.Spec.NodeName = ""
	pod.Labels = map[string]string{"offloading.liqo.io/origin": id, "liqo.io/creator-user": creatorOf(id, slice)}
	shadow := shadowOf(m.t, pod)
	// The guard of ShadowPods leaves out the users of Kubernetes' own.
	config := rest.CopyConfig(m.cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:liqo", Groups: []string{"system:masters"}}
	liqo, err := client.New(config, client.Options{Scheme: m.admin.Scheme()})
	test.Must(m.t, err)
	test.Must(m.t, liqo.Create(m.t.Context(), shadow))
	test.Must(m.t, controllerutil.SetControllerReference(shadow, pod, m.admin.Scheme()))
	return pod
}

// shadowOf returns the ShadowPod that Liqo makes a pod from.
func shadowOf(t *testing.T, pod *corev1.Pod) *unstructured.Unstructured {
	t.Helper()
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod.Spec)
	test.Must(t, err)
	shadow := &unstructured.Unstructured{Object: object{"spec": object{"pod": spec}}}
	shadow.SetGroupVersionKind(liqo.ShadowPods.GroupVersion().WithKind("ShadowPod"))
	shadow.SetNamespace(pod.Namespace)
	shadow.SetName(pod.Name)
	shadow.SetLabels(pod.Labels)
	return shadow
}

// bind binds a pod to the node of a class, as the scheduler does. One that is only accepted is created before.
func (m *multitenant) bind(pod *corev1.Pod, class string) {
	m.t.Helper()
	if pod.UID == "" {
		m.create(pod)
	}
	test.Must(m.t, m.admin.SubResource("binding").Create(m.t.Context(), pod, &corev1.Binding{
		Target: corev1.ObjectReference{Kind: "Node", Name: "node-" + class},
	}))
}

func (m *multitenant) podOn(class, cpu string) *corev1.Pod {
	m.made++
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", m.made), Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{NodeName: "node-" + class, Containers: []corev1.Container{{
			Name: "main", Image: "image",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
			},
		}}},
	}
}

// awaitCounted adds pods to the history once the operator has seen them: it has then seen another
// pod that was created after them.
func (m *multitenant) awaitCounted(pods ...*corev1.Pod) {
	m.t.Helper()
	var before string
	test.EventuallyWithin(m.t, answerTimeout, func() error {
		if before = m.offered(spare); before == "" {
			return errors.New("nothing is offered yet")
		}
		return nil
	})
	own := m.podOn(spare, "1")
	m.create(own)
	test.EventuallyWithin(m.t, answerTimeout, func() error {
		if m.offered(spare) == before {
			return errors.New("the operator has not seen all pods yet")
		}
		return nil
	})
	for _, pod := range pods {
		m.history.addPods(pod.Labels["liqo.io/creator-user"],
			pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue())
	}
}

// offered returns the cpu that oslo is offered of the class over gRPC.
func (m *multitenant) offered(class string) string {
	m.t.Helper()
	connection, err := grpc.NewClient(m.operator.Address("grpc"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	test.Must(m.t, err)
	defer func() { _ = connection.Close() }()
	answer, err := wire.NewResourceReaderClient(connection).ReadResources(m.t.Context(),
		&wire.ClusterIdentity{ClusterID: "oslo"}, grpc.WaitForReady(true))
	test.Must(m.t, err)
	for _, pool := range answer.GetResourceLists() {
		if pool.GetPoolPrefix() == class {
			return pool.GetResources()["cpu"].GetString_()
		}
	}
	return ""
}

// end deletes pods as if they had ended. It updates the history first: until the operator sees the
// deletion, it grants less than it could.
func (m *multitenant) end(pods ...*corev1.Pod) {
	m.t.Helper()
	for _, pod := range pods {
		m.history.addPods(pod.Labels["liqo.io/creator-user"],
			-pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue())
		for _, owner := range pod.OwnerReferences {
			shadow := &unstructured.Unstructured{}
			shadow.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
			shadow.SetNamespace(pod.Namespace)
			shadow.SetName(owner.Name)
			test.Must(m.t, m.admin.Delete(m.t.Context(), shadow))
		}
		test.Must(m.t, m.admin.Delete(m.t.Context(), pod, client.GracePeriodSeconds(0)))
	}
}

// delete deletes a slice as its consumer.
func (m *multitenant) delete(key string) {
	m.t.Helper()
	s, err := m.get(key)
	test.Must(m.t, err)
	test.Must(m.t, m.consumers[ownerOf(key)].Delete(m.t.Context(), s))
}

// consistently fails the test if the operator ends or a condition returns an error within the
// duration.
func (m *multitenant) consistently(during time.Duration, conditions ...func() error) {
	m.t.Helper()
	test.Consistently(m.t, during, func() error {
		for _, condition := range append(conditions, m.operator.Alive) {
			if err := condition(); err != nil {
				return err
			}
		}
		return nil
	})
}
