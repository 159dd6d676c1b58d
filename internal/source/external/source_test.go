package external

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
)

// fake is a monitor without a network, for tests of what takes time.
type fake struct {
	mu sync.Mutex
	// answer answers a reading, dialled counts the connections, and reading the readings at present, of
	// which most is the largest number so far.
	answer                 func(ctx context.Context, id string) (capacity.Amounts, error)
	dialled, reading, most int
	reads                  []read
	// removes are the calls about consumers that are gone, which removing answers, if it is set.
	removes  []read
	removing func(id string) error
	notify   chan string
}

// read is one reading.
type read struct {
	id string
	at time.Duration
}

func (f *fake) dial(capacity.Monitor) (monitorConnection, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dialled++
	return fakeConnection{f}, nil
}

// set sets how the monitor answers.
func (f *fake) set(answer func(ctx context.Context, id string) (capacity.Amounts, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// figures returns the number of connections, the readings so far, and the most at a time.
func (f *fake) figures() (dialled int, reads []read, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dialled, f.reads, f.most
}

type fakeConnection struct{ *fake }

func (f fakeConnection) read(ctx context.Context, id string) (capacity.Amounts, error) {
	f.mu.Lock()
	answer := f.answer
	f.reading++
	f.most = max(f.most, f.reading)
	f.reads = append(f.reads, read{id, time.Since(start)})
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.reading--
		f.mu.Unlock()
	}()
	return answer(ctx, id)
}

func (f fakeConnection) subscribe(ctx context.Context, notified func(id string)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case id := <-f.notify:
			notified(id)
		}
	}
}

func (f fakeConnection) remove(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removes = append(f.removes, read{id, time.Since(start)})
	if f.removing == nil {
		return nil
	}
	return f.removing(id)
}

func (fakeConnection) close() {}

// start is when every synctest bubble begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

const timeout = 5 * time.Second

var (
	four  = capacity.Amounts{"cpu": 4000}
	three = capacity.Amounts{"cpu": 3000}
)

func always(a capacity.Amounts) func(context.Context, string) (capacity.Amounts, error) {
	return func(context.Context, string) (capacity.Amounts, error) { return a, nil }
}

// silent answers nothing until the timeout.
func silent(ctx context.Context, _ string) (capacity.Amounts, error) {
	if sleep(ctx, timeout, nil) {
		return nil, lost{error: errors.New("no answer within 5s"), silent: true}
	}
	return nil, lost{error: ctx.Err()}
}

// refused is a monitor whose port nobody listens at.
func refused(context.Context, string) (capacity.Amounts, error) {
	return nil, lost{error: errors.New("connection refused")}
}

// simulate runs a source with a fake clock and a fake monitor.
func simulate(t *testing.T, ids []string, test func(*fake, *source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: always(four), notify: make(chan string)}
		s := newSource(capacity.Monitor{Address: "plugin:1", Timeout: timeout}, f.dial, func() {}, logr.Discard())
		s.follow(ids)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { s.run(ctx); close(ended) }()
		synctest.Wait()
		test(f, s)
		stop()
		<-ended
	})
}

// pass lets time pass.
func TestEverythingIsReadAgainEvery20Seconds(t *testing.T) {
	simulate(t, []string{"rome"}, func(f *fake, s *source) {
		test.Pass(time.Minute)
		want := []time.Duration{0, refresh, 2 * refresh, 3 * refresh}
		var got []time.Duration
		_, reads, _ := f.figures()
		for _, r := range reads {
			if r.id == "rome" {
				got = append(got, r.at)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		f.set(always(three))
		test.Pass(refresh)
		if got := answered(s.book.answers(), "rome"); !cmp.Equal(got, three) {
			t.Errorf("got %v", got)
		}
	})
}

func TestADeadMonitorIsFoundWithinAMinute(t *testing.T) {
	for name, dead := range map[string]func(context.Context, string) (capacity.Amounts, error){"silent": silent, "refused": refused} {
		t.Run(name, func(t *testing.T) {
			simulate(t, []string{"oslo", "rome"}, func(f *fake, s *source) {
				f.set(dead)
				died := time.Now()
				for s.book.answers().Problem == "" {
					test.Pass(100 * time.Millisecond)
					if time.Since(died) > time.Minute {
						t.Fatal("it is not found")
					}
				}
				a := s.book.answers()
				if got := answered(a, "rome"); !cmp.Equal(got, four) || len(a.Distinct) != 1 || !a.Distinct[0].Stale {
					t.Errorf("got %+v, want the last answer, stale", a)
				}
				// It is tried again at the pace of lastRetry.
				before, _, _ := f.figures()
				test.Pass(time.Minute)
				after, _, _ := f.figures()
				if again := after - before; again < 5 || again > 12 {
					t.Errorf("%d connections in a minute", again)
				}
				f.set(always(three))
				test.Pass(lastRetry + timeout + maxProbe)
				if a := s.book.answers(); a.Problem != "" || !cmp.Equal(answered(a, "oslo"), three) || a.Distinct[0].Stale {
					t.Errorf("after it has come back: %+v", a)
				}
			})
		})
	}
}

func TestAShortFailureIsNotReported(t *testing.T) {
	simulate(t, []string{"rome"}, func(f *fake, s *source) {
		f.set(refused)
		for range 40 {
			test.Pass(time.Second)
			if p := s.book.answers().Problem; p != "" && time.Since(start) < refresh+patience {
				t.Fatalf("reported after %v: %s", time.Since(start), p)
			}
			if time.Since(start) == refresh+8*time.Second {
				f.set(always(three))
			}
		}
		if a := s.book.answers(); a.Problem != "" || !cmp.Equal(answered(a, "rome"), three) {
			t.Errorf("got %+v", a)
		}
	})
}

func TestSilenceAboutOneConsumerConcernsThatConsumer(t *testing.T) {
	simulate(t, []string{"lima", "oslo", "rome"}, func(f *fake, s *source) {
		f.set(func(ctx context.Context, id string) (capacity.Amounts, error) {
			if id == "oslo" {
				return silent(ctx, id)
			}
			return three, nil
		})
		test.Pass(time.Minute)
		a := s.book.answers()
		if want := "for oslo, no answer within 5s"; a.Problem != want {
			t.Errorf("got the problem %q, want %q", a.Problem, want)
		}
		for id, want := range map[string]capacity.Answer{"rome": {Amounts: three}, "lima": {Amounts: three}, "oslo": {Amounts: four, Stale: true}} {
			of, _ := a.For(id)
			if diff := cmp.Diff(want, a.Distinct[of.Index]); diff != "" {
				t.Errorf("%s: %s", id, diff)
			}
		}
		if dialled, _, _ := f.figures(); dialled != 1 {
			t.Errorf("%d connections, want the first one to stay", dialled)
		}
	})
}

func TestRefusalOfTheEmptyIDMattersOnlyWithoutConsumers(t *testing.T) {
	refuses := func(_ context.Context, id string) (capacity.Amounts, error) {
		if id == "" {
			return nil, errors.New("it knows no such cluster")
		}
		return four, nil
	}
	for ids, want := range map[string]string{"rome": "", "": "it knows no such cluster"} {
		var followed []string
		if ids != "" {
			followed = []string{ids}
		}
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: refuses, notify: make(chan string)}
			s := newSource(capacity.Monitor{Timeout: timeout}, f.dial, func() {}, logr.Discard())
			s.follow(followed)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { s.run(ctx); close(ended) }()
			test.Pass(time.Minute)
			if p := s.book.answers().Problem; p != want {
				t.Errorf("with %q: got the problem %q, want %q", ids, p, want)
			}
			stop()
			<-ended
		})
	}
}

