package interop

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	discovery "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	sharing "github.com/liqotech/liqo/apis/sharing/v1alpha1"
	requests "github.com/liqotech/liqo/pkg/liqo-controller-manager/resource-request-controller"
	monitors "github.com/liqotech/liqo/pkg/liqo-controller-manager/resource-request-controller/resource-monitors"
)

// asLiqo is the environment variable that makes the test program run Liqo's controller; its value
// is the address of the operator. The controller is a separate process because it has data races,
// for which the race detector would fail these tests.
const asLiqo = "PROFFER_INTEROP_AS_LIQO"

var provider = discovery.ClusterIdentity{ClusterID: "a1b2c3d4-0000-4000-8000-000000000001", ClusterName: "provider"}

// runLiqo runs the part of Liqo's controller-manager that makes offers, set up as in its main
// function.
func runLiqo() int {
	klog.InitFlags(flag.CommandLine)
	ctrl.SetLogger(klog.Background())
	ctx := ctrl.SetupSignalHandler()
	if err := liqoControllerManager(ctx, os.Getenv(asLiqo)); err != nil {
		klog.Error(err)
		return 1
	}
	return 0
}

func liqoControllerManager(ctx context.Context, plugin string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: liqoScheme(), MetricsBindAddress: "0"})
	if err != nil {
		return err
	}
	monitor, err := monitors.NewExternalMonitor(ctx, plugin, liqoConnects)
	if err != nil {
		return err
	}
	// Liqo's chart sets the threshold to 0 when there is a plugin.
	updater := requests.NewOfferUpdater(ctx, mgr.GetClient(), provider, nil, monitor, 0, "", false)
	reconciler := &requests.ResourceRequestReconciler{
		Client: mgr.GetClient(), Scheme: mgr.GetScheme(), HomeCluster: provider, OfferUpdater: updater,
		EnableIncomingPeering: true,
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := mgr.Add(updater); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func liqoScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(discovery.AddToScheme(scheme))
	utilruntime.Must(sharing.AddToScheme(scheme))
	return scheme
}

// resourceOffers returns what Liqo offers a consumer: amounts by the prefix of the virtual node and
// the resource.
func resourceOffers(ctx context.Context, c ctrlclient.Client, namespace string) (offers, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var list sharing.ResourceOfferList
	if err := c.List(ctx, &list, ctrlclient.InNamespace(namespace)); err != nil {
		return nil, err
	}
	all := offers{}
	for _, o := range list.Items {
		amounts := map[string]string{}
		for resource, quantity := range o.Spec.ResourceQuota.Hard {
			amounts[string(resource)] = quantity.String()
		}
		all[o.Spec.NodeNamePrefix] = amounts
		// The offer is named after the pool, and Liqo chooses the name of the virtual node.
		if want := o.Spec.NodeNamePrefix + "-" + provider.ClusterName; o.Spec.NodeName != "" || o.Name != want {
			return nil, fmt.Errorf("offer %s with node name %q: want %s without one", o.Name, o.Spec.NodeName, want)
		}
	}
	return all, nil
}

