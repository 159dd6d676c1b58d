package capacity

import "testing"

func TestChangesListsOnlyDifferencesInReadableAmounts(t *testing.T) {
	was := Amounts{"cpu": 8000, "memory": 32761684 << 10, "pods": 10}
	is := Amounts{"cpu": 7920, "memory": 32761684<<10 - 10<<20, "pods": 10, "nvidia.com/gpu": 1}
	if got, want := Changes(was, is), "cpu 8 -> 7.92, memory 31.24Gi -> 31.23Gi, nvidia.com/gpu 0 -> 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
