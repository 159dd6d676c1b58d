package life

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	proffer "proffer.dev/proffer/internal/operator"
	"proffer.dev/proffer/test"
)

// cluster is a control plane with two API servers. Tests may freeze the first, and change objects
// through the second.
type cluster struct {
	*controlplane.Cluster
	t *testing.T
	// first and second are the addresses of the API servers.
	first, second string
	// api is a client of the second API server.
	api client.Client
}

// crds are the CRDs of the operator, and the one of Liqo that describes consumers.
var crds = []string{
	filepath.Join("..", "..", "config", "crd", "bases"),
	filepath.Join("..", "..", "internal", "operator", "testdata", "discovery.liqo.io_foreignclusters.yaml"),
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, Cluster: controlplane.StartTest(t, controlplane.Options{CRDDirs: crds})}
	second, err := c.AddAPIServer(t.Context())
	test.Must(c.t, err)
	c.first, c.second = c.address(c.Config), c.address(second)
	c.api, err = client.New(second, client.Options{Scheme: proffer.NewScheme()})
	test.Must(c.t, err)
	return c
}

func (c *cluster) address(config *rest.Config) string {
	c.t.Helper()
	url, _, err := rest.DefaultServerUrlFor(config)
	test.Must(c.t, err)
	return url.Host
}

// kubeconfig writes the administrator's kubeconfig with a changed cluster to a file and returns its
// path.
func (c *cluster) kubeconfig(change func(*clientcmdapi.Cluster)) string {
	c.t.Helper()
	config, err := clientcmd.Load(c.Kubeconfig)
	test.Must(c.t, err)
	for _, to := range config.Clusters {
		change(to)
	}
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	test.Must(c.t, clientcmd.WriteToFile(*config, path))
	return path
}

func quantities(cpu string) v1alpha1.Quantities {
	return v1alpha1.Quantities{
		"cpu": {Quantity: resource.MustParse(cpu)}, "memory": {Quantity: resource.MustParse("1Gi")},
		"pods": {Quantity: resource.MustParse("10")},
	}
}

func allocatable(cpu string) map[string]any {
	return map[string]any{"status": map[string]any{
		"allocatable": map[string]string{"cpu": cpu, "memory": "8Gi", "pods": "110"},
		"conditions":  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
}

// patch returns a merge patch with this content.
func (c *cluster) patch(of map[string]any) client.Patch {
	c.t.Helper()
	text, err := json.Marshal(of)
	test.Must(c.t, err)
	return client.RawPatch(types.MergePatchType, text)
}

// populate creates a node of 8 cpu that is offered, a class gold of 1 cpu, and a class silver for
// consumers with a label that rome does not have.
func (c *cluster) populate(ctx context.Context) {
	c.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	test.Must(c.t, c.api.Create(ctx, n))
	// The API server taints each new node as not ready.
	test.Must(c.t, c.api.Patch(ctx, n, c.patch(map[string]any{"spec": map[string]any{"taints": nil}})))
	test.Must(c.t, c.api.Status().Patch(ctx, n, c.patch(allocatable("8"))))
	test.Must(c.t, c.api.Create(ctx, aForeignCluster()))
	for name, spec := range map[string]v1alpha1.ResourcePolicySpec{
		"nodes": {Offer: v1alpha1.PolicyOffer{Nodes: &v1alpha1.Nodes{}}},
		"gold":  {Class: "gold", Offer: v1alpha1.PolicyOffer{Fixed: quantities("1")}},
		"silver": {
			Class: "silver", Offer: v1alpha1.PolicyOffer{Fixed: quantities("5")},
			Consumers: &v1alpha1.Consumers{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "silver"}}},
		},
	} {
		test.Must(c.t, c.api.Create(ctx, &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}))
	}
}

func aForeignCluster() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "discovery.liqo.io/v1alpha1", "kind": "ForeignCluster", "metadata": map[string]any{"name": "rome"},
		"spec": map[string]any{"clusterIdentity": map[string]any{"clusterID": "rome"}},
	}}
}

// change makes one change for each kind of watch: the node has 2 cpu, class gold 3, and rome gets
// the label of silver.
func (c *cluster) change(ctx context.Context) {
	c.t.Helper()
	test.Must(c.t, c.api.Status().Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, c.patch(allocatable("2"))))
	gold := &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: "gold"}}
	fixed := map[string]any{"fixed": map[string]string{"cpu": "3"}}
	test.Must(c.t, c.api.Patch(ctx, gold, c.patch(map[string]any{"spec": map[string]any{"offer": fixed}})))
	labels := map[string]any{"labels": map[string]string{"tier": "silver"}}
	test.Must(c.t, c.api.Patch(ctx, aForeignCluster(), c.patch(map[string]any{"metadata": labels})))
}

// syncTimeout is for what takes seconds on an idle machine.
const syncTimeout = 2 * time.Minute
