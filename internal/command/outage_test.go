package command

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/operator"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/externaltest"
)

// waitTimeout is the timeout of a condition that a test waits for: client-go reconnects within a
// minute.
const waitTimeout = 90 * time.Second

// outage has the clients of the test below: of the API server and of the operator's gRPC server.
type outage struct {
	t      *testing.T
	api    client.Client
	reader wire.ResourceReaderClient
}

func TestAnOutageThatCostsTheLeaseEndsNoStreamAndNoProcess(t *testing.T) {
	cluster := controlplane.StartTest(t,
		controlplane.Options{CRDDirs: []string{filepath.Join("..", "..", "config", "crd", "bases")}})
	scheme := operator.NewScheme()
	test.Must(t, coordinationv1.AddToScheme(scheme))
	api, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	test.Must(t, err)
	test.Must(t, api.Create(t.Context(), policyOf("2")))
	p := startProcess(t, cluster)
	o := &outage{t: t, api: api, reader: externaltest.Dial(t, p.Address("grpc"))}
	o.offers("2", grpc.WaitForReady(true))
	o.statusTells(1)
	leader := o.lease().HolderIdentity
	notifications := o.subscribe()
	if first := <-notifications; first != "" {
		t.Fatalf("the stream begins with %q, want an empty ID", first)
	}

	test.Must(t, cluster.StopAPIServer())
	test.Eventually(t, func() error {
		requireAlive(t, p)
		if !strings.Contains(p.Log(), "No longer the leader") {
			return errors.New("the operator still leads")
		}
		return nil
	})
	requireAlive(t, p)
	o.offers("2")
	// Without the API server the operator is neither restarted nor removed from the Service.
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := get("http://" + p.Address("health-probe") + path); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}

	back := time.Now()
	test.Must(t, cluster.StartAPIServer())
	test.Eventually(t, func() error {
		requireAlive(t, p)
		if l := o.lease(); l.HolderIdentity == nil || *l.HolderIdentity != *leader || !l.RenewTime.After(back) {
			return fmt.Errorf("the lease is %+v, want it renewed by %s", l, *leader)
		}
		return nil
	})
	o.edit("3")
	select {
	case id, open := <-notifications:
		if id != "rome" || !open {
			t.Fatalf("the stream sent %q (open: %t), want rome", id, open)
		}
	case <-time.After(waitTimeout):
		t.Fatal("the stream that was open before the outage sends nothing")
	}
	o.offers("3")
	o.statusTells(2)
	requireAlive(t, p)
	test.Check(t, p.Stop(time.Minute))
	if holder := o.lease().HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("%q still holds the lease", *holder)
	}
}

func policyOf(cpu string) *v1alpha1.ResourcePolicy {
	return &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.ResourcePolicySpec{
		Offer: v1alpha1.PolicyOffer{Fixed: amountsOf(cpu)},
	}}
}

func amountsOf(cpu string) v1alpha1.Quantities {
	return v1alpha1.Quantities{
		"cpu":    {Quantity: resource.MustParse(cpu)},
		"memory": {Quantity: resource.MustParse("1Gi")},
		"pods":   {Quantity: resource.MustParse("10")},
	}
}

func (o *outage) policy() *v1alpha1.ResourcePolicy {
	o.t.Helper()
	var p v1alpha1.ResourcePolicy
	test.Must(o.t, o.api.Get(o.t.Context(), client.ObjectKey{Name: "p"}, &p))
	return &p
}

// edit changes the offered amount, whatever the operator writes meanwhile.
func (o *outage) edit(cpu string) {
	o.t.Helper()
	before := o.policy()
	after := before.DeepCopy()
	after.Spec.Offer.Fixed = amountsOf(cpu)
	test.Must(o.t, o.api.Patch(o.t.Context(), after, client.MergeFrom(before)))
}

func (o *outage) statusTells(generation int64) {
	o.t.Helper()
	test.Eventually(o.t, func() error {
		if got := o.policy().Status.ObservedGeneration; got != generation {
			return fmt.Errorf("the status has observedGeneration %d, want %d", got, generation)
		}
		return nil
	})
}

func (o *outage) lease() coordinationv1.LeaseSpec {
	o.t.Helper()
	var l coordinationv1.Lease
	test.Must(o.t, o.api.Get(o.t.Context(), client.ObjectKey{Namespace: "default", Name: operator.LeaderElectionID},
		&l))
	return l.Spec
}

// offers reads the offer to rome once and checks its cpu.
func (o *outage) offers(cpu string, with ...grpc.CallOption) {
	o.t.Helper()
	answer, err := o.reader.ReadResources(o.t.Context(), &wire.ClusterIdentity{ClusterID: "rome"}, with...)
	test.Must(o.t, err)
	if got := answer.GetResourceLists()[0].GetResources()["cpu"].GetString_(); got != cpu {
		o.t.Errorf("rome is offered %s cpu, want %s", got, cpu)
	}
}

// subscribe opens a stream. The IDs that it sends arrive on the channel, which is closed when the
// stream ends.
func (o *outage) subscribe() <-chan string {
	o.t.Helper()
	stream, err := o.reader.Subscribe(o.t.Context(), &wire.Empty{})
	test.Must(o.t, err)
	notifications := make(chan string, 100)
	go func() {
		defer close(notifications)
		for {
			id, err := stream.Recv()
			if err != nil {
				return
			}
			notifications <- id.GetClusterID()
		}
	}()
	return notifications
}
