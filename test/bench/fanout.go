package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"proffer.dev/proffer/api/v1alpha1"
	wire "proffer.dev/proffer/proto/resourcereader"
)

// fanOutSize is the number of consumers that the operator knows, of open streams, and of edits.
type fanOutSize struct{ consumers, streams, edits int }

// perPolicy is the maximum number of consumers that a policy may name.
const perPolicy = 250

// measureFanOut measures notifications to many streams. The operator knows many consumers, all of
// which have been read; each edit changes the offer of one. The streams are spread evenly over a
// few connections, as behind a proxy, and each frame's arrival time is taken by the goroutine that
// reads its connection. For comparison, a bare server sends an encoded message to as many streams
// at the moment when an operator with that batch period would start to work. It is an operator that
// has nothing to compute.
func (c *cluster) measureFanOut(ctx context.Context, s fanOutSize, r *report) error {
	t := r.section(fmt.Sprintf("A push to %s streams with %s consumers, %d edits, from the event",
		thousands(s.streams), thousands(s.consumers), s.edits),
		"server", "batch period", "one stream, median", "one stream, p99", "median of all, median",
		"last of all, median", "last of all, p99")
	one, middle, last := fanOutPush.one, fanOutPush.middle, fanOutPush.last
	for _, period := range batchPeriods {
		bare, err := c.bareFanOut(ctx, period, s)
		if err != nil {
			return fmt.Errorf("the bare server, with a batch period of %v: %w", period, err)
		}
		ours, err := c.ourFanOut(ctx, period, s)
		if err != nil {
			return fmt.Errorf("with a batch period of %v: %w", period, err)
		}
		for _, row := range []struct {
			name string
			all  []fanOutPush
		}{{"bare", bare}, {"the operator", ours}} {
			t.row(row.name, period.String(), span(quantile(each(row.all, one), 0.5)), span(quantile(each(row.all, one), 0.99)),
				span(quantile(each(row.all, middle), 0.5)), span(quantile(each(row.all, last), 0.5)),
				span(quantile(each(row.all, last), 0.99)))
		}
		if period == 0 {
			// From the first stream's notification to the last one's: only the sending.
			r.ratio(fmt.Sprintf("%s streams are notified, from the first to the last, median", thousands(s.streams)),
				"bare grpc-go",
				quotients([]float64{quantile(each(ours, fanOutPush.spread), 0.5)},
					[]float64{quantile(each(bare, fanOutPush.spread), 0.5)}))
			continue
		}
		for _, q := range []struct {
			name string
			of   float64
		}{{"median", 0.5}, {"p99", 0.99}} {
			what := fmt.Sprintf("an edit reaches one of %s streams, %s", thousands(s.streams), q.name)
			got := []float64{quantile(each(ours, one), q.of)}
			r.ratio(what, "the batch period and 5 ms", quotients(got, []float64{float64(period + 5*time.Millisecond)}))
			r.ratio(what, "bare grpc-go at that moment", quotients(got, []float64{quantile(each(bare, one), q.of)}))
		}
	}
	return nil
}

// fanOutPush is one edit: when it happened, and when each stream was notified.
type fanOutPush struct {
	start    time.Time
	notified []time.Time
	// subscriber is the stream whose time counts as that of one stream.
	subscriber int
}

func (p fanOutPush) one() float64 { return float64(p.notified[p.subscriber].Sub(p.start)) }
func (p fanOutPush) last() float64 {
	return float64(slices.MaxFunc(p.notified, time.Time.Compare).Sub(p.start))
}
func (p fanOutPush) spread() float64 {
	return p.last() - float64(slices.MinFunc(p.notified, time.Time.Compare).Sub(p.start))
}

func (p fanOutPush) middle() float64 {
	return median(p.notified, func(at time.Time) float64 { return float64(at.Sub(p.start)) })
}

// receiver reads the streams of a server.
type receiver struct {
	streams int
	open    []*subscriptions
	// received gets one message of each stream of a connection at a time. Passing each message on
	// its own would make two goroutines wake each other, on the cores that the server needs too.
	received chan []delivery
	reading  sync.WaitGroup
	// failed is closed when a connection ends by itself; err is the reason.
	failed chan struct{}
	err    error
	once   sync.Once
}

// delivery is a message of a stream. Consecutive stream numbers are on different connections.
type delivery struct {
	stream  int
	message string
	at      time.Time
}

// listen opens so many streams and reads the first message of each.
func listen(ctx context.Context, address string, streams int) (*receiver, error) {
	a := &receiver{streams: streams, received: make(chan []delivery, connections), failed: make(chan struct{})}
	for i := range min(connections, streams) {
		s, err := openSubscriptions(ctx, address, (streams-i+connections-1)/connections)
		if err != nil {
			return nil, errors.Join(err, a.close())
		}
		a.open = append(a.open, s)
		a.reading.Go(func() {
			all, last := make([]delivery, 0, s.streams), ""
			err := s.each(func(stream int, message []byte, at time.Time) {
				if string(message) != last {
					last = string(message)
				}
				all = append(all, delivery{stream: stream*connections + i, message: last, at: at})
				if len(all) == s.streams {
					a.received <- all
					all = make([]delivery, 0, s.streams)
				}
			})
			a.once.Do(func() { a.err = err; close(a.failed) })
		})
	}
	if _, err := a.notified(ctx, nil); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *receiver) close() error {
	var err error
	for _, s := range a.open {
		err = errors.Join(err, s.Close())
	}
	// A reader may be about to send a last message.
	go func() {
		a.reading.Wait()
		close(a.received)
	}()
	for range a.received {
	}
	return err
}

