package deploy

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
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

	"proffer.dev/proffer/api/v1alpha1"
	rr "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/proto/resourcereader/flat"
)

// TestTheServiceAccountMayDoAllThatTheOperatorDoes goes through everything the operator does with the API server, as the
// ServiceAccount of config/default and with the arguments of its Deployment.
func TestTheServiceAccountMayDoAllThatTheOperatorDoes(t *testing.T) {
	o := start(t, container(t, deployment(t, render(t, "flat"))).Args)
	o.awaitReady(t)

	// Liqo comes later than the operator.
	apply(t, "liqo-crds.yaml")
	mustKubectl(t, "wait", "--for=condition=Established", "--timeout=60s", "-f", "testdata/liqo-crds.yaml")
	apply(t, "liqo-peers.yaml")
	node(t)
	apply(t, "policies.yaml")

	t.Run("each kind of object reaches the offers", func(t *testing.T) {
		for id, want := range map[string]amounts{
			"rome": {"cpu": 1000, "memory": gib, "pods": 1000},
			"oslo": {"cpu": 2000, "memory": gib, "pods": 2000},
			"bern": {"cpu": 3000, "memory": gib, "pods": 3000},
			// Half of what the node has less what its local pod takes.
			"lima": {"cpu": 3000, "memory": 4 * gib, "pods": 4000},
		} {
			eventually(t, func() error {
				got, err := readPools(t, o.Address("grpc"), id)
				return differ(want, got, err)
			})
			eventually(t, func() error {
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
	t.Run("what is offered is recorded", func(t *testing.T) {
		eventually(t, func() error {
			var record corev1.ConfigMap
			if err := cluster.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "proffer-offered"}, &record); err != nil {
				return err
			}
			if got, want := record.Data["offered.json"], `{"":["cpu","memory","pods"]}`; got != want {
				return fmt.Errorf("%s, want %s", got, want)
			}
			return nil
		})
	})
	t.Run("events are recorded", func(t *testing.T) {
		eventually(t, func() error {
			var events eventsv1.EventList
			if err := cluster.client.List(t.Context(), &events); err != nil {
				return err
			}
			if !slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
				return e.Regarding.Kind == "ResourcePolicy" && e.Regarding.Name == "no-nodes" && e.Reason == v1alpha1.ReasonNoNodes
			}) {
				return fmt.Errorf("no Event among %d says that no-nodes has no nodes", len(events.Items))
			}
			return nil
		})
	})
	t.Run("the metrics know who may read them", func(t *testing.T) {
		testReaders(t, "https://"+o.Address("metrics")+"/metrics", "proffer-metrics-reader", "prometheus")
	})
	t.Run("so do the explanations", func(t *testing.T) {
		testReaders(t, "https://"+o.Address("metrics")+"/offers/rome", "proffer-offers-reader", "curious")
	})
	t.Run("the lease is held, and given back at the end", func(t *testing.T) {
		lease := leaderLease(t)
		if ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
			t.Error("nobody holds the lease")
		}
		must(t, o.Stop(gracefulStop))
		if holder := ptr.Deref(leaderLease(t).Spec.HolderIdentity, ""); holder != "" {
			t.Errorf("%q still holds the lease: the next leader would have to wait for its end", holder)
		}
	})
	o.requireAllowed(t)
}

// testReaders asks without a token, with one of an account that was given nothing, and with one of an account with the role.
func testReaders(t *testing.T, url, role, reader string) {
	t.Helper()
	stranger := "not-" + reader
	for _, account := range []string{stranger, reader} {
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
		create(t, sa)
	}
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deploy-test-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: reader}},
	})
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	ask := func(token string) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			return 0, err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	is := func(status int) func(int) bool { return func(got int) bool { return got == status } }
	for _, c := range []struct {
		who, token string
		want       func(status int) bool
	}{
		{"nobody", "", is(http.StatusUnauthorized)},
		// A token that cannot be verified is an error to controller-runtime's filter, of whatever kind.
		{"a forger", "not.a.token", func(status int) bool { return status >= 400 }},
		{"a stranger", tokenOf(t, namespace, stranger), is(http.StatusForbidden)},
		{reader, tokenOf(t, namespace, reader), is(http.StatusOK)},
	} {
		// The authorizer of the API server learns of a new binding by a watch.
		eventually(t, func() error {
			got, err := ask(c.token)
			if err == nil && !c.want(got) {
				err = fmt.Errorf("%s gets status %d", c.who, got)
			}
			return err
		})
	}
}

// node makes a node of 8 cpu with a local pod of 2 on it.
func node(t *testing.T) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "deploy-test", Labels: map[string]string{"pool": "deploy-test"}}}
	create(t, n)
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("9")}
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := cluster.client.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	// A new node is given the taint node.kubernetes.io/not-ready, which a controller would take away.
	n.Spec.Taints = nil
	if err := cluster.client.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	create(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "deploy-test"},
		Spec: corev1.PodSpec{
			NodeName: n.Name,
			Containers: []corev1.Container{{
				Name: "c", Image: "c",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}},
			}},
		},
	})
}

func create(t *testing.T, obj client.Object) {
	t.Helper()
	if err := cluster.client.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	remove(t, obj)
}

// apply applies a file of testdata and takes it away at the end of the test.
func apply(t *testing.T, file string) {
	t.Helper()
	mustKubectl(t, "apply", "-f", "testdata/"+file)
	t.Cleanup(func() {
		if _, err := kubectl(context.WithoutCancel(t.Context()), "delete", "--ignore-not-found", "-f", "testdata/"+file); err != nil {
			t.Error(err)
		}
	})
}

// awaitReady waits until the status tells of the policy as it is now, and says that it is in force.
func awaitReady(t *testing.T, name string) {
	t.Helper()
	eventually(t, func() error {
		var p v1alpha1.ResourcePolicy
		if err := cluster.client.Get(t.Context(), client.ObjectKey{Name: name}, &p); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Status != metav1.ConditionTrue || p.Status.ObservedGeneration != p.Generation {
			return fmt.Errorf("policy %s is at generation %d, its status at %d with %+v", name, p.Generation, p.Status.ObservedGeneration, c)
		}
		return nil
	})
}

func leaderLease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	var leases coordinationv1.LeaseList
	if err := cluster.client.List(t.Context(), &leases, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(leases.Items) != 1 {
		t.Fatalf("there are %d leases in %s, want 1", len(leases.Items), namespace)
	}
	return &leases.Items[0]
}

const gib = 1000 << 30 // in milli

// amounts are what a consumer is offered, in milli.
type amounts map[string]int64

// readPools reads the one pool that the consumer is offered.
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
		// The service has no package on the wire; the generated client of the package flat would name one.
		var reply flat.ResourceList
		err := conn.Invoke(t.Context(), rr.ResourceReader_ReadResources_FullMethodName, &rr.ClusterIdentity{ClusterID: id}, &reply)
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

// differ says how what was read differs from what was wanted.
func differ(want, got amounts, err error) error {
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("the offer differs (-want +got):\n%s", diff)
	}
	return nil
}
