package grant

import (
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

func TestAmountsAreExplainedAsAPersonReadsThem(t *testing.T) {
	const node = 32761684 << 10
	for asked, want := range map[int64]string{
		40_000_000_000: "granted 31.2Gi of 40G memory: policy standard leaves 31.2Gi for this cluster",
		// Rounded to three digits, the grant would read the same as the request.
		node + 10<<20: "granted 31.24Gi of 31.25Gi memory: policy standard leaves 31.24Gi for this cluster",
		node + 1:      "granted 32761684Ki of 33547964417 memory: policy standard leaves 32761684Ki for this cluster",
	} {
		s := asking("s", "rome", 1, 4000)
		s.Request["memory"] = asked
		w := newWorld(gold()).node("n", "a", capacity.Amounts{"cpu": 8000, "memory": node}).slice(s)
		if got := becauseOf(&w.step()[0], ""); got != want {
			t.Errorf("%d asked: got %q, want %q", asked, got, want)
		}
	}
}
