package deploy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	rr "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/proto/resourcereader/flat"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/nodestest"
)

// TestTheServiceAccountMayDoAllThatTheOperatorDoes covers every request that the operator makes to
// the API server. It runs as the ServiceAccount of config/default, with the arguments of its
// Deployment.
func TestTheServiceAccountMayDoAllThatTheOperatorDoes(t *testing.T) {
	o := start(t, append(container(t, deployment(t, render(t, "flat"))).Args, "--catalog-bind-address=127.0.0.1:0", "--catalog-anonymous"))
	o.AwaitReady(t)

	// Liqo is installed after the operator has started.
	for _, crd := range apply(t, "liqo-crds.yaml") {
		awaitServed(t, servedKinds(t, crd)[0])
	}
	apply(t, "liqo-peers.yaml")
	node(t)
	apply(t, "policies.yaml")

	t.Run("each kind of object reaches the offers", func(t *testing.T) {
		for id, want := range map[string]amounts{
			"rome": {"cpu": 1000, "memory": gib, "pods": 1000},
			"oslo": {"cpu": 2000, "memory": gib, "pods": 2000},
			"bern": {"cpu": 3000, "memory": gib, "pods": 3000},
			// Half of the node's 8 cpu less the 2 of its local pod.
			"lima": {"cpu": 3000, "memory": 4 * gib, "pods": 4000},
		} {
			test.Eventually(t, func() error {
				got, err := readPools(t, o.Address("grpc"), id)
				return differ(want, got, err)
			})
			test.Eventually(t, func() error {
				got, err := readFlat(t, o.Address("grpc-flat"), id)
				return differ(want, got, err)
			})
		}
	})
	t.Run("statuses are written", func(t *testing.T) {
		for _, name := range []string{"by-foreigncluster", "by-old-foreigncluster", "by-tenant", "by-nodes"} {
			awaitReady(t, name)
		}
	})
	t.Run("the offered resources are recorded", func(t *testing.T) {
		test.Eventually(t, func() error {
			var record corev1.ConfigMap
			key := client.ObjectKey{Namespace: namespace, Name: "proffer-offered"}
			if err := cluster.client.Get(t.Context(), key, &record); err != nil {
				return err
			}
			if got, want := record.Data["offered.json"], `{"":["cpu","memory","pods"]}`; got != want {
				return fmt.Errorf("%s, want %s", got, want)
			}
			return nil
		})
	})
	t.Run("events are recorded", func(t *testing.T) {
		test.Eventually(t, func() error {
			var events eventsv1.EventList
			if err := cluster.client.List(t.Context(), &events); err != nil {
				return err
			}
			if !slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
				return e.Regarding.Kind == "ResourcePolicy" && e.Regarding.Name == "no-nodes" && e.Reason == v1alpha1.ReasonNoNodes
			}) {
				return fmt.Errorf("none of %d Events reports NoNodes for the policy no-nodes", len(events.Items))
			}
			return nil
		})
	})
	t.Run("metrics need permission", func(t *testing.T) {
		testReaders(t, "https://"+o.Address("metrics")+"/metrics", "proffer-metrics-reader", "prometheus")
	})
	t.Run("explanations need permission", func(t *testing.T) {
		testReaders(t, "https://"+o.Address("metrics")+"/offers/rome", "proffer-offers-reader", "curious")
	})
	t.Run("the clusters and the catalog need permission, each its own", func(t *testing.T) {
		testReaders(t, "https://"+o.Address("metrics")+"/api/clusters", "proffer-clusters-reader", "cartographer")
		testReaders(t, "https://"+o.Address("metrics")+"/api/catalog/rome", "proffer-catalog-reader", "shopper")
		testOutside(t, "http://"+o.Address("catalog"))
	})
	t.Run("the accounts of kubectl-proffer may do what it does, with a token in a header that is proxied", func(t *testing.T) {
		testPluginAccounts(t, "https://"+o.Address("metrics"))
	})
	t.Run("the lease is held, and released at the end", func(t *testing.T) {
		lease := leaderLease(t)
		if ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
			t.Error("the lease has no holder")
		}
		test.Must(t, o.Stop(gracefulStop))
		if holder := ptr.Deref(leaderLease(t).Spec.HolderIdentity, ""); holder != "" {
			t.Errorf("%q still holds the lease: the next leader would have to wait until it expires", holder)
		}
	})
	o.requireAllowed(t)
}

