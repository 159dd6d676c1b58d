package operator

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/controllers/offered"
	"proffer.dev/proffer/internal/controllers/policy"
	"proffer.dev/proffer/internal/controllers/slice"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/engine"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test/kubetest"
)

// bench is an evaluator whose inputs benchmarks change.
type bench struct {
	*engine.Evaluator
	ledger    *capacity.Ledger
	policies  *policy.Cache
	consumers consumerList
	table     *table.Table
}

// consumerList is a fixed list of consumers.
type consumerList struct{ all *[]offer.Consumer }

func (l consumerList) List() []offer.Consumer { return *l.all }

// newBench returns a bench without objects, open subscriptions and writers.
func newBench() *bench {
	b := &bench{
		ledger: capacity.NewLedger(), policies: policy.NewCache(nil), consumers: consumerList{new([]offer.Consumer)},
		table: table.New(),
	}
	record := offered.NewRecord(nil, nil, "", logr.Discard())
	b.Evaluator = engine.New(engine.Config{
		Ledger: b.ledger, Policies: b.policies, Consumers: b.consumers, Table: b.table, Debouncer: debounce.New(0),
		Log:       logr.Discard(),
		Slices:    slice.NewDecider(nil, 0, func() {}, func() {}, logr.Discard()),
		Previous:  func() []offer.PreviousOffers { return record.Previous(b.policies.Previous()) },
		Published: []func(*table.Snapshot){b.policies.Remember, record.Note},
	})
	return b
}

// benchNodes is how many nodes benchCluster has: 5,000 in a benchmark.
var benchNodes = kubetest.Fewer(5_000, 10)

// benchCluster has benchNodes nodes with ten pods each, of which a fifth belong to consumers, and 20
// policies with 5 different node selections. 16 policies are for the consumers of one tier; in each
// class, one policy is for every consumer.
func benchCluster(tb testing.TB, consumers int) *bench {
	tb.Helper()
	b := newBench()
	for i := range benchNodes {
		b.ledger.SetNode(capacity.Node{
			Name: benchNode(i), State: capacity.Ready, Labels: map[string]string{"zone": fmt.Sprint(i % 4)},
			Allocatable: capacity.Amounts{
				"cpu": 32_000, "memory": 128 << 30, "pods": 110, "ephemeral-storage": 500 << 30,
			},
		})
	}
	for i := range 10 * benchNodes {
		b.ledger.SetPod(benchPod(i, consumers, 250))
	}
	for i := range consumers {
		*b.consumers.all = append(*b.consumers.all,
			offer.Consumer{ID: benchConsumer(i), Labels: map[string]string{"tier": fmt.Sprint(i % 4)}})
	}
	for i := range 20 {
		b.policies.Set(benchPolicy(tb, i, 1))
	}
	b.settle(tb)
	return b
}

// settle evaluates until nothing changes any more, and reads every offer.
func (b *bench) settle(tb testing.TB) {
	tb.Helper()
	b.Evaluate(time.Now())
	b.Evaluate(time.Now())
	for id := range b.table.Current().Entries.All {
		if _, err := b.table.Own().Lookup(tb.Context(), id); err != nil {
			tb.Fatal(err)
		}
	}
}

func benchNode(i int) string     { return fmt.Sprintf("n%04d", i) }
func benchConsumer(i int) string { return fmt.Sprintf("32f0b45b-5c06-4cc4-84b6-%012d", i) }

func benchPod(i, consumers int, milli int64) capacity.Pod {
	p := capacity.Pod{
		Key: fmt.Sprint("pod", i), Node: benchNode(i % benchNodes),
		Requests: capacity.Amounts{"cpu": milli, "memory": 1 << 29},
	}
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
		p.Spec.Consumers = &v1alpha1.Consumers{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": fmt.Sprint(i / 4)}},
		}
		p.Spec.Priority = 1
	}
	return p
}

// BenchmarkEvaluate measures one evaluation with the publication of its snapshot.
func BenchmarkEvaluate(b *testing.B) {
	for _, consumers := range []int{20, 10_000} {
		for _, what := range []struct {
			name   string
			change func(e *bench, turn int)
		}{
			{"nothing changed", func(*bench, int) {}},
			{"a pod on each of 20 nodes changed", func(e *bench, turn int) {
				for i := range 20 {
					e.ledger.SetPod(benchPod(i*251, consumers, int64(250+turn%2)))
				}
			}},
			{"a policy was edited that changes one consumer", func(e *bench, turn int) {
				p := kubetest.Policy("edited",
					kubetest.Fixed("cpu", fmt.Sprint(1+turn%2)), kubetest.ForIDs(v1alpha1.ClusterID(benchConsumer(7))))
				p.UID, p.Generation, p.Spec.Class, p.Spec.Priority = "edited", int64(turn+1), "c0", 2
				e.policies.Set(p)
			}},
		} {
			b.Run(fmt.Sprintf("%d consumers, %s", consumers, what.name), func(b *testing.B) {
				e := benchCluster(b, consumers)
				b.ReportAllocs()
				for turn := 0; b.Loop(); turn++ {
					what.change(e, turn)
					e.Evaluate(time.Now())
				}
			})
		}
	}
}

// BenchmarkEvaluateNamed measures the same with 10,000 consumers that are known only because
// policies name them, 250 each.
func BenchmarkEvaluateNamed(b *testing.B) {
	e := newBench()
	set := func(name string, priority int32, generation, cpu int, ids ...v1alpha1.ClusterID) {
		p := kubetest.Policy(name, kubetest.Fixed("cpu", fmt.Sprint(cpu)), kubetest.Fixed("memory", "64Gi"),
			kubetest.Fixed("pods", "110"), kubetest.ForIDs(ids...))
		p.UID, p.Generation, p.Spec.Priority = types.UID(name), int64(generation), priority
		e.policies.Set(p)
	}
	for i := range 40 {
		var ids []v1alpha1.ClusterID
		for k := range 250 {
			ids = append(ids, v1alpha1.ClusterID(benchConsumer(i*250+k)))
		}
		set(fmt.Sprint("p", i), 0, 1, 1, ids...)
	}
	set("edited", 1, 1, 2, v1alpha1.ClusterID(benchConsumer(7)))
	e.settle(b)
	b.ReportAllocs()
	for turn := 0; b.Loop(); turn++ {
		set("edited", 1, turn+2, 2+turn%2, v1alpha1.ClusterID(benchConsumer(7)))
		e.Evaluate(time.Now())
	}
}
