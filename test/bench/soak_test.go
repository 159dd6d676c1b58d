package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/bench/population"
)

const (
	eventsPerEdit = 100
	eventsPerOpen = 10
	soakSamples   = 50
	fixedPolicies = 10
	// judgedFrom is the number of events from which all hanging streams are open by the second tenth, so
	// that its memory can be compared.
	judgedFrom = 100_000
	// streamsPerConnection is how many streams are opened before a new connection.
	streamsPerConnection = 200
)

// BenchmarkSoak makes churn as fast as it can: an iteration is an event of a pod, and the writer of some
// also opens a stream or edits a policy. It fails if goroutines are left behind or if memory keeps growing.
// The cluster has small pods, which allow more events in the same time.
func BenchmarkSoak(b *testing.B) {
	size, writers := population.Size{Nodes: 500, Pods: 5_000, Consumers: 100, Small: true}, 64
	if testing.Short() {
		size.Nodes, size.Pods, writers = 5, 50, 4
	}
	c := startFilled(b, size)
	for i := range fixedPolicies {
		p := fixedPolicy(fmt.Sprintf("fixed-%d", i), 4, 8<<30, 10)
		p.Spec.Class = fmt.Sprintf("class-%d", i)
		test.Must(b, c.api.Create(b.Context(), p))
	}
	o := c.startOperator(b, batchPeriod)
	o.await()
	c.provokeEvent(b)
	b.Run("churn", func(b *testing.B) {
		s := &soak{filled: c, operator: o, events: b.N, writers: writers}
		c.scrape(b, o) // metrics are served last: once they are, all goroutines run
		before, err := o.goroutines(b.Context())
		test.Must(b, err)
		test.Must(b, s.churn(b.Context()))
		left := s.settle(b, before)
		if b.N < soakSamples { // testing begins with a single event
			return
		}
		b.ReportMetric(0, "ns/op") // reports nothing
		s.report(b)
		b.ReportMetric(float64(left.total-before.total), "goroutines-left")
	})
}

// soak is the churn, and the samples of the operator during it.
type soak struct {
	*filled
	operator        *operator
	events, writers int
	done            atomic.Int64
	mu              sync.Mutex
	samples         []soakSample
}

// soakSample describes the operator at one moment.
type soakSample struct {
	done            int
	rss, goroutines float64
}

// provokeEvent makes the operator write an Event, with a policy that matches no nodes. With the first
// Event, client-go starts nine goroutines that stay. Churn causes an Event sooner or later, when consumers
// use more than a policy offers.
func (c *filled) provokeEvent(b *testing.B) {
	b.Helper()
	policy := &v1alpha1.ResourcePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "without-nodes"},
		Spec: v1alpha1.ResourcePolicySpec{Class: "without-nodes", Offer: v1alpha1.PolicyOffer{Nodes: &v1alpha1.Nodes{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/none": "such"}},
		}}},
	}
	test.Must(b, c.api.Create(b.Context(), policy))
	test.Eventually(b, func() error {
		var events eventsv1.EventList
		if err := c.api.List(b.Context(), &events); err != nil {
			return err
		}
		if !slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool { return e.Regarding.UID == policy.UID }) {
			return fmt.Errorf("none of %d Events regards the policy %s", len(events.Items), policy.Name)
		}
		return nil
	})
	test.Must(b, c.api.Delete(b.Context(), policy))
}

// churn makes all events.
func (s *soak) churn(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for w := range s.writers {
		group.Go(func() (err error) {
			streams := &soakStreams{address: s.operator.Address("grpc")}
			defer func() { err = errors.Join(err, streams.close()) }()
			pods := s.writer.Churn(s.size, w, s.writers)
			for i := s.done.Add(1); i <= int64(s.events) && ctx.Err() == nil; i = s.done.Add(1) {
				event := pods.Quiet
				if i/int64(s.writers)%2 == 0 {
					event = pods.Loud
				}
				if err := event(ctx); err != nil {
					return err
				}
				if err := s.extras(ctx, int(i), streams); err != nil {
					return err
				}
			}
			return errors.Join(context.Cause(ctx), pods.Restore(ctx))
		})
	}
	return group.Wait()
}