// notified returns when each stream received the message. Another message, or a second one, is an
// error.
func (a *receiver) notified(ctx context.Context, message []byte) ([]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	times := make([]time.Time, a.streams)
	for n := 0; n < a.streams; {
		select {
		case all := <-a.received:
			for _, h := range all {
				if h.message != string(message) {
					return nil, fmt.Errorf("stream %d received %q, want %q", h.stream, h.message, message)
				}
				if !times[h.stream].IsZero() {
					return nil, fmt.Errorf("stream %d received %q twice", h.stream, message)
				}
				times[h.stream] = h.at
			}
			n += len(all)
		case <-a.failed:
			return nil, fmt.Errorf("a connection ended: %w", a.err)
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for notifications, %d of %d received: %w", n, a.streams, context.Cause(ctx))
		}
	}
	return times, nil
}

// bareFanOut has a bare server notify each stream half a batch period after the event of an edit,
// but at least one period after the previous notification.
func (c *cluster) bareFanOut(ctx context.Context, period time.Duration, s fanOutSize) (pushes []fanOutPush, err error) {
	policy, err := c.createManyConsumers(ctx, s.consumers)
	defer func() { err = errors.Join(err, c.deletePolicies(ctx)) }()
	if err != nil {
		return nil, err
	}
	server, err := startServer(ctx, serveBroadcast, connections, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	var last time.Time
	tell := func(event time.Time) error {
		if err := pause(ctx, max(period/2-time.Since(event), period-time.Since(last))); err != nil {
			return err
		}
		last = time.Now()
		return server.ask(askBroadcast)
	}
	return c.editForAll(ctx, policy, server.address, period, s, tell, func(int64) error { return nil })
}

// ourFanOut has an operator with this batch period notify each stream of an edit.
func (c *cluster) ourFanOut(ctx context.Context, period time.Duration, s fanOutSize) (pushes []fanOutPush, err error) {
	policy, err := c.createManyConsumers(ctx, s.consumers)
	defer func() { err = errors.Join(err, c.deletePolicies(ctx)) }()
	if err != nil {
		return nil, err
	}
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
	// The first read of each consumer follows the operator's first sight of all policies, so these
	// reads cause no notification.
	for i := range s.consumers {
		if err := checkCPU(ctx, liqo, consumerID(i), firstCPU); err != nil {
			return nil, fmt.Errorf("before the first edit: %w", err)
		}
	}
	return c.editForAll(ctx, policy, operator.address, period, s, func(time.Time) error { return nil },
		func(cpu int64) error {
			return checkCPU(ctx, liqo, consumerID(0), cpu)
		})
}

// editForAll edits a policy of the first consumer again and again, each time at a random moment
// after all streams were notified of the last edit. It calls edited with the time of each event,
// and notified with the expected offer once all streams were notified.
func (c *cluster) editForAll(ctx context.Context, policy *v1alpha1.ResourcePolicy, address string,
	period time.Duration, s fanOutSize,
	edited func(event time.Time) error, notified func(cpu int64) error,
) (pushes []fanOutPush, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a, err := listen(ctx, address, s.streams)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	edits, err := c.watchPolicies(ctx)
	if err != nil {
		return nil, err
	}
	for i := range s.edits {
		if err := pauseBetweenEdits(ctx, period); err != nil {
			return nil, err
		}
		cpu := firstCPU + 1 + int64(i)
		_, event, err := c.edit(ctx, policy, edits, cpu)
		if err != nil {
			return nil, err
		}
		if err := edited(event); err != nil {
			return nil, err
		}
		times, err := a.notified(ctx, notificationOf(consumerID(0)))
		if err != nil {
			return nil, err
		}
		if err := notified(cpu); err != nil {
			return nil, fmt.Errorf("after the notification: %w", err)
		}
		pushes = append(pushes, fanOutPush{start: event, notified: times, subscriber: i % s.streams})
	}
	return pushes, nil
}

func (c *cluster) deletePolicies(ctx context.Context) error {
	return c.client.DeleteAllOf(context.WithoutCancel(ctx), &v1alpha1.ResourcePolicy{})
}

// createManyConsumers creates policies that name so many consumers, each as many as it may, and
// returns a policy that selects only the first of them.
func (c *cluster) createManyConsumers(ctx context.Context, consumers int) (*v1alpha1.ResourcePolicy, error) {
	one, err := c.createPolicy(ctx, "edited", 1, v1alpha1.ClusterID(consumerID(0)))
	if err != nil {
		return nil, err
	}
	for i := 0; i < consumers; i += perPolicy {
		var ids []v1alpha1.ClusterID
		for k := i; k < min(i+perPolicy, consumers); k++ {
			ids = append(ids, v1alpha1.ClusterID(consumerID(k)))
		}
		if _, err := c.createPolicy(ctx, fmt.Sprintf("many-%d", i/perPolicy), 0, ids...); err != nil {
			return nil, err
		}
	}
	return one, nil
}