func TestLiqosControllerOffersWhatThePolicyOffers(t *testing.T) {
	whole := t // a process that a subtest starts must outlive the subtest
	// The CRDs of Liqo are installed while the operator runs, which must notice them.
	gold := func(cpu string) string {
		return fixed("gold", "gold", fmt.Sprintf("cpu: %q, memory: 2G, pods: 10", cpu))
	}
	apply(t, gold("2"))
	apply(t, policy("silver", `{class: silver, consumers: {selector: {matchLabels: {tier: silver}}}, `+
		`offer: {fixed: {cpu: "1", memory: 1Gi, pods: 5}}}`))
	operator := readyOperator(t)
	kubectl(t, "", "apply", "--server-side", "-f", programs.liqoCRDs)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
		defer cancel()
		// Do not wait for unused CRDs: the API server may take minutes to see that they have no
		// objects ("storage is (re)initializing").
		_, err := runKubectl(ctx, "", "delete", "--wait=false", "-f", programs.liqoCRDs)
		if err == nil {
			_, err = runKubectl(ctx, "", "wait", "--for=delete", "--timeout=60s", "crd/foreignclusters.discovery.liqo.io",
				"crd/resourcerequests.discovery.liqo.io", "crd/resourceoffers.sharing.liqo.io")
		}
		if err != nil {
			t.Error(err)
		}
	})
	kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "-f", programs.liqoCRDs)

	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asLiqo+"="+operator.grpc, "KUBECONFIG="+programs.kubeconfig)
	liqo := start(t, "Liqo's controller", cmd)
	c := liqoClient(t)
	offered := func(t *testing.T, namespace string, want offers) {
		t.Helper()
		await(t, "the ResourceOffers in "+namespace, func() error {
			if !liqo.alive() {
				t.Fatalf("Liqo ended: %v", liqo.err)
			}
			got, err := resourceOffers(t.Context(), c, namespace)
			if diff := cmp.Diff(want, got); err == nil && diff != "" {
				err = fmt.Errorf("the offers differ (-want +got):\n%s", diff)
			}
			return err
		})
	}

	for _, consumer := range []string{"rome", "oslo"} {
		// The namespace stays: no namespace controller could delete it.
		edit(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: liqo-tenant-"+consumer+"}\n")
		apply(t, resourceRequest(consumer))
	}
	pool := map[string]string{"cpu": "2", "memory": "2G", "pods": "10"}
	offered(t, "liqo-tenant-rome", offers{"gold": pool})
	offered(t, "liqo-tenant-oslo", offers{"gold": pool})

	t.Run("an edit of the policy changes the offers", func(t *testing.T) {
		edit(t, gold("3500m"))
		pool["cpu"] = "3500m"
		offered(t, "liqo-tenant-rome", offers{"gold": pool})
		offered(t, "liqo-tenant-oslo", offers{"gold": pool})
	})
	t.Run("a label on the ForeignCluster adds a pool for that consumer", func(t *testing.T) {
		kubectl(t, "", "label", "foreignclusters.discovery.liqo.io", "rome", "tier=silver")
		offered(t, "liqo-tenant-rome", offers{"gold": pool, "silver": {"cpu": "1", "memory": "1Gi", "pods": "5"}})
		offered(t, "liqo-tenant-oslo", offers{"gold": pool})
	})
	t.Run("without the label the pool is withdrawn as zeros", func(t *testing.T) {
		kubectl(t, "", "label", "foreignclusters.discovery.liqo.io", "rome", "tier-")
		offered(t, "liqo-tenant-rome", offers{"gold": pool, "silver": {"cpu": "0", "memory": "0", "pods": "0"}})
	})
	t.Run("an edit while the operator is down takes effect after its restart", func(t *testing.T) {
		operator.kill()
		edit(t, gold("7"))
		operator.start(whole)
		offered(t, "liqo-tenant-oslo", offers{"gold": {"cpu": "7", "memory": "2G", "pods": "10"}})
	})
	t.Run("deleting the policy withdraws the offers", func(t *testing.T) {
		remove(t, gold("7"))
		offered(t, "liqo-tenant-oslo", offers{"gold": {"cpu": "0", "memory": "0", "pods": "0"}})
	})
}

func liqoClient(t *testing.T) ctrlclient.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", programs.kubeconfig)
	must(t, err)
	c, err := ctrlclient.New(config, ctrlclient.Options{Scheme: liqoScheme()})
	must(t, err)
	return c
}

// resourceRequest renders the ResourceRequest that Liqo's replicator creates for a peering consumer
// in the tenant namespace.
func resourceRequest(consumer string) string {
	return fmt.Sprintf(`
apiVersion: discovery.liqo.io/v1alpha1
kind: ResourceRequest
metadata:
  name: provider
  namespace: liqo-tenant-%[1]s
  labels: {liqo.io/originID: %[1]s, liqo.io/replicated: "true"}
spec:
  clusterIdentity: {clusterID: %[1]s, clusterName: %[1]s}
  authUrl: https://%[1]s.example.org
`, consumer)
}
