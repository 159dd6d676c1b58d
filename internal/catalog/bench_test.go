package catalog

import (
	"fmt"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// 1,000 consumers, 5 classes of the same 5,000 nodes, 10,000 slices and 50,000 pods.
func BenchmarkNew(b *testing.B) {
	var policies []offer.Policy
	for i := range 5 {
		policies = append(policies, offer.Policy{Name: fmt.Sprint("gold", i), Class: fmt.Sprint("gold", i), Nodes: &offer.Nodes{Percent: 100}})
	}
	var ids []string
	for i := range 1000 {
		ids = append(ids, fmt.Sprintf("consumer-%04d", i))
	}
	w := newWorld(policies, ids...)
	for i := range 5000 {
		w.ledger.SetNode(capacity.Node{
			Name: fmt.Sprint("n", i), State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: 64_000, capacity.Memory: 256 << 30, capacity.Pods: 110},
		})
	}
	for i := range 50_000 {
		w.ledger.SetPod(capacity.Pod{
			Key: fmt.Sprint(i), Node: fmt.Sprint("n", i%5000), Consumer: ids[i%1000], Requests: capacity.Amounts{capacity.CPU: 500, capacity.Memory: 1 << 30},
		})
	}
	for i := range 10_000 {
		w.holds(ids[i%1000], 1)
		s := &w.slices[i]
		s.Class = policies[i%5].Class
		s.GrantedIn, s.GrantedBy = s.Class, s.Class
	}
	s := w.snapshot()
	b.ReportAllocs()
	for b.Loop() {
		New(s, w.ledger.Shapes, nil)
	}
}
