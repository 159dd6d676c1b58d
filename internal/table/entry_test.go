package table

import (
	"sync/atomic"

	"proffer.dev/proffer/internal/offer"
)

var amounts atomic.Int64

// newEntry returns an entry whose amounts differ from those of all others.
func newEntry() *offer.Entry {
	return &offer.Entry{Offers: []*offer.Offer{{Policy: "p", Amounts: []offer.Amount{{Resource: "cpu", Value: amounts.Add(1)}}}}}
}
