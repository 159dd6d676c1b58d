package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// ofPeers lets a policy offer what peers give.
func ofPeers(with ...func(*v1alpha1.Peers)) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer = v1alpha1.PolicyOffer{Peers: &v1alpha1.Peers{}}
		for _, f := range with {
			f(s.Offer.Peers)
		}
	}
}

// virtualNode creates a node as Liqo's virtual kubelet does.
func virtualNode(t *testing.T, name, peer string, quantities ...string) *corev1.Node {
	t.Helper()
	return kubetest.Create(t, nodestest.Node(name, nodestest.List(quantities...), func(n *corev1.Node) {
		n.Labels = map[string]string{"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": peer}
		n.Spec.Taints = []corev1.Taint{{Key: "virtual-node.liqo.io/not-allowed", Value: "true", Effect: corev1.TaintEffectNoExecute}}
	}))
}

// given creates the VirtualNode of a node, with the identity of a ResourceSlice.
func (y *tenancy) given(node, slice string) {
	y.t.Helper()
	kubetest.Create(y.t, kubetest.OfLiqo(y.t, "offloading.liqo.io/v1beta1", "VirtualNode", &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: y.namespace.Name},
		Spec: offloadingv1beta1.VirtualNodeSpec{
			ClusterID:           liqov1beta1.ClusterID(y.id),
			KubeconfigSecretRef: &corev1.LocalObjectReference{Name: "kubeconfig-resourceslice-" + slice},
		},
	}))
}

// requested creates a ResourceSlice with which this cluster asks the peer, and that was given some.
func (y *tenancy) requested(name string, quantities ...string) *unstructured.Unstructured {
	y.t.Helper()
	slice := kubetest.CreateSlice(y.t, kubetest.Slice(name, func(s *authv1beta1.ResourceSlice) {
		s.Namespace = y.namespace.Name
		s.Labels = map[string]string{
			"liqo.io/replication": "true", "liqo.io/remoteID": y.id, "liqo.io/remote-cluster-id": y.id,
		}
	}))
	y.give(slice, quantities...)
	return slice
}

func (y *tenancy) give(slice *unstructured.Unstructured, quantities ...string) {
	y.t.Helper()
	resources := map[string]any{}
	for name, q := range nodestest.List(quantities...) {
		resources[string(name)] = q.String()
	}
	kubetest.Edit(y.t, slice, func(o client.Object) { kubetest.SetField(o, resources, "status", "resources") }, kubetest.WriteStatus)
}

func TestABrokerResellsWhatPeersGive(t *testing.T) {
	installSliceCRDs(t)
	kubetest.Keep(t, controlplane.LiqoCRD(t, "offloading.liqo.io_virtualnodes.yaml"))
	kubetest.Create(t, nodestest.Node("own", nodestest.List("cpu", "64", "memory", "64Gi", "pods", "99")))
	milan, rome := newTenancy(t, "milan"), newTenancy(t, "rome")
	// Milan gave 5 cpu in one ResourceSlice, and each of its two virtual nodes lists them all.
	ofMilan := milan.requested("from-milan", "cpu", "5", "memory", "8Gi", "pods", "20")
	for _, name := range []string{"milan-1", "milan-2"} {
		virtualNode(t, name, "milan", "cpu", "5", "memory", "8Gi", "pods", "20")
		milan.given(name, "from-milan")
	}
	// Rome has its node labelled as one of Milan's, to be offered its own capacity.
	rome.requested("from-rome", "cpu", "3", "memory", "8Gi", "pods", "20")
	ofRome := virtualNode(t, "rome-1", "milan", "cpu", "3", "memory", "8Gi", "pods", "20")
	rome.given("rome-1", "from-rome")
	kubetest.Create(t, kubetest.Policy("resale", ofPeers(), inClass("gold")))
	kubetest.Create(t, kubetest.Policy("own", inClass("own")))

	o := startOperator(t)
	test.Eventually(o.t, func() string {
		return cmp.Diff([]int64{8000, 5000, 64000},
			[]int64{o.offered("oslo")["gold"]["cpu"], o.offered("rome")["gold"]["cpu"], o.offered("rome")["own"]["cpu"]})
	})
	test.Eventually(t, func() string { return cmp.Diff(v1alpha1.SourcePeers, statusOfPolicy(t, "resale").Source) })

	// Rome is not granted what it gives itself.
	own := rome.ask("s", nodestest.List("cpu", "20", "memory", "1Gi", "pods", "1"))
	awaitAnswer(t, own, "Accepted Capped cpu=5,memory=1Gi,pods=1")
	want := authv1beta1.ResourceSliceStatus{
		NodeLabels:   map[string]string{"proffer.dev/depth": "1"},
		NodeSelector: map[string]string{"liqo.io/type": "virtual-node"},
	}
	test.Eventually(t, func() string {
		got := answerOf(t, own).ResourceSliceStatus
		return cmp.Diff(want, authv1beta1.ResourceSliceStatus{NodeLabels: got.NodeLabels, NodeSelector: got.NodeSelector}, cmpopts.EquateEmpty())
	})
	ofOslo := newTenancy(t, "oslo").ask("s", nodestest.List("cpu", "20", "memory", "1Gi", "pods", "1"))
	awaitAnswer(t, ofOslo, "Accepted Capped cpu=3,memory=1Gi,pods=1")

	// What peers give less of is given out no longer. The older grant is kept, as far as others give it.
	milan.give(ofMilan, "cpu", "2", "memory", "8Gi", "pods", "20")
	awaitAnswer(t, own, "Accepted Capped cpu=2,memory=1Gi,pods=1")
	awaitAnswer(t, ofOslo, "Accepted Capped cpu=3,memory=1Gi,pods=1")

	// Liqo cordons a node before it drains it.
	kubetest.Edit(t, ofRome, func(n client.Object) { n.(*corev1.Node).Spec.Unschedulable = true }, kubetest.WriteSpec)
	test.Eventually(o.t, func() string { return cmp.Diff(int64(0), o.offered("lima")["gold"]["cpu"]) })
	test.Eventually(t, func() string {
		s := statusOfPolicy(t, "resale")
		return cmp.Diff("2", s.Capacity.Cpu().String())
	})
}

// What is resold by another cluster is resold on only as far as the policy says.
func TestABrokerCountsResoldCapacityUpToItsDepth(t *testing.T) {
	label := func(n *corev1.Node, depth string) *corev1.Node {
		kubetest.Edit(t, n, func(o client.Object) { o.GetLabels()["proffer.dev/depth"] = depth }, kubetest.WriteSpec)
		return n
	}
	virtualNode(t, "direct", "milan", "cpu", "1")
	label(virtualNode(t, "resold", "oslo", "cpu", "2"), "1")
	label(virtualNode(t, "resold-twice", "oslo", "cpu", "4"), "2")
	p := kubetest.Create(t, kubetest.Policy("resale", ofPeers()))
	o := startOperator(t)
	o.awaitOfferOf("rome", "cpu", 1000)
	editPolicy(t, p, ofPeers(func(p *v1alpha1.Peers) { p.Depth = new(int32(2)) }))
	o.awaitOfferOf("rome", "cpu", 3000)
	editPolicy(t, p, ofPeers(func(p *v1alpha1.Peers) { p.Depth, p.ClusterIDs = new(int32(8)), []v1alpha1.ClusterID{"oslo"} }))
	o.awaitOfferOf("rome", "cpu", 6000)
	editPolicy(t, p, ofPeers(func(p *v1alpha1.Peers) {
		p.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"liqo.io/remote-cluster-id": "milan"}}
	}))
	o.awaitOfferOf("rome", "cpu", 1000)
}
