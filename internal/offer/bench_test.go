package offer

import (
	"fmt"
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

// BenchmarkEvaluate measures one evaluation with 20 policies of five node selections in four classes, 5,000 nodes, and 50,000 pods,
// a fifth of which are consumers'. Test/bench/README.md has the bounds.
func BenchmarkEvaluate(b *testing.B) {
	for _, size := range []struct{ consumers, withPods int }{{100, 100}, {1_000, 100}, {1_000, 1_000}, {10_000, 1_000}, {10_000, 10_000}} {
		in := benchInput(size.consumers, size.withPods)
		b.Run(fmt.Sprintf("consumers=%d/with-pods=%d/first", size.consumers, size.withPods), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Evaluate(in)
			}
		})
		b.Run(fmt.Sprintf("consumers=%d/with-pods=%d/again", size.consumers, size.withPods), func(b *testing.B) {
			b.ReportAllocs()
			in.Previous = Evaluate(in).Offers
			for b.Loop() {
				in.Previous = Evaluate(in).Offers
			}
		})
	}
}

func benchInput(size, withPods int) Input {
	consumer := func(i int) string { return fmt.Sprintf("32f0b45b-5c06-4cc4-84b6-%012d", i) }
	ledger := capacity.NewLedger()
	for i := range 5_000 {
		ledger.SetNode(capacity.Node{
			Name: fmt.Sprint("n", i), State: capacity.Ready, Labels: map[string]string{"zone": fmt.Sprint(i % 4)},
			Allocatable: capacity.Amounts{"cpu": 32_000, "memory": 128 << 30, "pods": 110, "ephemeral-storage": 500 << 30, "nvidia.com/gpu": int64(i % 8)},
		})
	}
	for i := range 50_000 {
		p := capacity.Pod{Key: fmt.Sprint("p", i), Node: fmt.Sprint("n", i%5_000), Requests: capacity.Amounts{"cpu": 250, "memory": 1 << 29}}
		if i%5 == 4 {
			p.Consumer = consumer(i / 5 % withPods)
		}
		ledger.SetPod(p)
	}
	var in Input
	for i := range size {
		in.Consumers = append(in.Consumers, Consumer{ID: consumer(i), Labels: map[string]string{"tier": fmt.Sprint(i % 4)}})
	}
	for i := range 20 {
		p := Policy{Name: fmt.Sprint("p", i), Class: fmt.Sprint("c", i%4), ThresholdPercent: 5, Nodes: &Nodes{Percent: 50}}
		if zone := i % 5; zone < 4 {
			p.Nodes.Selection.Selector = withLabel("zone", fmt.Sprint(zone))
		}
		if i < 16 {
			p.Priority, p.Consumers.Selector = 1, withLabel("tier", fmt.Sprint(i/4))
		}
		in.Policies = append(in.Policies, p)
	}
	in.View = ledger.View(Selections(in.Policies))
	return in
}
