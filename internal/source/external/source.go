package external

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/sets"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
)

const (
	// maxReads bounds the calls to a monitor at a time.
	maxReads = 4
	// refresh is the time between two readings about all consumers, if nothing was notified.
	refresh = 20 * time.Second
	// firstRetry is the pause after a failure. It doubles with each further one, up to lastRetry.
	firstRetry, lastRetry = 500 * time.Millisecond, 5 * time.Second
	// pause is the least time between two rounds of readings. A round that takes longer is followed by a
	// pause as long as itself, up to maxPause.
	pause, maxPause = 100 * time.Millisecond, time.Second
	// maxNotified notifications are taken in a notifiedWindow. The sender of more of them is held back.
	maxNotified    = 1000
	notifiedWindow = 100 * time.Millisecond
	// newsPause is the least time between two wake-ups by one source: a monitor that answers something else
	// each time must not have everything evaluated all the time.
	newsPause = 500 * time.Millisecond
)

// source reads one monitor.
type source struct {
	monitor capacity.Monitor
	dial    func(capacity.Monitor) (monitorConnection, error)
	book    *book
	// news wakes after each change.
	news debounce.DelayedWake
	log  logr.Logger
	// settled is closed after the first round of readings, and when it has failed.
	settled chan struct{}
	stop    context.CancelFunc
	counts  counts
	// unavailable is the state that was logged last. Only run uses it.
	unavailable bool

	mu sync.Mutex
	// due are the consumers to read, or all of them. kick wakes the loop when there are.
	due    sets.Set[string]
	dueAll bool
	kick   chan struct{}
}

// counts are the figures of a source for metrics.
type counts struct {
	read, refused, lost, notified, removed, givenUp atomic.Uint64
}

func newSource(
	m capacity.Monitor, dial func(capacity.Monitor) (monitorConnection, error), wake func(), log logr.Logger,
) *source {
	return &source{
		monitor: m, dial: dial, book: newBook(), log: log.WithValues("address", m.Address),
		news:    debounce.DelayedWake{Wake: wake, Pause: newsPause},
		settled: make(chan struct{}), stop: func() {}, due: sets.Set[string]{}, kick: make(chan struct{}, 1),
	}
}

// follow sets the consumers that the monitor is asked about. It returns those that are new, and those that
// it was asked about and no longer is.
func (s *source) follow(ids []string) (added, left []string) {
	added, left = s.book.follow(ids)
	s.want(added...)
	return added, left
}

// want schedules a reading of consumers.
func (s *source) want(ids ...string) {
	if len(ids) == 0 {
		return
	}
	s.mu.Lock()
	s.due.Insert(ids...)
	s.mu.Unlock()
	s.nudge()
}

// wantAll schedules a reading of every consumer.
func (s *source) wantAll() {
	s.mu.Lock()
	s.dueAll = true
	s.mu.Unlock()
	s.nudge()
}

func (s *source) nudge() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// take returns the consumers to read now, and clears them.
func (s *source) take() []string {
	s.mu.Lock()
	due, all := s.due, s.dueAll
	s.due, s.dueAll = sets.Set[string]{}, false
	s.mu.Unlock()
	return slices.DeleteFunc(s.book.all(), func(id string) bool { return !all && !due.Has(id) })
}

// run reads the monitor until the context ends. Each connection that fails is followed by another one,
// after a pause.
func (s *source) run(ctx context.Context) {
	settle := sync.OnceFunc(func() { close(s.settled) })
	defer settle()
	defer s.news.Stop()
	retry := firstRetry
	for ctx.Err() == nil {
		began := time.Now()
		answered, err := s.session(ctx, settle)
		if ctx.Err() != nil {
			return
		}
		if answered {
			retry = firstRetry
		}
		if gone, ok := errors.AsType[lost](err); ok {
			began = gone.began
		}
		s.counts.lost.Add(1)
		s.log.V(1).Info("An external source cannot be read; trying again", "problem", err.Error(), "pause", retry)
		if s.book.lose(err.Error(), began, time.Now()) {
			s.news.After(0)
		}
		s.logAvailability()
		settle()
		if !sleep(ctx, retry, nil) {
			return
		}
		retry = min(2*retry, lastRetry)
	}
}

// session reads over one connection until it is lost, and reports whether anything was answered.
func (s *source) session(ctx context.Context, settle func()) (answered bool, err error) {
	conn, err := s.dial(s.monitor)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var subscriber sync.WaitGroup
	// In this order: the subscriber ends with its context, and then nobody uses the connection.
	defer conn.close()
	defer subscriber.Wait()
	defer cancel()
	s.wantAll()
	subscriber.Go(func() { s.listen(ctx, conn) })
	// What was refused is read again at a time, zero for none, after a pause that doubles.
	var full, again time.Time
	var retry time.Duration
	for {
		if time.Since(full) >= refresh {
			s.wantAll()
			full = time.Now()
		}
		if !again.IsZero() && !time.Now().Before(again) {
			s.want(s.book.refused()...)
		}
		began, r := time.Now(), &round{source: s, conn: conn}
		if err := r.read(ctx, s.take()); err != nil {
			return answered || r.heard.Load() > 0, err
		}
		switch {
		case len(s.book.refused()) == 0:
			retry, again = 0, time.Time{}
		case !again.After(began):
			retry = min(max(firstRetry, 2*retry), lastRetry)
			again = time.Now().Add(retry)
		}
		answered = answered || r.heard.Load() > 0
		settle()
		s.logAvailability()
		if !sleep(ctx, min(max(pause, time.Since(began)), maxPause), nil) {
			return answered, ctx.Err()
		}
		until := full.Add(refresh)
		if !again.IsZero() && again.Before(until) {
			until = again
		}
		if !sleep(ctx, time.Until(until), s.kick) {
			return answered, ctx.Err()
		}
	}
}

// listen takes notifications until the context ends, and subscribes again when a stream ends. It never
// waits for readings: a monitor that is not listened to may stop working for all its clients.
func (s *source) listen(ctx context.Context, conn monitorConnection) {
	retry, pace := firstRetry, rate.NewLimiter(rate.Every(notifiedWindow/maxNotified), maxNotified)
	for {
		began := time.Now()
		err := conn.subscribe(ctx, func(id string) {
			s.notified(id)
			_ = pace.Wait(ctx)
		})
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > lastRetry {
			retry = firstRetry
		}
		s.log.V(1).Info("An external source has ended its notifications; subscribing again",
			"error", err.Error(), "pause", retry)
		if !sleep(ctx, retry, nil) {
			return
		}
		retry = min(2*retry, lastRetry)
		s.wantAll() // Changes in between were not notified.
	}
}

// notified has what a notification is about read again.
func (s *source) notified(id string) {
	s.counts.notified.Add(1)
	switch {
	case id == "":
		s.wantAll()
	case s.book.follows(id):
		s.want(id)
	}
}

// logAvailability writes to the log when the monitor becomes available, and when it is no longer.
func (s *source) logAvailability() {
	problem := s.book.answers().Problem
	if unavailable := problem != ""; unavailable != s.unavailable {
		s.unavailable = unavailable
		if unavailable {
			s.log.Info("An external source is unavailable", "problem", problem)
		} else {
			s.log.Info("An external source is available again")
		}
	}
}

// sleep waits, at most until it receives from wake, and reports false if the context has ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(max(0, d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C:
	}
	return true
}
