package filter

import (
	"maps"
	"sync"

	"github.com/google/cel-go/cel"

	"proffer.dev/proffer/internal/offer"
)

// maxRemembered bounds the consumers whose results a filter remembers.
const maxRemembered = 10_000

// consumers implements offer.ConsumerFilter. Evaluations ask about all consumers again, so it
// remembers each result until the labels of the consumer change.
type consumers struct {
	text    string
	program cel.Program

	mu    sync.Mutex
	known map[string]result
}

// result is that for a consumer with these labels.
type result struct {
	labels map[string]string
	ok     bool
	why    string
}

// Consumers compiles a filter of consumers. Its expression has the variable consumer, with labels.
func Consumers(expression string) (offer.ConsumerFilter, error) {
	return consumerFilters.of(expression, func() (*consumers, error) {
		_, env := environments()
		p, err := compile(env, expression, "consumer.labels")
		return &consumers{text: expression, program: p, known: map[string]result{}}, err
	})
}

var consumerFilters shared[consumers]

// String implements offer.ConsumerFilter.
func (f *consumers) String() string { return f.text }

// Admits implements offer.ConsumerFilter. It leaves out a consumer that the expression fails on.
func (f *consumers) Admits(c offer.Consumer) (ok bool, why string) {
	id := c.ID
	if len(c.Labels) == 0 {
		id = "" // All consumers without labels are one: anybody may ask for the offer to any ID.
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r, known := f.known[id]
	if !known || !maps.Equal(r.labels, c.Labels) {
		if !known && len(f.known) == maxRemembered {
			clear(f.known)
		}
		r = f.ask(c)
		f.known[id] = r
	}
	return r.ok, r.why
}

func (f *consumers) ask(c offer.Consumer) result {
	r := result{labels: c.Labels}
	ok, failure := evaluate(f.program, consumerVariable, c.Labels, map[string]any{})
	switch {
	case ok:
		r.ok = true
	case failure != "":
		r.why = "its filter leaves this consumer out, because it fails: " + failure
	default:
		r.why = "its filter leaves this consumer out"
	}
	return r
}
