package filter

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
)

// A consumer creates slices with long labels and names, and deletes them again.
func TestARequestThatIsGoneTakesLittleMemory(t *testing.T) {
	f, err := Slices("request.labels['x'] == 'y' || !request.resources['cpu'].isGreaterThan(quantity('8'))")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(n int) {
		r := &offer.Request{Key: fmt.Sprint("tenant/", n), Labels: map[string]string{}, Resources: capacity.Amounts{"cpu": 1000}}
		for i := range offer.MaxRequestLabels - 1 {
			text := fmt.Sprint(i, "-", n, strings.Repeat("a", 240), "/", strings.Repeat("b", 60))
			r.Labels[text], r.Resources[text] = strings.Repeat("c", 63), 1
		}
		f.Rule(r)
	}
	ask(0)
	before := test.LiveHeap()
	const requests = 1000
	for n := range requests {
		ask(n)
	}
	if grown := test.LiveHeap() - before; grown > requests*2<<10 {
		t.Errorf("%d requests take %d KiB, want at most 2 for each", requests, grown>>10)
	}
	runtime.KeepAlive(f)
}