func TestNotificationsAreTakenWhileReadingHangs(t *testing.T) {
	var ids []string
	for i := range 100 {
		ids = append(ids, fmt.Sprintf("consumer-%03d", i))
	}
	simulate(t, ids, func(f *fake, s *source) {
		f.set(silent)
		// Far more than the old plugins can have unread, in turns, and about anybody.
		for i := range 50_000 {
			f.notify <- []string{"", ids[i%100], fmt.Sprint("unknown-", i)}[i%3]
		}
		if _, _, most := f.figures(); most != maxReads {
			t.Errorf("%d readings at a time, want %d", most, maxReads)
		}
		s.mu.Lock()
		due := len(s.due)
		s.mu.Unlock()
		if n := due; n > len(ids)+1 {
			t.Errorf("%d consumers wait for a reading", n)
		}
		f.set(always(three))
		test.Pass(time.Minute)
		if got := answered(s.book.answers(), ids[7]); !cmp.Equal(got, three) {
			t.Errorf("got %v", got)
		}
	})
}

func TestABurstOfNotificationsIsOneReading(t *testing.T) {
	simulate(t, []string{"rome"}, func(f *fake, _ *source) {
		test.Pass(time.Second)
		_, before, _ := f.figures()
		for range 500 {
			f.notify <- "rome"
		}
		test.Pass(time.Second)
		_, after, _ := f.figures()
		if n := len(after) - len(before); n < 1 || n > 2 {
			t.Errorf("%d readings after a burst", n)
		}
	})
}

func TestAMonitorThatAnswersSomethingElseEachTimeWakesAtItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		f := &fake{notify: make(chan string), answer: func(context.Context, string) (capacity.Amounts, error) {
			return capacity.Amounts{"cpu": n.Add(1)}, nil
		}}
		var woken atomic.Int64
		s := newSource(capacity.Monitor{Timeout: timeout}, f.dial, func() { woken.Add(1) }, logr.Discard())
		s.follow([]string{"oslo", "rome"})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { s.run(ctx); close(ended) }()
		for range 1000 {
			f.notify <- ""
			test.Pass(10 * time.Millisecond)
		}
		if most := int64(10*time.Second/newsPause) + 1; woken.Load() > most || woken.Load() < most/2 {
			t.Errorf("woken %d times in 10 s, want at most %d", woken.Load(), most)
		}
		// The last news is not lost.
		f.set(always(three))
		f.notify <- ""
		before := woken.Load()
		test.Pass(2 * newsPause)
		if woken.Load() == before || !cmp.Equal(answered(s.book.answers(), "rome"), three) {
			t.Error("the last news is lost")
		}
		stop()
		<-ended
	})
}

func TestWhatWasRefusedIsReadAgainSoonWhateverElseIsRead(t *testing.T) {
	simulate(t, []string{"oslo", "rome"}, func(f *fake, s *source) {
		f.set(func(_ context.Context, id string) (capacity.Amounts, error) {
			if id == "oslo" {
				return nil, errors.New("it answers no pools")
			}
			return four, nil
		})
		f.notify <- "oslo"
		test.Pass(time.Second)
		for range 60 { // Rome is read twice a second.
			f.notify <- "rome"
			test.Pass(500 * time.Millisecond)
		}
		if p := s.book.answers().Problem; p != "for oslo, it answers no pools" {
			t.Errorf("got the problem %q", p)
		}
		f.set(always(three))
		for range 14 {
			f.notify <- "rome"
			test.Pass(500 * time.Millisecond)
		}
		if a := s.book.answers(); a.Problem != "" || !cmp.Equal(answered(a, "oslo"), three) {
			t.Errorf("got %+v", a)
		}
	})
}
