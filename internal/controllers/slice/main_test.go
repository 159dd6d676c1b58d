package slice

import (
	"testing"
	"time"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// decide is Decide, for tests that look into the decisions.
func (d *Decider) decide(now time.Time, termsOf func() *offer.AllocationInput) *decisions {
	return d.Decide(now, termsOf).(*decisions)
}

// commit is Commit of a snapshot with these decisions.
func (w *Writer) commit(d *decisions) { w.Commit(&table.Snapshot{Slices: d}) }
