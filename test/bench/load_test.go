package bench

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/bench/population"
)

var (
	nodes = flag.Int("nodes", 5_000, "number of nodes of the larger cluster of BenchmarkCluster")
	pods  = flag.Int("pods", 50_000, "number of its pods")
)

const (
	// eventRate is the number of pod events in a second, over all writers.
	eventRate    = 200
	eventWriters = 8
	// statusInterval is the operator's minimum time between two writes of a policy's status.
	statusInterval = 10 * time.Second
)

// BenchmarkCluster measures the operator on clusters in use: what a process needs from its start until it
// knows the whole cluster, what it holds from then on, and what pod events cost it. A cluster with few
// pods shows how the cost of an event depends on their number. Of events, an iteration is one event.
func BenchmarkCluster(b *testing.B) {
	few := population.Size{Nodes: 100, Pods: 1_000, Consumers: 100}
	many := population.Size{Nodes: *nodes, Pods: *pods, Consumers: 100}
	rounds, quiet := 5, 10*time.Second
	if testing.Short() {
		few, many = population.Size{Nodes: 2, Pods: 20, Consumers: 3}, population.Size{Nodes: 5, Pods: 50, Consumers: 3}
		rounds, quiet = 1, 0
	}
	b.Run(fmt.Sprintf("pods=%d", few.Pods), func(b *testing.B) {
		startFilled(b, few).benchmarkEvents(b)
	})
	b.Run(fmt.Sprintf("pods=%d", many.Pods), func(b *testing.B) {
		c := startFilled(b, population.Size{Consumers: many.Consumers})
		b.Run("start=empty", func(b *testing.B) { compare(b, "program", rounds, c.starts(b, quiet)[0]) })
		c.fill(b, many)
		b.Run("start=full", func(b *testing.B) { compare(b, "program", rounds, c.starts(b, quiet)...) })
		c.benchmarkEvents(b)
	})
}

// filled is a cluster with nodes and pods.
type filled struct {
	*cluster
	writer *population.Client
	size   population.Size
}

// startFilled starts a cluster with policies, nodes and pods.
func startFilled(b *testing.B, s population.Size) *filled {
	b.Helper()
	c := &filled{cluster: startCluster(b)}
	var err error
	c.writer, err = population.NewClient(c.Config)
	test.Must(b, err)
	c.follow = build(b, "follow")
	c.admitReader(b)
	for _, p := range sharePolicies(s.Consumers) {
		test.Must(b, c.api.Create(b.Context(), p))
	}
	if s.Nodes > 0 {
		c.fill(b, s)
	}
	return c
}

func (c *filled) fill(b *testing.B, s population.Size) {
	b.Helper()
	var progress io.Writer = os.Stderr
	if testing.Short() {
		progress = io.Discard
	}
	c.size = s
	test.Must(b, c.writer.Create(b.Context(), s, progress))
}

// sharePolicies offer shares of the nodes to all consumers by ID, in three classes whose nodes
// overlap.
func sharePolicies(consumers int) []*v1alpha1.ResourcePolicy {
	var ids []v1alpha1.ClusterID
	for i := range consumers {
		ids = append(ids, v1alpha1.ClusterID(population.Consumer(i)))
	}
	var policies []*v1alpha1.ResourcePolicy
	for class, labels := range map[string]map[string]string{
		"": {"kubernetes.io/os": "linux"}, "gold": {"pool": "compute"}, "silver": {"topology.kubernetes.io/zone": "zone-1"},
	} {
		policies = append(policies, &v1alpha1.ResourcePolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "share-of-" + class + "nodes"},
			Spec: v1alpha1.ResourcePolicySpec{
				Class:     class,
				Consumers: &v1alpha1.Consumers{ClusterIDs: ids},
				Offer: v1alpha1.PolicyOffer{
					Nodes:   &v1alpha1.Nodes{Selector: &metav1.LabelSelector{MatchLabels: labels}},
					Percent: new(v1alpha1.Percent(50)),
					Reserve: v1alpha1.Quantities{"cpu": {Quantity: resource.MustParse("4")}},
				},
			},
		})
	}
	return policies
}

// starts are the programs that learn the state of the cluster, the operator first.
func (c *filled) starts(b *testing.B, quiet time.Duration) []candidate {
	all := []candidate{{"operator", func() figures {
		return measureStart(b, quiet, func() running { return c.startOperator(b, batchPeriod) })
	}}}
	for _, way := range []string{"reflector", "stripped", "cache", "list"} {
		all = append(all, candidate{way, func() figures {
			return measureStart(b, quiet, func() running { return startChild(b, c.follow, way, c.kubeconfig) })
		}})
	}
	return all
}

