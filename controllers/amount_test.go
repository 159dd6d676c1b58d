package controllers

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/internal/capacity"
)

func TestAmountsAreRoundedAgainstWhoWouldGain(t *testing.T) {
	for _, tc := range []struct {
		resource, quantity string
		down, up           int64
	}{
		{"cpu", "2", 2000, 2000},
		{"cpu", "1500m", 1500, 1500},
		{"cpu", "0.1", 100, 100},
		{"cpu", "100u", 0, 1},
		{"cpu", "1500500u", 1500, 1501},
		{"cpu", "1e3", 1000000, 1000000},
		{"cpu", "-5", 0, 0},
		{"cpu", "9223372036854775", 9223372036854775000, 9223372036854775000},
		{"cpu", "9223372036854776", math.MaxInt64, math.MaxInt64},
		{"cpu", "9223372036854775807", math.MaxInt64, math.MaxInt64},
		{"memory", "1Gi", 1 << 30, 1 << 30},
		{"memory", "100m", 0, 1},
		{"memory", "1500m", 1, 2},
		{"memory", "2G", 2e9, 2e9},
		{"memory", "9223372036854775807", math.MaxInt64, math.MaxInt64},
		{"memory", "1e30", math.MaxInt64, math.MaxInt64},
		{"memory", "-1", 0, 0},
		{"pods", "110", 110, 110},
		{"nvidia.com/gpu", "3", 3, 3},
	} {
		q := resource.MustParse(tc.quantity)
		if got := amount(tc.resource, q, down); got != tc.down {
			t.Errorf("%s %s, there is: got %d, want %d", tc.resource, tc.quantity, got, tc.down)
		}
		if got := amount(tc.resource, q, up); got != tc.up {
			t.Errorf("%s %s, asked for: got %d, want %d", tc.resource, tc.quantity, got, tc.up)
		}
	}
}

func TestASumBeyondInt64IsHeldAtItsEnd(t *testing.T) {
	q := resource.MustParse("9223372036854775807")
	q.Add(q)
	for _, name := range []string{"cpu", "memory"} {
		if got := amount(name, q, up); got != math.MaxInt64 {
			t.Errorf("%s: got %d", name, got)
		}
	}
}

func TestQuantitiesReadAsTheyWereWritten(t *testing.T) {
	for _, tc := range []struct{ resource, text string }{
		{"cpu", "2"}, {"cpu", "1500m"}, {"memory", "2G"}, {"memory", "16Gi"}, {"memory", "1k"}, {"memory", "1Ki"},
		{"memory", "0"}, {"pods", "110"}, {"nvidia.com/gpu", "0"}, {"memory", "9223372036854775807"},
	} {
		q := quantity(tc.resource, amount(tc.resource, resource.MustParse(tc.text), up))
		if got := q.String(); got != tc.text {
			t.Errorf("%s %s reads %s", tc.resource, tc.text, got)
		}
	}
}

func TestAnAmountOfZeroIsNotAnAbsentOne(t *testing.T) {
	got := amounts(corev1.ResourceList{"cpu": resource.MustParse("0"), "memory": resource.MustParse("-1")}, down)
	if diff := cmp.Diff(capacity.Amounts{"cpu": 0, "memory": 0}, got); diff != "" {
		t.Error(diff)
	}
}