// extras does what accompanies the i-th event: it opens a stream, edits a policy, takes a sample.
func (s *soak) extras(ctx context.Context, i int, streams *soakStreams) error {
	if i%eventsPerOpen == 0 {
		if err := streams.open(ctx, population.Consumer(i/eventsPerOpen%s.size.Consumers)); err != nil {
			return fmt.Errorf("stream %d: %w", i/eventsPerOpen, err)
		}
	}
	if i%eventsPerEdit == 0 {
		if err := s.edit(ctx, i/eventsPerEdit); err != nil {
			return err
		}
	}
	if every := max(1, s.events/soakSamples); i%every == 0 && i/every <= soakSamples {
		memory, err := residentOf(s.operator.PID())
		if err != nil {
			return err
		}
		running, err := s.operator.goroutines(ctx)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.samples = append(s.samples, soakSample{i, memory.now, float64(running.total)})
	}
	return nil
}

// edit changes what a policy offers, taking the policies in turn.
func (s *soak) edit(ctx context.Context, i int) error {
	shares := sharePolicies(0)
	k := i % (len(shares) + fixedPolicies)
	policy, change := &v1alpha1.ResourcePolicy{}, fmt.Sprintf(`{"spec":{"offer":{"percent":%d}}}`, 20+i%70)
	if k < len(shares) {
		policy.Name = shares[k].Name
	} else {
		policy.Name = fmt.Sprintf("fixed-%d", k-len(shares))
		change = fmt.Sprintf(`{"spec":{"offer":{"fixed":{"cpu":"%d"}}}}`, 4+i%1000)
	}
	if err := s.api.Patch(ctx, policy, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
		return fmt.Errorf("editing policy %s: %w", policy.Name, err)
	}
	return nil
}

// report reports the operator's CPU time, and its memory: the bounds, and the median of the last tenth of
// the churn in relation to that of the second.
func (s *soak) report(b *testing.B) {
	b.Helper()
	// Concurrent samples may be out of order.
	slices.SortFunc(s.samples, func(a, b soakSample) int { return a.done - b.done })
	rss := make([]float64, len(s.samples))
	running := make([]float64, len(s.samples))
	for i, one := range s.samples {
		rss[i], running[i] = one.rss, one.goroutines
		b.Logf("%d events: %.0f MiB, %.0f goroutines", one.done, one.rss/mib, one.goroutines)
	}
	tenth := len(rss) / 10
	inLast := func(all []float64) float64 {
		return quantile(all[len(all)-tenth:], 0.5) / quantile(all[tenth:2*tenth], 0.5)
	}
	b.ReportMetric(usedBy(b, s.operator)/1e9, "cpu-s")
	b.ReportMetric(slices.Min(rss)/mib, "least-rss-MiB")
	b.ReportMetric(slices.Max(rss)/mib, "most-rss-MiB")
	b.ReportMetric(inLast(rss), "rss-last/second-tenth")
	b.ReportMetric(inLast(running), "goroutines-last/second-tenth")
	if s.events >= judgedFrom && inLast(rss) > 2 {
		b.Errorf("in the last tenth, RSS is %.1f times that in the second", inLast(rss))
	}
}

// settle waits until there are no more goroutines than before, and returns how many there are. The
// benchmark fails with a list of those that are left.
func (s *soak) settle(b *testing.B, before goroutines) (left goroutines) {
	b.Helper()
	// Other clients in the operator may have opened or closed connections meanwhile.
	const slack = 5
	test.Eventually(b, func() (err error) {
		if left, err = s.operator.goroutines(b.Context()); err == nil && left.total > before.total+slack {
			err = fmt.Errorf("%d goroutines are left, there were %d before:\n%s",
				left.total, before.total, strings.Join(left.since(before), "\n"))
		}
		return err
	})
	return left
}

