package filters

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/visible"
	"proffer.dev/proffer/plugin"
)

const (
	// patience is how long an evaluation waits for one call.
	patience = 100 * time.Millisecond
	// maxWait is how long evaluations wait for all calls of a filter together in each waitPeriod. A
	// filter that takes 10 us answers all questions of 5,000 nodes and 20 policies in that time.
	maxWait    = time.Second
	waitPeriod = 10 * time.Second
	// maxWhy bounds the reasons that filters give, in bytes.
	maxWhy = 200
	// logPeriod is the time between two log lines on the same fault of a filter.
	logPeriod = 10 * time.Second
)

// answer is what a filter said of an object. It is empty if the filter admits the object, else it is
// why not.
type answer string

// question is one question to a filter.
type question struct {
	// ask calls the filter.
	ask func() (ok bool, why string)
	// late takes the answer if nobody waits for it any more. A question without late is dropped then.
	late func(answer)
	// of is the policy that the question is about.
	of *plugin.Policy

	answered chan struct{}
	// answer is set when answered is closed. abandoned is guarded by the caller's lock.
	answer    answer
	abandoned bool
	// called is set once the call begins, guarded likewise.
	called bool
}

// caller makes the calls of one filter, one at a time. Its goroutine lives while there are questions.
type caller struct {
	name string
	log  logr.Logger

	mu sync.Mutex
	// urgent are the questions of evaluations; others come after them.
	urgent, others []*question
	running        bool
	// called is when the present call began, the zero time if there is none.
	called time.Time
	// waited is how long evaluations have waited since a time.
	since  time.Time
	waited time.Duration
	counts [outcomes]uint64
	logged [outcomes]time.Time
}

// outcome is what came of a question.
type outcome int

const (
	admitted outcome = iota
	leftOut
	panicked
	contradicted
	outcomes
)

// String returns the outcome as a label of metrics.
func (o outcome) String() string {
	return [...]string{"admitted", "left_out", "panic", "contradiction"}[o]
}

// put asks an urgent question, and returns the answer if it arrives in time.
func (c *caller) put(q *question) (answer, bool) {
	c.mu.Lock()
	start := time.Now()
	if start.Sub(c.since) >= waitPeriod {
		c.since, c.waited = start, 0
	}
	wait := min(patience, maxWait-c.waited)
	if c.stuck(start) {
		wait = 0
	}
	c.urgent = append(c.urgent, q)
	c.start()
	c.mu.Unlock()

	a, answered := c.await(q, wait)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waited += time.Since(start)
	return a, answered
}

// replace makes a question that nobody waits for any more another one, unless its call has begun.
func (c *caller) replace(q, by *question) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.called || !q.abandoned {
		return false
	}
	q.ask, q.late = by.ask, by.late
	return true
}

// putOther asks a question that is not urgent, and returns the answer if it arrives within wait.
func (c *caller) putOther(q *question, wait time.Duration) (answer, bool) {
	c.mu.Lock()
	c.others = append(c.others, q)
	c.start()
	c.mu.Unlock()
	return c.await(q, wait)
}

// idle reports whether there is no question.
func (c *caller) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.running
}

// stuck reports whether the present call takes so long that waiting for it is no use.
func (c *caller) stuck(now time.Time) bool {
	return !c.called.IsZero() && now.Sub(c.called) >= patience
}

// start starts the goroutine, if it is not running.
func (c *caller) start() {
	if !c.running {
		c.running = true
		go c.run()
	}
}

// await waits for the answer. Without one the question is abandoned.
func (c *caller) await(q *question, wait time.Duration) (answer, bool) {
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-q.answered:
			return q.answer, true
		case <-timer.C:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-q.answered:
		return q.answer, true
	default:
		q.abandoned = true
		if q.late == nil {
			c.others = slices.DeleteFunc(c.others, func(o *question) bool { return o == q })
		}
		return "", false
	}
}

// drop forgets the questions about an edit of a policy. Otherwise they would pile up with each edit
// while a call hangs.
func (c *caller) drop(p *plugin.Policy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.urgent = slices.DeleteFunc(c.urgent, func(q *question) bool { return q.of == p && q.abandoned })
}

// run makes calls until there are no more questions.
func (c *caller) run() {
	done := false
	defer func() {
		if !done { // A filter may end the goroutine that calls it, with runtime.Goexit.
			go c.run()
		}
	}()
	for q := c.next(); q != nil; q = c.next() {
		c.answer(q)
	}
	done = true
}

// answer makes the call for a question, and hands over the answer, also if the call ends this
// goroutine.
func (c *caller) answer(q *question) {
	a, o := answer("left out because "+c.name+" ends its goroutine instead of answering"), panicked
	defer func() {
		c.mu.Lock()
		c.counts[o]++
		q.answer = a
		close(q.answered)
		late := q.abandoned && q.late != nil
		c.mu.Unlock()
		if late {
			q.late(a)
		}
	}()
	a, o = c.call(q)
}

// next takes the next question. If there is none, it returns nil, and the goroutine has to end.
func (c *caller) next() *question {
	c.mu.Lock()
	defer c.mu.Unlock()
	queue := &c.urgent
	if len(*queue) == 0 {
		queue = &c.others
	}
	if len(*queue) == 0 {
		c.urgent, c.others, c.running, c.called = nil, nil, false, time.Time{}
		return nil
	}
	q := (*queue)[0]
	(*queue)[0], *queue = nil, (*queue)[1:]
	c.called, q.called = time.Now(), true
	return q
}

// call calls the filter twice, and compares what it says.
func (c *caller) call(q *question) (a answer, o outcome) {
	defer func() {
		if r := recover(); r != nil {
			text := tidy(fmt.Sprint(r))
			a, o = answer("left out because "+c.name+" panics: "+text), panicked
			if c.mayLog(panicked) {
				c.log.Error(nil, "The filter panicked; what it was asked about is left out",
					"panic", text, "stack", string(debug.Stack()))
			}
		}
	}()
	ok, why := q.ask()
	again, whyAgain := q.ask()
	switch {
	case ok != again:
		if c.mayLog(contradicted) {
			c.log.Error(nil, "The filter is not pure: it gave two answers to one question; what it was asked about is left out",
				"first", tidy(why), "second", tidy(whyAgain))
		}
		return answer("left out because " + c.name + " contradicts itself"), contradicted
	case ok:
		return "", admitted
	}
	text := "left out by " + c.name
	if why = tidy(why); why != "" {
		text += ": " + why
	}
	return answer(text), leftOut
}

// mayLog reports whether a fault may be logged now.
func (c *caller) mayLog(o outcome) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.logged[o]) < logPeriod {
		return false
	}
	c.logged[o] = now
	return true
}

// tidy makes a text of others fit to be shown in a line.
func tidy(text string) string {
	if len(text) > 2*maxWhy {
		text = text[:2*maxWhy] // What follows is not read at all.
	}
	text = visible.Blank(strings.ToValidUTF8(text, ""))
	return kube.Shorten(strings.Join(strings.Fields(text), " "), maxWhy)
}
