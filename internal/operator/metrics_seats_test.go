package operator

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
)

func TestMetricsShowTheSlicesWithoutASeat(t *testing.T) {
	registry := newCollector(t, &table.Snapshot{
		Result:   evaluated("gold", capacity.Amounts{"cpu": 1}),
		Policies: []table.Policy{{Name: "p", Parsed: &offer.Policy{Class: "gold"}}},
		Slices:   granting{"p": {Slices: 3, SeatsLost: 2}},
	})
	const want = `
		# HELP proffer_slices_without_seat Number of ResourceSlices whose node is gone or not usable and that wait for another one, by policy.
		# TYPE proffer_slices_without_seat gauge
		proffer_slices_without_seat{class="gold",policy="p"} 2
	`
	test.Check(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "proffer_slices_without_seat"))
}
