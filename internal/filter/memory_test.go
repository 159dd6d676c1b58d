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

func TestEachPartOfARequestIsInItsDigest(t *testing.T) {
	r := func() *offer.Request {
		return &offer.Request{
			Labels: map[string]string{"a": "b", "c": "d"}, Resources: capacity.Amounts{"cpu": 1, "memory": 2},
			Consumer: offer.Consumer{Labels: map[string]string{"e": "f"}}, Age: 1,
		}
	}
	if first, again := digestOfRequest(r()), digestOfRequest(r()); first != again {
		t.Error("equal requests have different digests")
	}
	for name, change := range map[string]func(*offer.Request){
		"a label":              func(r *offer.Request) { r.Labels["a"] = "d" },
		"labels that swap":     func(r *offer.Request) { r.Labels["a"], r.Labels["c"] = "d", "b" },
		"an amount":            func(r *offer.Request) { r.Resources["cpu"]++ },
		"one more amount of 0": func(r *offer.Request) { r.Resources["pods"] = 0 },
		"the consumer":         func(r *offer.Request) { r.Consumer.Labels["e"] = "" },
		"moved labels":         func(r *offer.Request) { r.Labels, r.Consumer.Labels = r.Consumer.Labels, r.Labels },
		"the age":              func(r *offer.Request) { r.Age++ },
	} {
		changed := r()
		if change(changed); digestOfRequest(changed) == digestOfRequest(r()) {
			t.Errorf("%s is not in the digest", name)
		}
	}
}
