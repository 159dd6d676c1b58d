package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
)

// batchPeriods are the measured batch periods: none, which shows the cost of everything else, and the
// default.
var batchPeriods = []time.Duration{0, batchPeriod}

// consumer receives the notifications of the edits; firstCPU is its offer before the first edit.
const (
	consumer = "rome"
	firstCPU = 1000
)

// BenchmarkPush measures the time from an edit of a policy, the iteration, to the notification of a
// subscriber. This process observes both ends. The start is the moment when a bare watch receives the
// event of the edit, which is about when the operator receives it.
func BenchmarkPush(b *testing.B) {
	c := startCluster(b)
	for _, period := range batchPeriods {
		b.Run("period="+period.String(), func(b *testing.B) { c.benchmarkPush(b, period) })
	}
}

func (c *cluster) benchmarkPush(b *testing.B, period time.Duration) {
	// The policy exists before the operator starts, so only edits change the offer.
	e := c.newEditor(b, c.createPolicy(b, "edited", 0))
	liqo := wire.NewResourceReaderClient(dial(b, c.startOperator(b, period).Address("grpc")))
	stream, err := liqo.Subscribe(b.Context(), &wire.Empty{}, grpc.WaitForReady(true))
	test.Must(b, err)
	notified := stamp(b.Context(), stream.Recv)
	// An unknown consumer's answer changes once the operator has seen the policy.
	for readCPU(b, liqo, consumer) != firstCPU {
		await(b, notified, func(*wire.ClusterIdentity) bool { return true })
	}
	var fromEvent, fromRequest []float64
	for b.Loop() {
		request, event := e.edit(b, period)
		at := await(b, notified, func(id *wire.ClusterIdentity) bool { return id.GetClusterID() == consumer })
		checkCPU(b, liqo, consumer, e.cpu)
		fromEvent = append(fromEvent, float64(at.Sub(event)))
		fromRequest = append(fromRequest, float64(at.Sub(request)))
	}
	b.ReportMetric(0, "ns/op") // reports nothing
	reportTimes(b, "event", fromEvent)
	reportTimes(b, "request", fromRequest)
}

// editor edits one policy again and again.
type editor struct {
	api    client.Client
	policy *v1alpha1.ResourcePolicy
	// cpu is what the policy offers.
	cpu int64
	// events are those of all policies, encoded, at a bare watch. Decoding an event belongs to what is
	// measured.
	events <-chan stamped[[]byte]
}

func (c *cluster) newEditor(b *testing.B, policy *v1alpha1.ResourcePolicy) *editor {
	b.Helper()
	config := rest.CopyConfig(c.Config)
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.GroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	policies, err := rest.RESTClientFor(config)
	test.Must(b, err)
	body, err := policies.Get().Resource("resourcepolicies").Param("watch", "true").Stream(b.Context())
	test.Must(b, err)
	b.Cleanup(func() { _ = body.Close() })
	in := bufio.NewReader(body)
	return &editor{c.api, policy, firstCPU, stamp(b.Context(), func() ([]byte, error) { return in.ReadBytes('\n') })}
}

// edit changes the cpu that the policy offers, after a random time of up to two batch periods. An edit
// right after the last push would always wait for the end of the period, and edits at fixed distances
// could always fall on the same moment of it. edit returns the times of the request and of the event.
func (e *editor) edit(b *testing.B, period time.Duration) (request, event time.Time) {
	b.Helper()
	pause(rand.N(2*period + 1))
	before := e.policy.DeepCopy()
	e.cpu++
	e.policy.Spec.Offer.Fixed["cpu"] = amount(e.cpu)
	request = time.Now()
	// A patch does not conflict with the operator's writes of the status.
	test.Must(b, e.api.Patch(b.Context(), e.policy, client.MergeFrom(before)))
	return request, await(b, e.events, func(line []byte) bool {
		var event struct {
			Object metav1.PartialObjectMetadata `json:"object"`
		}
		test.Must(b, json.Unmarshal(line, &event))
		return event.Object.Name == e.policy.Name && event.Object.Generation >= e.policy.Generation
	})
}

func amount(n int64) v1alpha1.Quantity {
	return v1alpha1.Quantity{Quantity: *resource.NewQuantity(n, resource.DecimalSI)}
}

// fixedPolicy returns a policy that offers these amounts to all consumers.
func fixedPolicy(name string, cpu, memory, pods int64) *v1alpha1.ResourcePolicy {
	return &v1alpha1.ResourcePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ResourcePolicySpec{Offer: v1alpha1.PolicyOffer{Fixed: v1alpha1.Quantities{
			"cpu": amount(cpu), "memory": amount(memory), "pods": amount(pods),
		}}},
	}
}

// createPolicy creates a policy for the consumers with these IDs, or for all consumers if there are
// none, until the end of the benchmark.
func (c *cluster) createPolicy(
	b testing.TB, name string, priority int32, ids ...v1alpha1.ClusterID,
) *v1alpha1.ResourcePolicy {
	b.Helper()
	policy := fixedPolicy(name, firstCPU, 64<<30, 110)
	policy.Spec.Priority = priority
	if len(ids) > 0 {
		policy.Spec.Consumers = &v1alpha1.Consumers{ClusterIDs: ids}
	}
	test.Must(b, c.api.Create(b.Context(), policy))
	b.Cleanup(func() { test.Must(b, c.api.Delete(context.WithoutCancel(b.Context()), policy)) })
	return policy
}

// readCPU returns the cpu that a consumer is offered.
func readCPU(b *testing.B, liqo wire.ResourceReaderClient, id string) int64 {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), stepTimeout)
	defer cancel()
	answer, err := liqo.ReadResources(ctx, &wire.ClusterIdentity{ClusterID: id}, grpc.WaitForReady(true))
	test.Must(b, err)
	if len(answer.GetResourceLists()) == 0 {
		return 0
	}
	q, err := resource.ParseQuantity(answer.GetResourceLists()[0].GetResources()["cpu"].GetString_())
	test.Must(b, err)
	return q.Value()
}

func checkCPU(b *testing.B, liqo wire.ResourceReaderClient, id string, want int64) {
	b.Helper()
	if got := readCPU(b, liqo, id); got != want {
		b.Fatalf("%s reads %d cpu, want %d", id, got, want)
	}
}