// measureStart starts a process, waits until it knows the cluster and then for the quiet time twice,
// and ends it.
func measureStart(b *testing.B, quiet time.Duration, start func() running) figures {
	b.Helper()
	began := time.Now()
	p := start()
	defer p.end()
	p.await()
	ready, cpu := time.Since(began), usedBy(b, p)
	pause(quiet)
	peak := memoryOf(b, p).peak
	// Go collects garbage at least every two minutes, and returns unused memory to the system after a
	// while.
	p.collect()
	pause(quiet)
	return figures{
		"ready-s": ready.Seconds(), "cpu-s": cpu / 1e9, "peak-MiB": peak / mib, "rss-MiB": memoryOf(b, p).now / mib,
	}
}

func pause(d time.Duration) { <-time.After(d) } //nolint:forbidigo // the time is part of the measurement

// benchmarkEvents measures what pod events cost the operator once it knows the cluster. A bare reflector,
// and a watch whose bytes are thrown away, receive the same events.
func (c *filled) benchmarkEvents(b *testing.B) {
	for name, event := range map[string]func(*population.Churn, context.Context) error{
		"quiet": (*population.Churn).Quiet, // nothing of the account changes
		"loud":  (*population.Churn).Loud,
	} {
		b.Run("events="+name, func(b *testing.B) {
			o := c.startOperator(b, batchPeriod)
			followers := []running{o, startChild(b, c.follow, "reflector", c.kubeconfig),
				startChild(b, c.follow, "watch", c.kubeconfig)}
			for _, p := range followers {
				p.await()
			}
			duration := time.Duration(b.N) * time.Second / eventRate
			// By then the operator has written the statuses that earlier events caused.
			pause(min(duration, statusInterval+2*time.Second))
			c.measureEvents(b, o, followers, event)
		})
	}
}

func (c *filled) measureEvents(
	b *testing.B, o *operator, followers []running, event func(*population.Churn, context.Context) error,
) {
	b.Helper()
	// A scrape costs the operator more than many events, so it is outside of the measured interval.
	before := c.scrape(b, o)
	cpu := make([]float64, len(followers))
	for i, p := range followers {
		cpu[i] = usedBy(b, p)
	}
	start := time.Now()
	test.Must(b, c.makeEvents(b.Context(), b.N, event))
	cost := eventCost{seconds: time.Since(start).Seconds(), requests: map[string]float64{}}
	for i, name := range []string{"operator", "reflector", "watch"} {
		cpu[i] = usedBy(b, followers[i]) - cpu[i]
		b.ReportMetric(cpu[i]/1e3/float64(b.N), name+"-cpu-µs/event")
	}
	b.ReportMetric(cpu[0]/cpu[1], "x-reflector")
	after := c.scrape(b, o)
	const evaluations, requests = "proffer_evaluation_duration_seconds", "rest_client_requests_total"
	cost.evaluations = after.sum(evaluations, nil) - before.sum(evaluations, nil)
	for _, method := range []string{"GET", "PUT", "POST", "PATCH", "DELETE"} {
		label := map[string]string{"method": method}
		if n := after.sum(requests, label) - before.sum(requests, label); n > 0 {
			cost.requests[method] = n
		}
	}
	b.ReportMetric(0, "ns/op") // reports nothing
	b.ReportMetric(cost.evaluations/cost.batchPeriods(), "evaluations/period")
	if err := cost.check(); err != nil && b.N > 1 { // testing begins with a single event
		b.Error(err)
	}
}

// eventCost is what the events of an interval caused.
type eventCost struct {
	seconds, evaluations float64
	// requests are those to the API server, by method.
	requests map[string]float64
}

func (e eventCost) batchPeriods() float64 { return e.seconds / batchPeriod.Seconds() }

// check returns an error if the operator evaluated or wrote more often than it may for any events.
func (e eventCost) check() error {
	// Events before and after the interval may cause one evaluation more at either end.
	if most := e.batchPeriods() + 2; e.evaluations > most {
		return fmt.Errorf("%.0f evaluations in %.0f batch periods", e.evaluations, e.batchPeriods())
	}
	// In each statusInterval a policy may get one status and two Events. Renewed watches are GETs. The
	// second scrape may cause a TokenReview and a SubjectAccessReview.
	writes := e.requests["PUT"] + e.requests["POST"] + e.requests["PATCH"] + e.requests["DELETE"]
	policies := float64(len(sharePolicies(0)))
	if most := policies*3*(e.seconds/statusInterval.Seconds()+1) + 2; writes > most {
		return fmt.Errorf("the API server received %v: more than %.0f writes", e.requests, most)
	}
	return nil
}

// makeEvents makes n events at eventRate.
func (c *filled) makeEvents(ctx context.Context, n int, event func(*population.Churn, context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for w := range min(eventWriters, n) {
		group.Go(func() error {
			churn := c.writer.Churn(c.size, w, eventWriters)
			for i := w; i < n; i += eventWriters { // the writers take turns
				pause(time.Until(start.Add(time.Duration(i) * time.Second / eventRate)))
				if err := event(churn, ctx); err != nil {
					return err
				}
			}
			return churn.Restore(ctx)
		})
	}
	return group.Wait()
}
