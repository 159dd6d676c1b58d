package filter

import (
	"proffer.dev/proffer/internal/filter/memo"
	"proffer.dev/proffer/internal/offer"
)

// consumers implements offer.ConsumerFilter.
type consumers struct {
	*program
	memo.Memo[result]
}

// Consumers compiles a filter of consumers. Its expression has the variable consumer, with labels.
func Consumers(expression string) (offer.ConsumerFilter, error) {
	return consumerFilters.filterOf(environments().consumers, expression, "consumer.labels", func(p *program) *consumers {
		return &consumers{program: p}
	})
}

var consumerFilters shared[consumers]

// Admits implements offer.ConsumerFilter. It leaves out a consumer that the expression fails on.
func (f *consumers) Admits(c offer.Consumer) (ok bool, why string) {
	if len(c.Labels) == 0 {
		c.ID = "" // All consumers without labels are one: anybody may ask for the offer to any ID.
	}
	r := f.Of(c.ID, memo.Digest{c.Digest()}, func() result {
		ok, failure := evaluate(f.program, map[string]fields{consumerVariable: {"labels": c.Labels}})
		switch {
		case ok:
			return result{ok: true}
		case failure != "":
			return result{why: "its filter leaves this consumer out, because it fails: " + failure}
		}
		return result{why: "its filter leaves this consumer out"}
	})
	return r.ok, r.why
}
