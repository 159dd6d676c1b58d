package offer

import (
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

func TestEachPartOfARequestIsInItsDigest(t *testing.T) {
	r := func() *Request {
		return &Request{
			Labels: map[string]string{"a": "b", "c": "d"}, Resources: capacity.Amounts{"cpu": 1, "memory": 2},
			Consumer: Consumer{Labels: map[string]string{"e": "f"}}, Age: 1,
		}
	}
	if first, again := r().Digest(), r().Digest(); first != again {
		t.Error("equal requests have different digests")
	}
	for name, change := range map[string]func(*Request){
		"a label":              func(r *Request) { r.Labels["a"] = "d" },
		"labels that swap":     func(r *Request) { r.Labels["a"], r.Labels["c"] = "d", "b" },
		"an amount":            func(r *Request) { r.Resources["cpu"]++ },
		"one more amount of 0": func(r *Request) { r.Resources["pods"] = 0 },
		"the consumer":         func(r *Request) { r.Consumer.Labels["e"] = "" },
		"moved labels":         func(r *Request) { r.Labels, r.Consumer.Labels = r.Consumer.Labels, r.Labels },
		"the ID":               func(r *Request) { r.Consumer.ID = "oslo" },
		"the age":              func(r *Request) { r.Age++ },
	} {
		changed := r()
		if change(changed); changed.Digest() == r().Digest() {
			t.Errorf("%s is not in the digest", name)
		}
	}
}
