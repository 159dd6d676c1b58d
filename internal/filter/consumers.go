package filter

import (
	"proffer.dev/proffer/internal/filter/memo"
	"proffer.dev/proffer/internal/offer"
)

// consumers implements offer.ConsumerFilter.
type consumers struct {
	text string
	results[offer.Consumer]
}

// Consumers compiles a filter of consumers. Its expression has the variable consumer, with labels.
func Consumers(expression string) (offer.ConsumerFilter, error) {
	return consumerFilters.filterOf(expression, func() (*consumers, error) {
		p, err := compile(environments().consumers, expression, "consumer.labels")
		if err != nil {
			return nil, err
		}
		digest := func(c *offer.Consumer) memo.Digest { return memo.Digest{c.Digest()} }
		return &consumers{text: expression, results: results[offer.Consumer]{digest: digest, ask: p.askConsumer}}, nil
	})
}

var consumerFilters shared[consumers]

// String implements offer.ConsumerFilter.
func (f *consumers) String() string { return f.text }

// Admits implements offer.ConsumerFilter. It leaves out a consumer that the expression fails on.
func (f *consumers) Admits(c offer.Consumer) (ok bool, why string) {
	if len(c.Labels) == 0 {
		c.ID = "" // All consumers without labels are one: anybody may ask for the offer to any ID.
	}
	return f.resultOf(c.ID, c)
}

func (p *program) askConsumer(c *offer.Consumer) result {
	ok, failure := evaluate(p, map[string]fields{consumerVariable: {"labels": c.Labels}})
	switch {
	case ok:
		return result{ok: true}
	case failure != "":
		return result{why: "its filter leaves this consumer out, because it fails: " + failure}
	}
	return result{why: "its filter leaves this consumer out"}
}
