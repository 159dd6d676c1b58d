package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	wire "proffer.dev/proffer/proto/resourcereader"
)

// stepTimeout bounds each step of a measurement.
const stepTimeout = time.Minute

// batchPeriods are the measured batch periods: none, which shows the cost of everything else, and
// the default.
var batchPeriods = []time.Duration{0, 100 * time.Millisecond}

// measurePush measures the time from an edit of a policy to the notification of a subscriber. This
// process observes both ends. The start is the moment when a bare watch receives the event of the
// edit, which is about when the operator receives it.
func measurePush(ctx context.Context, o options, r *report, progress io.Writer) (err error) {
	edits, fanOut := 100, fanOutSize{consumers: 10_000, streams: 1_000, edits: 300}
	if o.short {
		edits, fanOut = 3, fanOutSize{consumers: 300, streams: 20, edits: 3}
	}
	c, err := startCluster(ctx, o.operator, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	const title = "From the API server's event of an edited policy to the notification of a subscriber, %d edits"
	t := r.section(fmt.Sprintf(title, edits),
		"batch period", "median", "p99", "median beyond the period", "p99 beyond the period", "median from the request",
		"p99 from the request")
	for _, period := range batchPeriods {
		pushes, err := c.pushes(ctx, period, edits)
		if err != nil {
			return fmt.Errorf("with a batch period of %v: %w", period, err)
		}
		var fromEvent, fromRequest []float64
		for _, p := range pushes {
			fromEvent = append(fromEvent, float64(p.notified.Sub(p.event)))
			fromRequest = append(fromRequest, float64(p.notified.Sub(p.request)))
		}
		p50, p99, batch := quantile(fromEvent, 0.5), quantile(fromEvent, 0.99), float64(period)
		t.row(period.String(), span(p50), span(p99), span(p50-batch), span(p99-batch), span(quantile(fromRequest, 0.5)),
			span(quantile(fromRequest, 0.99)))
		if period > 0 {
			r.ratio("an edit reaches a subscriber, median", "the batch period",
				spread{median: p50 / batch, low: quantile(fromEvent, 0.25) / batch, high: quantile(fromEvent, 0.75) / batch})
			r.ratio("an edit reaches a subscriber, p99", "the batch period",
				spread{median: p99 / batch, low: p99 / batch, high: p99 / batch})
		}
	}
	return c.measureFanOut(ctx, fanOut, r)
}

// push is one edit: the times of the request, of its event at the watch, and of the notification.
type push struct{ request, event, notified time.Time }

// pushes edits a policy again and again, each time at a random moment after the last notification.
func (c *cluster) pushes(ctx context.Context, period time.Duration, edits int) (pushes []push, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The policy exists before the operator starts, so only edits change the offer.
	policy, err := c.createPolicy(ctx, "edited", 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.client.Delete(context.WithoutCancel(ctx), policy)) }()
	operator, err := c.startOperator(period)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, operator.stop(err != nil)) }()
	conn, err := dial(operator.address)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	liqo := wire.NewResourceReaderClient(conn)

	edited, err := c.watchPolicies(ctx)
	if err != nil {
		return nil, err
	}
	notified, err := subscribe(ctx, liqo)
	if err != nil {
		return nil, err
	}
	if err := c.settle(ctx, liqo, notified); err != nil {
		return nil, err
	}
	for i := range edits {
		if err := pauseBetweenEdits(ctx, period); err != nil {
			return nil, err
		}
		cpu := firstCPU + 1 + int64(i)
		request, event, err := c.edit(ctx, policy, edited, cpu)
		if err != nil {
			return nil, err
		}
		n, err := await(ctx, notified, func(n notification) bool { return n.id == consumer })
		if err != nil {
			return nil, fmt.Errorf("waiting for the notification: %w", err)
		}
		if err := checkCPU(ctx, liqo, consumer, cpu); err != nil {
			return nil, fmt.Errorf("after the notification: %w", err)
		}
		pushes = append(pushes, push{request: request, event: event, notified: n.at})
	}
	return pushes, nil
}

// pauseBetweenEdits waits a random time of up to two batch periods. An edit right after the last
// push would always wait for the end of the period, and edits at fixed distances could always fall
// on the same moment of it.
func pauseBetweenEdits(ctx context.Context, period time.Duration) error {
	return pause(ctx, rand.N(2*period+1))
}

// edit changes the cpu that the policy offers. It returns the times of the request and of the event
// at the watch.
func (c *cluster) edit(
	ctx context.Context, policy *v1alpha1.ResourcePolicy, edited <-chan edit, cpu int64,
) (request, event time.Time, err error) {
	before := policy.DeepCopy()
	policy.Spec.Offer.Fixed["cpu"] = amount(cpu)
	request = time.Now()
	// A patch does not conflict with the operator's writes of the status.
	if err := c.client.Patch(ctx, policy, client.MergeFrom(before)); err != nil {
		return request, event, fmt.Errorf("editing the policy: %w", err)
	}
	e, err := await(ctx, edited, func(e edit) bool { return e.name == policy.Name && e.generation >= policy.Generation })
	if err != nil {
		return request, event, fmt.Errorf("waiting for the watch: %w", err)
	}
	return request, e.at, nil
}

