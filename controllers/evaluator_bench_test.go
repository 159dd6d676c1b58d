package controllers

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kubetest"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// benchEvaluator has 5,000 nodes with ten pods each, a fifth of which are consumers', and 20 policies of 5 sorts of nodes: 16 for those of a
// tier, and one for everybody in each class. Nobody is told of what is published.
func benchEvaluator(tb testing.TB, consumers int) *evaluator {
	tb.Helper()
	e := emptyEvaluator()
	for i := range 5_000 {
		e.ledger.SetNode(capacity.Node{
			Name: benchNode(i), Usable: true, Labels: map[string]string{"zone": fmt.Sprint(i % 4)},
			Allocatable: capacity.Amounts{"cpu": 32_000, "memory": 128 << 30, "pods": 110, "ephemeral-storage": 500 << 30},
		})
	}
	for i := range 50_000 {
		e.ledger.SetPod(benchPod(i, consumers, 250))
	}
	for i := range consumers {
		e.consumers.set(0, fmt.Sprint(i), offer.Consumer{ID: benchConsumer(i), Labels: map[string]string{"tier": fmt.Sprint(i % 4)}})
	}
	for i := range 20 {
		e.policies.set(benchPolicy(tb, i, 1))
	}
	e.settleFor(tb)
	return e
}

func emptyEvaluator() *evaluator {
	return &evaluator{
		ledger: capacity.NewLedger(), table: table.New(), policies: newPolicies(), consumers: newConsumers(1),
		slices: newSlices(nil, func() {}, func() {}, logr.Discard()), debouncer: debounce.New(0), outcome: &atomic.Pointer[outcome]{},
		record: newOfferedRecord(nil, nil, "", logr.Discard()), commit: func(*allotment) {}, metrics: newTimings(), log: logr.Discard(),
		delayed: debounce.NewDelayedWake(func() {}),
	}
}

// settleFor evaluates until nothing is new, and has everybody read.
func (e *evaluator) settleFor(tb testing.TB) {
	tb.Helper()
	e.evaluate(time.Now())
	e.evaluate(time.Now())
	for id := range e.table.Current().Entries.All {
		if _, err := e.table.Lookup(tb.Context(), id); err != nil {
			tb.Fatal(err)
		}
	}
}

func benchNode(i int) string     { return fmt.Sprintf("n%04d", i) }
func benchConsumer(i int) string { return fmt.Sprintf("32f0b45b-5c06-4cc4-84b6-%012d", i) }

func benchPod(i, consumers int, milli int64) capacity.Pod {
	p := capacity.Pod{Key: fmt.Sprint("pod", i), Node: benchNode(i % 5_000), Requests: capacity.Amounts{"cpu": milli, "memory": 1 << 29}}
	if i%5 == 4 {
		p.Consumer = benchConsumer(i / 5 % min(1_000, consumers))
	}
	return p
}

func benchPolicy(tb testing.TB, i int, generation int64) *v1alpha1.ResourcePolicy {
	tb.Helper()
	p := kubetest.Policy(fmt.Sprint("p", i), func(s *v1alpha1.ResourcePolicySpec) {
		s.Class, s.UpdateThresholdPercent = fmt.Sprint("c", i%4), new(int32(5))
		if zone := i % 5; zone < 4 {
			kubetest.Selecting(kubetest.Matching(map[string]string{"zone": fmt.Sprint(zone)}))(s)
		}
	})
	p.UID, p.Generation = types.UID(p.Name), generation
	if i < 16 {
		p.Spec.Consumers = &v1alpha1.Consumers{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": fmt.Sprint(i / 4)}}}
		p.Spec.Priority = 1
	}
	return p
}

// BenchmarkEvaluate is one turn of the evaluator, with what is published.
func BenchmarkEvaluate(b *testing.B) {
	for _, consumers := range []int{20, 10_000} {
		for _, what := range []struct {
			name   string
			change func(e *evaluator, turn int)
		}{
			{"nothing changed", func(*evaluator, int) {}},
			{"a pod on each of 20 nodes changed", func(e *evaluator, turn int) {
				for i := range 20 {
					e.ledger.SetPod(benchPod(i*251, consumers, int64(250+turn%2)))
				}
			}},
			{"a policy was edited that changes one consumer", func(e *evaluator, turn int) {
				p := kubetest.Policy("edited", kubetest.Fixed("cpu", fmt.Sprint(1+turn%2)), kubetest.ForIDs(v1alpha1.ClusterID(benchConsumer(7))))
				p.UID, p.Generation, p.Spec.Class, p.Spec.Priority = "edited", int64(turn+1), "c0", 2
				e.policies.set(p)
			}},
		} {
			b.Run(fmt.Sprintf("%d consumers, %s", consumers, what.name), func(b *testing.B) {
				e := benchEvaluator(b, consumers)
				b.ReportAllocs()
				for turn := 0; b.Loop(); turn++ {
					what.change(e, turn)
					e.evaluate(time.Now())
				}
			})
		}
	}
}

// BenchmarkEvaluateNamed is the same where nothing is known of 10,000 consumers but that policies name them, 250 each.
func BenchmarkEvaluateNamed(b *testing.B) {
	e := emptyEvaluator()
	set := func(name string, priority int32, generation, cpu int, ids ...v1alpha1.ClusterID) {
		p := kubetest.Policy(name, kubetest.Fixed("cpu", fmt.Sprint(cpu)), kubetest.Fixed("memory", "64Gi"), kubetest.Fixed("pods", "110"), kubetest.ForIDs(ids...))
		p.UID, p.Generation, p.Spec.Priority = types.UID(name), int64(generation), priority
		e.policies.set(p)
	}
	for i := range 40 {
		var ids []v1alpha1.ClusterID
		for k := range 250 {
			ids = append(ids, v1alpha1.ClusterID(benchConsumer(i*250+k)))
		}
		set(fmt.Sprint("p", i), 0, 1, 1, ids...)
	}
	set("edited", 1, 1, 2, v1alpha1.ClusterID(benchConsumer(7)))
	e.settleFor(b)
	b.ReportAllocs()
	for turn := 0; b.Loop(); turn++ {
		set("edited", 1, turn+2, 2+turn%2, v1alpha1.ClusterID(benchConsumer(7)))
		e.evaluate(time.Now())
	}
}
