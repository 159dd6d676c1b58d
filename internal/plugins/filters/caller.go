package filters

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/visible"
)

const (
	// callBound is how long an evaluation waits for one call.
	callBound = 100 * time.Millisecond
	// maxWhy bounds the reasons that filters give, in bytes.
	maxWhy = 200
	// logPeriod is the time between two log lines on panics of one filter.
	logPeriod = 10 * time.Second
)

// filterAnswer is the answer of a filter about an object. The reason is empty if the filter admits the object.
type filterAnswer struct {
	ruling offer.Ruling
	why    string
}

// patience bounds how long somebody waits for calls.
type patience interface {
	// next returns how long to wait for the next call of the filter, 0 for not at all.
	next(c *caller) time.Duration
	// spend subtracts the time of a call.
	spend(c *caller, took time.Duration)
}

// lane makes calls one at a time, each in a goroutine of its own. A call that hangs keeps its goroutine, and
// the lane makes no other call until it returns.
type lane struct {
	// calling is held during a call.
	calling chan struct{}
	// began is when the present call began, nil if there is none.
	began atomic.Pointer[time.Time]
}

func newLane() *lane { return &lane{calling: make(chan struct{}, 1)} }

// took returns for how long the present call has run, 0 if there is none.
func (l *lane) took() time.Duration {
	if began := l.began.Load(); began != nil {
		return time.Since(*began)
	}
	return 0
}

// caller makes the calls of one filter. Evaluations and rehearsals have a lane each: an evaluation never waits
// for a call of a rehearsal.
type caller struct {
	// of names the kind of the objects, as the metrics do.
	name, of string
	log      logr.Logger
	// again causes an evaluation that asks about these objects.
	again                   func(keys []string)
	evaluations, rehearsals *lane
	// budget is shared by all filters of the chain.
	budget *budget

	// questions counts the calls that have ended, by result.
	questions *prometheus.CounterVec
	// panics bounds the log lines on panics.
	panics rate.Sometimes

	mu sync.Mutex
	// unanswered maps the objects without an answer to the round in which a question was missed last.
	unanswered map[string]int
	round      int
}

func newCaller(
	name, of string, log logr.Logger, again func(keys []string), b *budget, questions *prometheus.CounterVec,
) *caller {
	c := &caller{
		name: name, of: of, log: log.WithValues("filter", name), again: again, budget: b,
		evaluations: newLane(), rehearsals: newLane(), panics: rate.Sometimes{Interval: logPeriod},
		unanswered: map[string]int{},
		questions:  questions.MustCurryWith(prometheus.Labels{"filter": name, "of": of}),
	}
	for _, result := range []string{resultAdmitted, resultLeftOut, resultPanic} {
		c.questions.WithLabelValues(result)
	}
	return c
}

// call asks a question, and returns the answer if it arrives in time. Also a late answer is remembered. Nothing
// is asked while a call of an evaluation hangs.
func (c *caller) call(
	l *lane, question func() (ask func() (ok bool, why string)), p patience, remember func(filterAnswer),
) (got filterAnswer, inTime bool) {
	if max(l.took(), c.evaluations.took()) >= callBound {
		return filterAnswer{}, false
	}
	wait := p.next(c)
	if wait == 0 {
		return filterAnswer{}, false
	}
	start := time.Now()
	defer func() { p.spend(c, time.Since(start)) }()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case l.calling <- struct{}{}:
	case <-timer.C:
		return filterAnswer{}, false
	}
	l.began.Store(new(time.Now()))
	answered := make(chan filterAnswer, 1)
	go c.run(l, question(), remember, answered)
	select {
	case got = <-answered:
		return got, true
	case <-timer.C:
	}
	select {
	case got = <-answered: // The process was paused, and both have happened.
		return got, true
	default:
		return filterAnswer{}, false
	}
}

// run makes one call, and hands over the answer, also if the call panics or ends the goroutine.
func (c *caller) run(
	l *lane, ask func() (ok bool, why string), remember func(filterAnswer), answered chan<- filterAnswer,
) {
	got := filterAnswer{offer.Refused, "left out because " + c.name + " ends its goroutine instead of answering"}
	result := resultPanic
	defer func() {
		if r := recover(); r != nil {
			text := tidy(fmt.Sprint(r))
			got.why = "left out because " + c.name + " panics: " + text
			c.panics.Do(func() {
				c.log.Error(nil, "The filter panicked; what it was asked about is left out",
					"panic", text, "stack", string(debug.Stack()))
			})
		}
		remember(got)
		c.questions.WithLabelValues(result).Inc()
		l.began.Store(nil)
		<-l.calling
		answered <- got
	}()
	ok, why := ask()
	if ok {
		got, result = filterAnswer{}, resultAdmitted
		return
	}
	if why = tidy(why); why != "" {
		why = ": " + why
	}
	got, result = filterAnswer{offer.Refused, "left out by " + c.name + why}, resultLeftOut
}

// tidy makes a text of others fit to be shown in a line.
func tidy(text string) string {
	if len(text) > 2*maxWhy {
		text = text[:2*maxWhy] // What follows is not read at all.
	}
	text = visible.Blank(strings.ToValidUTF8(text, ""))
	return kube.Shorten(strings.Join(strings.Fields(text), " "), maxWhy)
}