// testOutside asks at the listener for callers from outside. The accounts are those of testReaders.
func testOutside(t *testing.T, url string) {
	t.Helper()
	cartographer, shopper := tokenOf(t, namespace, "cartographer"), tokenOf(t, namespace, "shopper")
	for _, c := range []struct {
		name, path, token string
		want              int
		text              string
	}{
		{"a stranger", "/api/clusters", "", http.StatusOK, `"clusterID":"rome"`},
		{"a stranger", "/api/catalog", "", http.StatusOK, `{"classes":[`},
		{"a stranger", "/api/catalog/rome", "", http.StatusUnauthorized, `"status":401`},
		{"a stranger", "/offers", "", http.StatusNotFound, `"status":404`},
		{"the reader of clusters", "/api/clusters?version=native", cartographer, http.StatusOK, `"core.liqo.io/v1beta1"`},
		{"the reader of clusters", "/api/catalog", cartographer, http.StatusForbidden, `"status":403`},
		{"the reader of the catalog", "/api/catalog", shopper, http.StatusOK, `"clusterID":"rome"`},
		{"the reader of the catalog", "/api/clusters", shopper, http.StatusForbidden, `"status":403`},
	} {
		test.Eventually(t, func() error {
			status, body, err := ask(t, http.MethodGet, url+c.path, bearer(c.token), http.NoBody)
			if err == nil && (status != c.want || !strings.Contains(body, c.text)) {
				err = fmt.Errorf("%s gets %d %s from %s, want %d and %s", c.name, status, body, c.path, c.want, c.text)
			}
			return err
		})
	}
}

// testReaders requests the URL without a token, with an invalid one, and as two accounts of which
// only the reader has the role.
func testReaders(t *testing.T, url, role, reader string) {
	t.Helper()
	other := "not-" + reader
	for _, account := range []string{other, reader} {
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
		create(t, sa)
	}
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deploy-test-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: reader}},
	})
	equals := func(status int) func(int) bool { return func(got int) bool { return got == status } }
	for _, c := range []struct {
		caller, token string
		want          func(status int) bool
	}{
		{"no token", "", equals(http.StatusUnauthorized)},
		// controller-runtime's filter answers an unverifiable token with an unspecified error
		// status.
		{"an invalid token", "not.a.token", func(status int) bool { return status >= 400 }},
		{"an account without the role", tokenOf(t, namespace, other), equals(http.StatusForbidden)},
		{reader, tokenOf(t, namespace, reader), equals(http.StatusOK)},
	} {
		// The API server's authorizer learns of the new binding from a watch.
		test.Eventually(t, func() error {
			got, _, err := ask(t, http.MethodGet, url, bearer(c.token), http.NoBody)
			if err == nil && !c.want(got) {
				err = fmt.Errorf("%s: status %d", c.caller, got)
			}
			return err
		})
	}
}

// testPluginAccounts asks with tokens in Authorization and in X-Proffer-Token, once the API server knows all roles.
func testPluginAccounts(t *testing.T, url string) {
	t.Helper()
	create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nobody"}})
	reader, simulator, nobody := tokenOf(t, namespace, "proffer-reader"), tokenOf(t, namespace, "proffer-simulator"), tokenOf(t, namespace, "nobody")
	header := func(tokens ...string) http.Header { return http.Header{rest.TokenHeader: tokens} }
	both := func(authorization, token string) http.Header {
		return http.Header{"Authorization": {authorization}, rest.TokenHeader: {token}}
	}
	for _, c := range []struct {
		name, method, path string
		header             http.Header
		want               int
	}{
		{"no token", "GET", "/offers", nil, http.StatusUnauthorized},
		{"an empty token", "GET", "/offers", header(""), http.StatusUnauthorized},
		{"two tokens", "GET", "/offers", header(reader, reader), http.StatusUnauthorized},
		{"a token that is too long", "GET", "/offers", header(strings.Repeat("x", 17<<10)), http.StatusUnauthorized},
		{"nobody", "GET", "/offers", header(nobody), http.StatusForbidden},
		{"the reader", "GET", "/offers", header(reader), http.StatusOK},
		{"the reader of one", "GET", "/offers/rome", header(reader), http.StatusOK},
		{"the reader of a catalog", "GET", "/api/catalog/rome", header(reader), http.StatusOK},
		{"the reader of a page", "GET", "/ui/catalog/rome", header(reader), http.StatusOK},
		{"nobody, of a page", "GET", "/ui/catalog/rome", header(nobody), http.StatusForbidden},
		{"the reader of clusters", "GET", "/api/clusters", header(reader), http.StatusForbidden},
		{"the reader of metrics", "GET", "/metrics", header(reader), http.StatusForbidden},
		{"the reader of snapshots", "GET", "/snapshot", header(reader), http.StatusForbidden},
		{"the reader who simulates", "POST", "/simulate", header(reader), http.StatusForbidden},
		{"the reader who posts", "POST", "/offers", header(reader), http.StatusForbidden},
		{"the simulator", "POST", "/simulate", header(simulator), http.StatusOK},
		{"the simulator of a page", "GET", "/ui/catalog/rome", header(simulator), http.StatusOK},
		{"the simulator of snapshots", "GET", "/snapshot", header(simulator), http.StatusOK},
		{"the simulator by Authorization", "POST", "/simulate", bearer(simulator), http.StatusOK},
		{"both, Authorization without the right", "POST", "/simulate", both("Bearer "+nobody, simulator), http.StatusForbidden},
		{"both, Authorization with the right", "POST", "/simulate", both("Bearer "+simulator, nobody), http.StatusOK},
		{"both, an empty Authorization", "POST", "/simulate", both("", simulator), http.StatusUnauthorized},
	} {
		test.Eventually(t, func() error {
			status, _, err := ask(t, c.method, url+c.path, c.header.Clone(), strings.NewReader("{}"))
			if err == nil && status != c.want {
				err = fmt.Errorf("%s gets status %d, want %d", c.name, status, c.want)
			}
			return err
		})
	}
}

