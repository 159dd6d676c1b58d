package filters

import (
	"sync"
	"time"

	"k8s.io/utils/lru"

	"proffer.dev/proffer/plugin"
)

// maxRemembered bounds the objects of which the answers of a filter for one policy are remembered,
// and those that it has not answered about.
const maxRemembered = 20_000

// answers are those of one filter to one policy. T is that of filter.
type answers[T any] struct {
	filter *filter[T]
	policy *plugin.Policy
	// text identifies the filter and the edit of the policy.
	text string
	// base are the answers that a rehearsal begins with, nil if there are none.
	base *answers[T]
	// rehearsal is nil for the answers that count.
	rehearsal *Rehearsal

	mu sync.Mutex
	// known has a remembered[T] by the key of the object. pending are the questions that nobody waits
	// for any more.
	known   *lru.Cache
	pending map[string]pending[T]
	// evicted is what known has evicted last.
	evicted remembered[T]
}

// pending is a question about the latest state of an object.
type pending[T any] struct {
	object   *T
	question *question
}

// remembered is an answer for one state of an object.
type remembered[T any] struct {
	key    string
	object *T
	answer answer
}

func newAnswers[T any](f *filter[T], p *plugin.Policy, text string) *answers[T] {
	a := &answers[T]{filter: f, policy: p, text: text, pending: map[string]pending[T]{}}
	a.known = lru.NewWithEvictionFunc(maxRemembered, func(_ lru.Key, value any) {
		a.evicted = value.(remembered[T])
	})
	return a
}

// String returns the text that identifies the answers.
func (a *answers[T]) String() string { return a.text }

// of returns the answer for an object, or what stands in for it until there is one.
func (a *answers[T]) of(key string, object *T) answer {
	if r, known := a.lookUp(key, object); known {
		return r
	}
	if a.rehearsal != nil {
		return a.ofRehearsal(key, object)
	}
	q, isNew := a.pend(key, object)
	if isNew {
		if got, inTime := a.filter.caller.put(q); inTime {
			a.store(key, object, got)
			return got
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.meanwhile(key, object)
}

// pend returns the question about an object, and whether it has to be put. A question about an earlier state
// that still waits becomes that about the present one: otherwise they would pile up while a call hangs.
func (a *answers[T]) pend(key string, object *T) (q *question, isNew bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked, is := a.pending[key]
	if is && a.filter.same(asked.object, object) || !is && len(a.pending) >= maxRemembered {
		return nil, false
	}
	q = a.question(object, func(late answer) {
		a.store(key, object, late)
		a.filter.late(key)
	})
	isNew = !is || !a.filter.caller.replace(asked.question, q)
	if !isNew {
		q = asked.question
	}
	a.pending[key] = pending[T]{object, q}
	return q, isNew
}

// lookUp returns the answer for this state of the object, if it is remembered.
func (a *answers[T]) lookUp(key string, object *T) (answer, bool) {
	a.mu.Lock()
	r, known := a.remembered(key)
	a.mu.Unlock()
	if known && a.filter.same(r.object, object) {
		return r.answer, true
	}
	if a.base != nil {
		return a.base.lookUp(key, object)
	}
	return "", false
}

// remembered returns the answer for the latest state of the object that was asked about. mu is held.
func (a *answers[T]) remembered(key string) (remembered[T], bool) {
	value, _ := a.known.Get(key)
	r, known := value.(remembered[T])
	return r, known
}

// store remembers an answer. An object that has changed since it was asked about is still pending.
func (a *answers[T]) store(key string, object *T, got answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known.Add(key, remembered[T]{key, object, got})
	if a.pending[key].object == object {
		delete(a.pending, key)
	}
}

// meanwhile is what counts until there is an answer: that for an earlier state of the object, if it stands
// for the present one.
func (a *answers[T]) meanwhile(key string, object *T) answer {
	if r, known := a.remembered(key); known && a.filter.standsFor(r.object, object) {
		return r.answer
	}
	return a.unanswered()
}

// unanswered and tooLate stand in for an answer that there never was, in an evaluation and in a rehearsal.
func (a *answers[T]) unanswered() answer {
	return answer("left out until " + a.filter.caller.name + " answers")
}

func (a *answers[T]) tooLate() answer {
	return answer("left out because " + a.filter.caller.name + " has not answered in time")
}

// ofRehearsal asks without anything that evaluations could feel.
func (a *answers[T]) ofRehearsal(key string, object *T) answer {
	r, c := a.rehearsal, a.filter.caller
	var got answer
	inTime := false
	if r.left > 0 {
		start := time.Now()
		got, inTime = c.putOther(a.question(object, nil), r.left)
		r.left = max(0, r.left-time.Since(start))
	}
	if !inTime {
		got = a.tooLate()
		r.unanswered[c.name] = struct{}{}
	}
	a.store(key, object, got)
	return got
}

func (a *answers[T]) question(object *T, late func(answer)) *question {
	return &question{ask: a.filter.ask(a.policy, object), late: late, of: a.policy, answered: make(chan struct{})}
}

// askAgain asks again about the object that was asked about least recently, and reports whether there
// is one.
func (a *answers[T]) askAgain() bool {
	a.mu.Lock()
	// The cache tells its oldest only as it evicts it.
	a.evicted = remembered[T]{}
	a.known.RemoveOldest()
	r := a.evicted
	key, there := r.key, r.object != nil
	if there {
		a.known.Add(key, r) // Now it is the newest.
	}
	a.mu.Unlock()
	if !there {
		return false
	}
	a.filter.caller.putOther(a.question(r.object, func(now answer) {
		if now == r.answer {
			return
		}
		a.mu.Lock()
		latest, known := a.remembered(key)
		replace := known && latest == r // The object may have changed in the meantime.
		if replace {
			a.known.Add(key, remembered[T]{key, r.object, now})
		}
		a.mu.Unlock()
		if replace {
			a.filter.caller.reportChange(key, r.answer, now)
			a.filter.late(key)
		}
	}), 0)
	return true
}

// reportChange reports an answer that has changed although the object has not.
func (c *caller) reportChange(key string, before, now answer) {
	c.mu.Lock()
	c.counts[contradicted]++
	c.mu.Unlock()
	if c.mayLog(contradicted) {
		c.log.Error(nil, "The filter is not pure: its answer has changed and its question has not; the new answer counts",
			"object", key, "before", string(before), "now", string(now))
	}
}
