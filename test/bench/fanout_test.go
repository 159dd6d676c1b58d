package bench

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"proffer.dev/proffer/api/v1alpha1"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/bench/population"
)

// perPolicy is the maximum number of consumers that a policy may name.
const perPolicy = 250

// BenchmarkFanOut measures notifications to 1,000 streams. The operator knows 10,000 consumers, all of
// which have been read; each edit, the iteration, changes the offer of one. The streams are spread
// evenly over a few connections, as behind a proxy. For comparison, a bare server sends an encoded
// message to as many streams at the moment when an operator with that batch period would start to work.
// It is an operator that has nothing to compute.
func BenchmarkFanOut(b *testing.B) {
	consumers, streams := 10_000, 1_000
	if testing.Short() {
		consumers, streams = 300, 20
	}
	c, program := startCluster(b), build(b, "serve")
	edited := c.createPolicy(b, "edited", 1, v1alpha1.ClusterID(population.Consumer(0)))
	for i := 0; i < consumers; i += perPolicy {
		var ids []v1alpha1.ClusterID
		for k := i; k < min(i+perPolicy, consumers); k++ {
			ids = append(ids, v1alpha1.ClusterID(population.Consumer(k)))
		}
		c.createPolicy(b, fmt.Sprintf("many-%d", i/perPolicy), 0, ids...)
	}
	for _, period := range batchPeriods {
		b.Run("server=bare/period="+period.String(), func(b *testing.B) {
			s, last := startServer(b, program, "bare", connections, nil), time.Time{}
			c.fanOut(b, edited, s.first, period, streams, func(event time.Time) {
				pause(max(period/2-time.Since(event), period-time.Since(last)))
				last = time.Now()
				s.ask("broadcast")
			}, func(int64) {})
		})
		b.Run("server=ours/period="+period.String(), func(b *testing.B) {
			address := c.startOperator(b, period).Address("grpc")
			liqo := wire.NewResourceReaderClient(dial(b, address))
			cpu := edited.Spec.Offer.Fixed["cpu"]
			// The first read of each consumer follows the operator's first sight of all policies, so
			// these reads cause no notification.
			for i := range consumers {
				want := int64(firstCPU)
				if i == 0 {
					want = cpu.Value()
				}
				checkCPU(b, liqo, population.Consumer(i), want)
			}
			c.fanOut(b, edited, address, period, streams, func(time.Time) {},
				func(cpu int64) { checkCPU(b, liqo, population.Consumer(0), cpu) })
		})
	}
}

// fanOut edits the policy, calls edited with the time of each event, waits until all streams are
// notified, and calls notified with the offer.
func (c *cluster) fanOut(b *testing.B, policy *v1alpha1.ResourcePolicy, address string, period time.Duration,
	streams int, edited func(event time.Time), notified func(cpu int64),
) {
	b.Helper()
	message, err := proto.Marshal(&wire.ClusterIdentity{ClusterID: population.Consumer(0)})
	test.Must(b, err)
	r, e := listen(b, address, streams), c.newEditor(b, policy)
	cpu := policy.Spec.Offer.Fixed["cpu"]
	e.cpu = cpu.Value()
	var one, middle, last, spread []float64
	for b.Loop() {
		_, event := e.edit(b, period)
		edited(event)
		times := r.notified(b, string(message))
		notified(e.cpu)
		after := make([]float64, streams)
		for i, at := range times {
			after[i] = float64(at.Sub(event))
		}
		one = append(one, after[len(one)%streams])
		middle = append(middle, quantile(after, 0.5))
		last = append(last, slices.Max(after))
		spread = append(spread, slices.Max(after)-slices.Min(after))
	}
	b.ReportMetric(0, "ns/op") // reports nothing
	reportTimes(b, "one", one)
	reportTimes(b, "last", last)
	b.ReportMetric(quantile(middle, 0.5)/1e6, "middle-p50-ms")
	b.ReportMetric(quantile(spread, 0.5)/1e6, "first-to-last-p50-ms")
}

// receiver reads the streams of a server.
type receiver struct {
	streams int
	open    []*subscriptions
	// received gets one message of each stream of a connection at a time. Passing each message on
	// its own would make two goroutines wake each other, on the cores that the server needs too.
	received chan []delivery
	reading  sync.WaitGroup
	// failed gets the reason if a connection ends by itself.
	failed chan error
}

// delivery is a message of a stream. Consecutive stream numbers are on different connections.
type delivery struct {
	stream  int
	message string
	at      time.Time
}

// listen opens so many streams, which end with the benchmark, and reads the first message of each. The
// goroutine that reads a connection takes the time at which each frame arrives.
func listen(b *testing.B, address string, streams int) *receiver {
	b.Helper()
	r := &receiver{streams: streams, received: make(chan []delivery, connections), failed: make(chan error, connections)}
	b.Cleanup(r.close)
	for i := range min(connections, streams) {
		s, err := openSubscriptions(b.Context(), address, (streams-i+connections-1)/connections)
		test.Must(b, err)
		r.open = append(r.open, s)
		r.reading.Go(func() {
			all, last := make([]delivery, 0, s.streams), ""
			r.failed <- s.each(func(stream int, message []byte, at time.Time) {
				if string(message) != last {
					last = string(message)
				}
				all = append(all, delivery{stream: stream*connections + i, message: last, at: at})
				if len(all) == s.streams {
					r.received <- all
					all = make([]delivery, 0, s.streams)
				}
			})
		})
	}
	r.notified(b, "")
	return r
}

func (r *receiver) close() {
	for _, s := range r.open {
		_ = s.Close()
	}
	// A reader may be about to send a last message.
	go func() {
		r.reading.Wait()
		close(r.received)
	}()
	for range r.received {
	}
}

// notified returns when each stream received the message. Another message, or a second one, is an error.
func (r *receiver) notified(b *testing.B, message string) []time.Time {
	b.Helper()
	timeout, times := time.After(stepTimeout), make([]time.Time, r.streams)
	for n := 0; n < r.streams; {
		select {
		case all := <-r.received:
			for _, d := range all {
				if d.message != message || !times[d.stream].IsZero() {
					b.Fatalf("stream %d received %q, want %q once", d.stream, d.message, message)
				}
				times[d.stream] = d.at
			}
			n += len(all)
		case err := <-r.failed:
			b.Fatal(errors.Join(errors.New("a connection ended"), err))
		case <-timeout:
			b.Fatalf("%d of %d streams were notified", n, r.streams)
		}
	}
	return times
}