// bearer returns the header with a token, unless that is empty.
func bearer(token string) http.Header {
	if token == "" {
		return nil
	}
	return http.Header{"Authorization": {"Bearer " + token}}
}

// ask sends a request to the operator, which signs its certificate itself, and returns the answer.
func ask(t *testing.T, method, url string, header http.Header, body io.Reader) (status int, text string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		return 0, "", err
	}
	request.Header = header
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), errors.Join(err, response.Body.Close())
}

// node creates a node with 8 cpu and a local pod that requests 2 of them.
func node(t *testing.T) {
	t.Helper()
	create(t, nodestest.Node("deploy-test", nodestest.List("cpu", "8", "memory", "8Gi", "pods", "9"), nodestest.NodeLabel("pool", "deploy-test")))
	create(t, nodestest.Pod("deploy-test", "deploy-test", nodestest.List("cpu", "2")))
}

func create(t *testing.T, obj client.Object) {
	t.Helper()
	nodestest.Create(t, cluster.client, obj)
	remove(t, obj)
}

// apply applies a file of testdata and deletes its objects at the end of the test.
func apply(t *testing.T, file string) rendered {
	t.Helper()
	objects, err := controlplane.ReadObjects("testdata/" + file)
	test.Must(t, err)
	for _, u := range objects {
		t.Cleanup(func() { awaitGone(t, u.DeepCopy()) })
		remove(t, u)
	}
	put(t, strict(), objects)
	return objects
}

// awaitReady waits until the policy's status is current and Ready is True.
func awaitReady(t *testing.T, name string) {
	t.Helper()
	test.Eventually(t, func() error {
		var p v1alpha1.ResourcePolicy
		if err := cluster.client.Get(t.Context(), client.ObjectKey{Name: name}, &p); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Status != metav1.ConditionTrue || p.Status.ObservedGeneration != p.Generation {
			return fmt.Errorf("policy %s is at generation %d, its status at %d with %+v", name, p.Generation,
				p.Status.ObservedGeneration, c)
		}
		return nil
	})
}

func leaderLease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	var leases coordinationv1.LeaseList
	test.Must(t, cluster.client.List(t.Context(), &leases, client.InNamespace(namespace)))
	if len(leases.Items) != 1 {
		t.Fatalf("there are %d leases in %s, want 1", len(leases.Items), namespace)
	}
	return &leases.Items[0]
}

const gib = 1000 << 30 // in milli

// amounts are what a consumer is offered, in thousandths.
type amounts map[string]int64

// readPools reads the consumer's offer, which must have exactly one pool.
func readPools(t *testing.T, addr, id string) (amounts, error) {
	return call(addr, func(conn *grpc.ClientConn) (map[string]*rr.Quantity, error) {
		reply, err := rr.NewResourceReaderClient(conn).ReadResources(t.Context(), &rr.ClusterIdentity{ClusterID: id})
		if err != nil {
			return nil, err
		}
		if n := len(reply.GetResourceLists()); n != 1 {
			return nil, fmt.Errorf("%s is offered %d pools, want 1", id, n)
		}
		return reply.GetResourceLists()[0].GetResources(), nil
	})
}

func readFlat(t *testing.T, addr, id string) (amounts, error) {
	return call(addr, func(conn *grpc.ClientConn) (map[string]*rr.Quantity, error) {
		// On the wire the service has no package name, but the generated client of package flat
		// would send one.
		var reply flat.ResourceList
		err := conn.Invoke(t.Context(), rr.ResourceReader_ReadResources_FullMethodName,
			&rr.ClusterIdentity{ClusterID: id}, &reply)
		return reply.GetResources(), err
	})
}

func call(addr string, do func(*grpc.ClientConn) (map[string]*rr.Quantity, error)) (amounts, error) {
	conn, err := dial(addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	reply, err := do(conn)
	if err != nil {
		return nil, err
	}
	got := amounts{}
	for name, text := range reply {
		q, err := resource.ParseQuantity(text.GetString_())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		got[name] = q.MilliValue()
	}
	return got, nil
}

// differ returns err, or an error with the difference between the offers.
func differ(want, got amounts, err error) error {
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("the offer differs (-want +got):\n%s", diff)
	}
	return nil
}