// soakStreams opens streams. It must be used by one goroutine only.
type soakStreams struct {
	address string
	conn    *grpc.ClientConn
	opened  int
	// hanging ends the stream that is left open without being read. What is sent to it stays in buffers;
	// with more of them the soak would measure these buffers.
	hanging context.CancelFunc
}

// open opens a stream, reads the first message and the consumer's offer, and closes the stream. Some
// streams are left open for a while, and some end with their connection.
func (s *soakStreams) open(ctx context.Context, consumer string) (err error) {
	if s.opened%streamsPerConnection == 0 {
		if err := s.close(); err != nil {
			return err
		}
		if s.conn, err = grpc.NewClient("passthrough:///"+s.address, plaintext); err != nil {
			return err
		}
	}
	s.opened++
	ctx, end := context.WithCancel(ctx)
	liqo := wire.NewResourceReaderClient(s.conn)
	stream, err := liqo.Subscribe(ctx, &wire.Empty{}, grpc.WaitForReady(true))
	if err != nil {
		end()
		return fmt.Errorf("subscribing: %w", err)
	}
	if s.opened%10 == 0 { // left open, never read
		if s.hanging != nil {
			s.hanging()
		}
		s.hanging = end
		return nil
	}
	defer end()
	if first, err := stream.Recv(); err != nil || first.GetClusterID() != "" {
		return errors.Join(fmt.Errorf("the first message names %q, want no consumer", first.GetClusterID()), err)
	}
	answer, err := liqo.ReadResources(ctx, &wire.ClusterIdentity{ClusterID: consumer})
	if err != nil {
		return fmt.Errorf("reading resources: %w", err)
	}
	if len(answer.GetResourceLists()) == 0 {
		return fmt.Errorf("%s is offered nothing", consumer)
	}
	return nil
}

// close closes the connection and with it all streams.
func (s *soakStreams) close() error {
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	if s.hanging != nil {
		s.hanging()
		s.hanging = nil
	}
	return err
}

// goroutines counts the goroutines, in total and by stack.
type goroutines struct {
	total   int
	byStack map[string]int
}

// since lists the stacks whose number of goroutines differs from before, with the difference.
func (g goroutines) since(before goroutines) []string {
	more := maps.Clone(g.byStack)
	for stack, n := range before.byStack {
		more[stack] -= n
	}
	var all []string
	for stack, n := range more {
		if n != 0 {
			all = append(all, fmt.Sprintf("%+d of %s", n, stack))
		}
	}
	slices.Sort(all)
	return all
}

// goroutines reads the operator's pprof profile of goroutines.
func (o *operator) goroutines(ctx context.Context) (goroutines, error) {
	text, err := o.profile(ctx, "goroutine?debug=1")
	if err != nil {
		return goroutines{}, err
	}
	return parseGoroutines(string(text))
}

// parseGoroutines reads pprof's text. After the total it has a block for each stack: a line that
// begins with the number of goroutines, and one line for each function, the innermost first.
func parseGoroutines(profile string) (goroutines, error) {
	g := goroutines{byStack: map[string]int{}}
	head, rest, _ := strings.Cut(profile, "\n")
	if _, err := fmt.Sscanf(head, "goroutine profile: total %d", &g.total); err != nil {
		return g, fmt.Errorf("the profile of goroutines: %w", err)
	}
	for place := range strings.SplitSeq(rest, "\n\n") {
		var n int
		if _, err := fmt.Sscanf(place, "%d @", &n); err != nil {
			continue
		}
		var calls []string
		for line := range strings.Lines(place) {
			if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "#" && fields[1] != "labels:" {
				function, _, _ := strings.Cut(path.Base(fields[2]), "+")
				calls = append(calls, function)
			}
		}
		g.byStack[strings.Join(calls, " < ")] += n
	}
	return g, nil
}
