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

// crowdSize is how many consumers the operator knows, how many streams are open, and how often a policy is edited.
type crowdSize struct{ consumers, streams, edits int }

// perPolicy is how many consumers a policy may name.
const perPolicy = 250

// measureCrowd measures pushes to many streams of an operator that knows many consumers, all of which were read: what changes is the offer of one.
// The streams are spread evenly over a few connections, as they would be behind a proxy; whoever reads a connection looks at the time with each
// frame. Beside it, a bare server is told of each edit when an operator of that batch period begins to work, and sends as many streams a message that
// was encoded before: it is what an operator would take that had nothing to work out.
func (c *cluster) measureCrowd(ctx context.Context, s crowdSize, r *report) error {
	t := r.section(fmt.Sprintf("A push to %s streams with %s consumers, %d edits, from the event", thousands(s.streams), thousands(s.consumers), s.edits),
		"server", "batch period", "one stream, median", "one stream, p99", "median of all, median", "last of all, median", "last of all, p99")
	one, middle, last := crowdPush.one, crowdPush.middle, crowdPush.last
	for _, period := range batchPeriods {
		bare, err := c.bareCrowd(ctx, period, s)
		if err != nil {
			return fmt.Errorf("the bare server, with a batch period of %v: %w", period, err)
		}
		ours, err := c.ourCrowd(ctx, period, s)
		if err != nil {
			return fmt.Errorf("with a batch period of %v: %w", period, err)
		}
		for _, row := range []struct {
			name string
			all  []crowdPush
		}{{"bare", bare}, {"the operator", ours}} {
			t.row(row.name, period.String(), span(crowdQuantile(row.all, one, 0.5)), span(crowdQuantile(row.all, one, 0.99)),
				span(crowdQuantile(row.all, middle, 0.5)), span(crowdQuantile(row.all, last, 0.5)), span(crowdQuantile(row.all, last, 0.99)))
		}
		if period == 0 {
			// From the first stream that is told to the last: the sending alone.
			r.ratio(fmt.Sprintf("%s streams are told, from the first to the last, median", thousands(s.streams)), "bare grpc-go",
				quotients([]float64{crowdQuantile(ours, crowdPush.spread, 0.5)}, []float64{crowdQuantile(bare, crowdPush.spread, 0.5)}))
			continue
		}
		for _, q := range []struct {
			name string
			of   float64
		}{{"median", 0.5}, {"p99", 0.99}} {
			what := fmt.Sprintf("an edit reaches one of %s streams, %s", thousands(s.streams), q.name)
			got := []float64{crowdQuantile(ours, one, q.of)}
			r.ratio(what, "the batch period and 5 ms", quotients(got, []float64{float64(period + 5*time.Millisecond)}))
			r.ratio(what, "bare grpc-go that is told then", quotients(got, []float64{crowdQuantile(bare, one, q.of)}))
		}
	}
	return nil
}

// crowdPush is one push: when it began, and when each stream was told.
type crowdPush struct {
	start time.Time
	told  []time.Time
	// subscriber is the stream that stands for any one.
	subscriber int
}

func (p crowdPush) one() float64 { return float64(p.told[p.subscriber].Sub(p.start)) }
func (p crowdPush) last() float64 {
	return float64(slices.MaxFunc(p.told, time.Time.Compare).Sub(p.start))
}
func (p crowdPush) spread() float64 {
	return p.last() - float64(slices.MinFunc(p.told, time.Time.Compare).Sub(p.start))
}

func (p crowdPush) middle() float64 {
	after := make([]float64, len(p.told))
	for i, at := range p.told {
		after[i] = float64(at.Sub(p.start))
	}
	return quantile(after, 0.5)
}

func crowdQuantile(all []crowdPush, figure func(crowdPush) float64, q float64) float64 {
	figures := make([]float64, len(all))
	for i, p := range all {
		figures[i] = figure(p)
	}
	return quantile(figures, q)
}

// audience are the streams of a server, listened to.
type audience struct {
	streams int
	open    []*subscriptions
	// heard has what the streams of a connection were told, each time that there is a message for each: to hand over every message by itself
	// would have two goroutines wake each other, on the cores that the server needs too.
	heard   chan []heard
	reading sync.WaitGroup
	// failed is closed when one of the connections ends by itself, of which err says why.
	failed chan struct{}
	err    error
	once   sync.Once
}

// heard is a message of a stream, the numbers of which go round the connections.
type heard struct {
	stream  int
	message string
	at      time.Time
}

