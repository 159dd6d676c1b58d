package filter

import (
	"fmt"
	"runtime"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
)

func TestEqualFiltersAreOne(t *testing.T) {
	const nodeText, consumerText = "node.name != 'shared'", "consumer.labels.size() < 77"
	node, err := Nodes(nodeText)
	test.Must(t, err)
	consumer, err := Consumers(consumerText)
	test.Must(t, err)
	const others = 200
	for i := range others { // They come and go.
		if _, err := Nodes(fmt.Sprintf("node.name != 'other-%d'", i)); err != nil {
			t.Fatal(err)
		}
	}
	test.Eventually(t, func() string {
		runtime.GC()
		nodeFilters.mu.Lock()
		defer nodeFilters.mu.Unlock()
		if n := len(nodeFilters.all); n > others/4 {
			return fmt.Sprintf("%d filters are remembered", n)
		}
		return ""
	})
	if again, err := Nodes(nodeText); err != nil || again != node {
		t.Errorf("the filter of nodes is compiled again (%v)", err)
	}
	if again, err := Consumers(consumerText); err != nil || again != consumer {
		t.Errorf("the filter of consumers is compiled again (%v)", err)
	}
}

// TestFailuresTakeLittleMemory also if each node has another one.
func TestFailuresTakeLittleMemory(t *testing.T) {
	f, err := Nodes("int(node.labels['rank']) > 3")
	test.Must(t, err)
	whys := map[string]int{}
	for i := range 1000 {
		ok, why := f.Admits(&capacity.Node{Name: "n", Labels: map[string]string{"rank": fmt.Sprintf("r%d", i)}})
		if whys[why]++; ok || why == "" {
			t.Fatalf("%t %q", ok, why)
		}
	}
	if len(whys) > maxFailures+1 {
		t.Errorf("%d texts", len(whys))
	}
}