// consumer receives the notifications of the edits; firstCPU is its offer before the first edit.
const (
	consumer = "rome"
	firstCPU = 1000
)

func amount(n int64) v1alpha1.Quantity {
	return v1alpha1.Quantity{Quantity: *resource.NewQuantity(n, resource.DecimalSI)}
}

// createPolicy creates a policy for the consumers with these IDs, or for all consumers if there are
// none.
func (c *cluster) createPolicy(
	ctx context.Context, name string, priority int32, ids ...v1alpha1.ClusterID,
) (*v1alpha1.ResourcePolicy, error) {
	policy := &v1alpha1.ResourcePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ResourcePolicySpec{
			Priority: priority,
			Offer: v1alpha1.PolicyOffer{Fixed: v1alpha1.Quantities{
				"cpu": amount(firstCPU), "memory": amount(64 * gi), "pods": amount(110),
			}},
		},
	}
	if len(ids) > 0 {
		policy.Spec.Consumers = &v1alpha1.Consumers{ClusterIDs: ids}
	}
	if err := c.client.Create(ctx, policy); err != nil {
		return nil, fmt.Errorf("creating the policy %s: %w", name, err)
	}
	return policy, nil
}

// settle waits until the consumer is offered what the policy offers at first, and no notification
// is pending.
func (c *cluster) settle(ctx context.Context, liqo wire.ResourceReaderClient, notified <-chan notification) error {
	for {
		// An unknown consumer's answer changes once the operator has seen the policy.
		got, err := readCPU(ctx, liqo, consumer)
		if err != nil {
			return err
		}
		if got == firstCPU {
			return nil
		}
		if _, err := await(ctx, notified, func(notification) bool { return true }); err != nil {
			return fmt.Errorf("waiting for the first offer: %w", err)
		}
	}
}

func readCPU(ctx context.Context, liqo wire.ResourceReaderClient, id string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	answer, err := liqo.ReadResources(ctx, &wire.ClusterIdentity{ClusterID: id}, grpc.WaitForReady(true))
	if err != nil {
		return 0, fmt.Errorf("reading resources: %w", err)
	}
	if len(answer.GetResourceLists()) == 0 {
		return 0, nil
	}
	q, err := resource.ParseQuantity(answer.GetResourceLists()[0].GetResources()["cpu"].GetString_())
	if err != nil {
		return 0, fmt.Errorf("cpu: %w", err)
	}
	return q.Value(), nil
}

// checkCPU returns an error unless the consumer is offered this much cpu.
func checkCPU(ctx context.Context, liqo wire.ResourceReaderClient, id string, want int64) error {
	got, err := readCPU(ctx, liqo, id)
	if err == nil && got != want {
		err = fmt.Errorf("%s reads %d cpu, want %d", id, got, want)
	}
	return err
}

// edit is an event of a policy at the bare watch.
type edit struct {
	name       string
	generation int64
	at         time.Time
}

// watchPolicies returns the events of policies until ctx ends. It takes the time before it decodes
// an event, because decoding belongs to what is measured.
func (c *cluster) watchPolicies(ctx context.Context) (<-chan edit, error) {
	web, server, err := c.overHTTP()
	if err != nil {
		return nil, err
	}
	policies := server.JoinPath("apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "resourcepolicies")
	policies.RawQuery = "watch=true"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, policies.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := web.Do(request) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		return nil, fmt.Errorf("watching policies: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("watching policies: %s", response.Status), response.Body.Close())
	}
	edits := make(chan edit)
	go func() {
		defer close(edits)
		defer func() { _ = response.Body.Close() }()
		for body := bufio.NewReader(response.Body); ; {
			line, err := body.ReadBytes('\n')
			if err != nil {
				return
			}
			at := time.Now()
			var event struct {
				Object metav1.PartialObjectMetadata `json:"object"`
			}
			if err := json.Unmarshal(line, &event); err != nil {
				return
			}
			select {
			case edits <- edit{name: event.Object.Name, generation: event.Object.Generation, at: at}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return edits, nil
}

type notification struct {
	id string
	at time.Time
}

// subscribe returns the notifications until ctx ends.
func subscribe(ctx context.Context, liqo wire.ResourceReaderClient) (<-chan notification, error) {
	stream, err := liqo.Subscribe(ctx, &wire.Empty{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("subscribing: %w", err)
	}
	notifications := make(chan notification)
	go func() {
		defer close(notifications)
		for {
			identity, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case notifications <- notification{id: identity.GetClusterID(), at: time.Now()}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return notifications, nil
}

// await returns the next event that is wanted.
func await[T any](ctx context.Context, events <-chan T, wanted func(T) bool) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return e, errors.New("the stream ended")
			}
			if wanted(e) {
				return e, nil
			}
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
	}
}

func newClient(c *cluster) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), kubernetesscheme.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.New(c.plane.Config, client.Options{Scheme: scheme})
}