// listen opens so many streams, and takes the first message of each.
func listen(ctx context.Context, address string, streams int) (*audience, error) {
	a := &audience{streams: streams, heard: make(chan []heard, connections), failed: make(chan struct{})}
	for i := range min(connections, streams) {
		s, err := openSubscriptions(ctx, address, (streams-i+connections-1)/connections)
		if err != nil {
			return nil, errors.Join(err, a.close())
		}
		a.open = append(a.open, s)
		a.reading.Go(func() {
			all, last := make([]heard, 0, s.streams), ""
			err := s.each(func(stream int, message []byte, at time.Time) {
				if string(message) != last {
					last = string(message)
				}
				all = append(all, heard{stream: stream*connections + i, message: last, at: at})
				if len(all) == s.streams {
					a.heard <- all
					all = make([]heard, 0, s.streams)
				}
			})
			a.once.Do(func() { a.err = err; close(a.failed) })
		})
	}
	if _, err := a.told(ctx, nil); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *audience) close() error {
	var err error
	for _, s := range a.open {
		err = errors.Join(err, s.Close())
	}
	// Whoever reads may be about to tell of a last message.
	go func() {
		a.reading.Wait()
		close(a.heard)
	}()
	for range a.heard {
	}
	return err
}

// told returns when each stream was told so. A stream that is told of anything else, or twice, is an error.
func (a *audience) told(ctx context.Context, message []byte) ([]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	times := make([]time.Time, a.streams)
	for n := 0; n < a.streams; {
		select {
		case all := <-a.heard:
			for _, h := range all {
				if h.message != string(message) {
					return nil, fmt.Errorf("stream %d is told %q, want %q", h.stream, h.message, message)
				}
				if !times[h.stream].IsZero() {
					return nil, fmt.Errorf("stream %d is told %q twice", h.stream, message)
				}
				times[h.stream] = h.at
			}
			n += len(all)
		case <-a.failed:
			return nil, fmt.Errorf("a connection has ended: %w", a.err)
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting until all streams are told, of whose connections %d of %d were: %w", n, a.streams, context.Cause(ctx))
		}
	}
	return times, nil
}

// bareCrowd has a bare server send each stream a message half a batch period after the event of an edit, or a period after the one before.
func (c *cluster) bareCrowd(ctx context.Context, period time.Duration, s crowdSize) (pushes []crowdPush, err error) {
	policy, err := c.createCrowd(ctx, s.consumers)
	defer func() { err = errors.Join(err, c.deletePolicies(ctx)) }()
	if err != nil {
		return nil, err
	}
	server, err := startServer(ctx, serveTelling, connections, nil)
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
		return server.ask(askTell)
	}
	return c.editForAll(ctx, policy, server.address, period, s, tell, func(int64) error { return nil })
}

// ourCrowd has an operator of the batch period tell each stream of an edit.
func (c *cluster) ourCrowd(ctx context.Context, period time.Duration, s crowdSize) (pushes []crowdPush, err error) {
	policy, err := c.createCrowd(ctx, s.consumers)
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
	// What is read for the first time is read once the operator has seen all policies, so nobody is told of it.
	for i := range s.consumers {
		if err := checkCPU(ctx, liqo, consumerID(i), firstCPU); err != nil {
			return nil, fmt.Errorf("before the first edit: %w", err)
		}
	}
	return c.editForAll(ctx, policy, operator.address, period, s, func(time.Time) error { return nil }, func(cpu int64) error {
		return checkCPU(ctx, liqo, consumerID(0), cpu)
	})
}

// editForAll edits a policy that is for the first consumer again and again, each time at some moment after all streams were told of the last edit. It
// calls edited with the time of each event, and told with what the consumer must be offered when all have been told.
func (c *cluster) editForAll(ctx context.Context, policy *v1alpha1.ResourcePolicy, address string, period time.Duration, s crowdSize,
	edited func(event time.Time) error, told func(cpu int64) error,
) (pushes []crowdPush, err error) {
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
		times, err := a.told(ctx, notificationOf(consumerID(0)))
		if err != nil {
			return nil, err
		}
		if err := told(cpu); err != nil {
			return nil, fmt.Errorf("after the notification: %w", err)
		}
		pushes = append(pushes, crowdPush{start: event, told: times, subscriber: i % s.streams})
	}
	return pushes, nil
}

func (c *cluster) deletePolicies(ctx context.Context) error {
	return c.client.DeleteAllOf(context.WithoutCancel(ctx), &v1alpha1.ResourcePolicy{})
}

// createCrowd creates policies that name so many consumers, each no more than it may, and returns one that is for the first of them alone.
func (c *cluster) createCrowd(ctx context.Context, consumers int) (*v1alpha1.ResourcePolicy, error) {
	one, err := c.createPolicy(ctx, "edited", 1, v1alpha1.ClusterID(consumerID(0)))
	if err != nil {
		return nil, err
	}
	for i := 0; i < consumers; i += perPolicy {
		var ids []v1alpha1.ClusterID
		for k := i; k < min(i+perPolicy, consumers); k++ {
			ids = append(ids, v1alpha1.ClusterID(consumerID(k)))
		}
		if _, err := c.createPolicy(ctx, fmt.Sprintf("crowd-%d", i/perPolicy), 0, ids...); err != nil {
			return nil, err
		}
	}
	return one, nil
}
