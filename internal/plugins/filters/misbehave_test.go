package filters

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
)

func TestAFilterThatEndsItsGoroutineIsAskedAboutTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, func(_ *plugin.Policy, n *plugin.Node) (bool, string) {
			if n.Name == "b" {
				runtime.Goexit()
			}
			return true, ""
		})
		c.set("a", "b", "c")
		c.expect(2, "b is left out because Custom ends its goroutine instead of answering")
		c.set("d")
		c.expect(3, "b is left out because Custom ends its goroutine instead of answering")
	})
}

// A text of a filter may be as long as its memory.
func TestTheLogHasShortTextsOfFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long, longest := strings.Repeat("long ", 1<<20), 0
		c := newCluster(t, func(_ *plugin.Policy, n *plugin.Node) (bool, string) {
			if n.Name == "a" {
				panic(long)
			}
			return false, long
		})
		lines, stack := 0, false
		c.Chain.nodes[2].filter.caller.log = funcr.New(func(_, args string) {
			lines++
			stack = stack || strings.Contains(args, "misbehave_test.go")
			longest = max(longest, len(args))
		}, funcr.Options{})
		c.set("a", "b")
		p, _ := c.pool()
		if lines != 1 || !stack || longest > 8<<10 || len(p.Unusable.String()) > 3*maxWhy {
			t.Errorf("%d lines of up to %d bytes, want 1 of less than 8 KiB with the stack (%t); left out %s", lines, longest, stack, p.Unusable)
		}
	})
}

// A filter must not change what it is given. If one does, no selector of another policy may see it.
func TestAFilterThatChangesWhatItIsGivenChangesNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		tamper := func(labels map[string]string, p *plugin.Policy) {
			seen = append(seen, p.Spec.Consumers.Selector.MatchLabels["tier"])
			labels["pool"], p.Spec.Consumers.Selector.MatchLabels["tier"] = "forged", "forged"
		}
		c := newCluster(t, func(p *plugin.Policy, n *plugin.Node) (bool, string) {
			tamper(n.Labels, p)
			n.Taints, n.Allocatable[corev1.ResourceCPU] = nil, resource.MustParse("1k")
			return true, ""
		})
		c.Chain.consumers = New(config.Filters{Consumers: []string{"Custom"}}, nil, map[string]plugin.ConsumerFilter{
			"Custom": consumerFunc(func(p *plugin.Policy, k *plugin.Consumer) (bool, string) {
				tamper(k.Labels, p)
				return true, ""
			}),
		}, nil, Late{Wake: func() {}}, logr.Discard()).consumers
		object := &v1alpha1.ResourcePolicy{}
		object.Spec.Consumers = &v1alpha1.Consumers{Selector: metav1.SetAsLabelSelector(map[string]string{"tier": "gold"})}
		parsed := &offer.Policy{Name: "gold", Version: "1", Nodes: &offer.Nodes{Percent: 100}}
		c.AddTo(object, parsed)
		c.policy = parsed
		node, rome := capacity.Node{
			Name: "a", Labels: map[string]string{"pool": "gold"}, State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: 8000},
		}, offer.Consumer{ID: "rome", Labels: map[string]string{"tier": "gold"}}
		c.ledger.SetNode(node)
		c.expect(1, "")
		if !parsed.Consumers.Includes(rome) {
			t.Error("rome is left out")
		}
		got := []any{node.Labels["pool"], node.Allocatable[capacity.CPU], rome.Labels["pool"], object.Spec.Consumers.Selector.MatchLabels["tier"], seen}
		want := []any{"gold", int64(8000), "", "gold", []string{"gold", "gold"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAFilterThatHangsIsAskedNothing also about 10,000 slices, for an edit of the policy and in a rehearsal. It
// takes nothing from slices that it has answered about.
func TestAFilterThatHangsIsAskedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		var inside, most atomic.Int32
		release := make(chan struct{})
		f := sliceFunc(func(_ *plugin.Policy, r *plugin.Request) (bool, string) {
			most.Store(max(most.Load(), inside.Add(1)))
			defer inside.Add(-1)
			if hangs.Load() {
				<-release
			}
			return r.Labels["team"] != "b", "of another team"
		})
		var p *offer.Policy
		team := "a"
		evaluate := func() (rulings [3]int) {
			for i := range 10_000 {
				ruling, _ := p.Slices.Filters[0].Rule(&offer.Request{Key: fmt.Sprint("tenant/", i), Labels: map[string]string{"team": team}})
				rulings[ruling]++
			}
			return rulings
		}
		chain := New(config.Filters{Slices: []string{"Basic", "Affinity", "Custom"}}, nil, nil,
			map[string]plugin.SliceFilter{"Custom": f}, Late{Wake: func() { evaluate() }}, logr.Discard())
		edit := func(version string) {
			p = &offer.Policy{Name: "gold", Class: "gold", Version: version}
			chain.AddTo(&v1alpha1.ResourcePolicy{}, p)
		}
		expect := func(when string, admitted, refused, undecided int, wait time.Duration) {
			t.Helper()
			start := time.Now()
			got := evaluate()
			if took := time.Since(start); got != [3]int{admitted, refused, undecided} || took != wait {
				t.Errorf("%s: %v after %v", when, got, took)
			}
		}
		edit("1")
		expect("at first", 10_000, 0, 0, 0)
		hangs.Store(true)
		expect("known requests", 10_000, 0, 0, 0)
		team = "b"
		expect("other requests", 0, 0, 10_000, callBound)
		expect("the same again", 0, 0, 10_000, 0)
		team = "a"
		expect("the first requests again", 10_000, 0, 0, 0)
		time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
		edit("2")
		expect("another edit", 0, 0, 10_000, 0)
		rehearsal := chain.Rehearse()
		rehearsed := rehearsal.Policies([]table.Policy{{Name: "gold", Parsed: p}})[0].Parsed.Slices.Filters[0]
		if ruling, why := rehearsed.Rule(&offer.Request{Key: "tenant/0"}); ruling != offer.Undecided || len(rehearsal.Unanswered()) != 1 {
			t.Errorf("rehearsed as %d, %s", ruling, why)
		}
		if n := waiting(chain.slices[2].filter.caller); n != 10_000 {
			t.Errorf("%d questions wait", n)
		}
		hangs.Store(false)
		close(release)
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		expect("once it answers", 10_000, 0, 0, 0)
		if n := waiting(chain.slices[2].filter.caller); n > 0 || most.Load() != 1 {
			t.Errorf("%d questions wait, and %d calls were made at once", n, most.Load())
		}
	})
}

// TestTheTimeThatEvaluationsWaitIsBounded for a filter that is slow all the time, and never hangs.
func TestTheTimeThatEvaluationsWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sliceFunc(func(*plugin.Policy, *plugin.Request) (bool, string) {
			time.Sleep(callBound * 9 / 10) //nolint:forbidigo // in a bubble
			return true, ""
		})
		chain := New(config.Filters{Slices: []string{"Basic", "Affinity", "Custom"}}, nil, nil,
			map[string]plugin.SliceFilter{"Custom": f}, Late{Wake: func() {}}, logr.Discard())
		p := &offer.Policy{Name: "gold", Class: "gold", Version: "1"}
		chain.AddTo(&v1alpha1.ResourcePolicy{}, p)
		var total, inARow, longest time.Duration
		start := time.Now()
		for i := 0; time.Since(start) < time.Minute; i++ {
			asked := time.Now()
			p.Slices.Filters[0].Rule(&offer.Request{Key: fmt.Sprint("tenant/", i)})
			if took := time.Since(asked); took > 0 {
				inARow += took
			} else {
				inARow = 0
				time.Sleep(time.Millisecond) //nolint:forbidigo // in a bubble
			}
			total += time.Since(asked).Truncate(callBound / 10)
			longest = max(longest, inARow)
		}
		if longest >= time.Second || longest < maxBudget || total > 31*time.Second || total < 29*time.Second {
			t.Errorf("waited for %v of a minute, and up to %v in a row", total, longest)
		}
		for i := range 2 * maxUnanswered {
			p.Slices.Filters[0].Rule(&offer.Request{Key: fmt.Sprint("other/", i)})
		}
		if n := waiting(chain.slices[2].filter.caller); n != maxUnanswered {
			t.Errorf("%d objects are asked about again, want %d", n, maxUnanswered)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		if n := waiting(chain.slices[2].filter.caller); n > 0 {
			t.Errorf("%d objects that nobody asks about wait", n)
		}
	})
}

// A rehearsal may ask about anything. If the filter hangs on it, evaluations go on, and rehearsals do without it.
func TestAFilterThatHangsInARehearsal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := newCluster(t, func(p *plugin.Policy, _ *plugin.Node) (bool, string) {
			if p.Name == "trial" {
				<-release
			}
			return true, ""
		})
		c.set("a", "b")
		c.expect(2, "")
		r := c.Rehearse()
		trial := &offer.Policy{Name: "trial", Nodes: &offer.Nodes{Percent: 100}}
		r.AddTo(&v1alpha1.ResourcePolicy{}, trial)
		if p := c.ledger.Copy().Ledger().View([]capacity.Selection{trial.Nodes.Selection}).Pools[0]; p.Nodes != 0 {
			t.Errorf("%d nodes", p.Nodes)
		}
		c.expect(2, "")
		c.set("c")
		c.expect(3, "")
		started := time.Now()
		r, trial = c.Rehearse(), &offer.Policy{Name: "trial", Nodes: &offer.Nodes{Percent: 100}}
		r.AddTo(&v1alpha1.ResourcePolicy{}, trial)
		if p := c.ledger.Copy().Ledger().View([]capacity.Selection{trial.Nodes.Selection}).Pools[0]; p.Nodes != 0 || time.Since(started) > 0 {
			t.Errorf("%d nodes of another rehearsal after %v", p.Nodes, time.Since(started))
		}
		if len(r.Unanswered()) != 1 {
			t.Errorf("the rehearsal names %v", r.Unanswered())
		}
		close(release)
		time.Sleep(3 * againPeriod) //nolint:forbidigo // in a bubble
		c.expect(3, "")
	})
}

// A rehearsal that keeps a slow filter busy takes no time from evaluations.
func TestAnEvaluationWaitsForNoRehearsal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = callBound * 6 / 10
		f := sliceFunc(func(*plugin.Policy, *plugin.Request) (bool, string) {
			time.Sleep(slow) //nolint:forbidigo // in a bubble
			return true, ""
		})
		chain := New(config.Filters{Slices: []string{"Basic", "Affinity", "Custom"}}, nil, nil,
			map[string]plugin.SliceFilter{"Custom": f}, Late{Wake: func() {}}, logr.Discard())
		p := &offer.Policy{Name: "gold", Class: "gold", Version: "1"}
		chain.AddTo(&v1alpha1.ResourcePolicy{}, p)
		rehearsed := chain.Rehearse().Policies([]table.Policy{{Name: "gold", Parsed: p}})[0].Parsed.Slices.Filters[0]
		go func() {
			for i := range 20 {
				rehearsed.Rule(&offer.Request{Key: fmt.Sprint("added/", i)})
			}
		}()
		time.Sleep(slow / 6) //nolint:forbidigo // in a bubble, until the rehearsal asks
		for i := range 5 {
			start := time.Now()
			ruling, why := p.Slices.Filters[0].Rule(&offer.Request{Key: fmt.Sprint("tenant/", i)})
			if took := time.Since(start); ruling != offer.Admitted || took != slow {
				t.Errorf("ruled %d (%s) after %v, want admitted after %v", ruling, why, took, slow)
			}
		}
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble, until the rehearsal has ended
	})
}

// Five filters are slow about new slices all the time. Together they delay evaluations by no more than one does,
// each gets its share, and the quick one behind them answers about all slices.
func TestSeveralSlowFiltersDelayEvaluationsByNoMoreThanOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow, known = 5, 300
		order, registered := []string{"Basic", "Affinity"}, map[string]plugin.SliceFilter{}
		var calls [slow + 1]atomic.Int32
		for i := range calls {
			took := callBound * 9 / 10
			if i == slow {
				took = 10 * time.Microsecond
			}
			order = append(order, fmt.Sprint("Custom", i))
			registered[order[len(order)-1]] = sliceFunc(func(*plugin.Policy, *plugin.Request) (bool, string) {
				calls[i].Add(1)
				time.Sleep(took) //nolint:forbidigo // in a bubble
				return true, ""
			})
		}
		chain := New(config.Filters{Slices: order}, nil, nil, registered, Late{Wake: func() {}}, logr.Discard())
		p := &offer.Policy{Name: "gold", Class: "gold", Version: "1"}
		chain.AddTo(&v1alpha1.ResourcePolicy{}, p)
		var total, longest, answered time.Duration
		start := time.Now()
		for round := 0; time.Since(start) < time.Minute; round++ {
			asked := time.Now()
			for _, f := range p.Slices.Filters[:slow] {
				for i := range 10 {
					f.Rule(&offer.Request{Key: fmt.Sprint("new/", round, "/", i)})
				}
			}
			undecided := 0
			for i := range known {
				if ruling, _ := p.Slices.Filters[slow].Rule(&offer.Request{Key: fmt.Sprint("known/", i)}); ruling == offer.Undecided {
					undecided++
				}
			}
			took := time.Since(asked)
			if total, longest = total+took, max(longest, took); undecided == 0 && answered == 0 {
				answered = time.Since(start)
			}
			time.Sleep(50 * time.Millisecond) //nolint:forbidigo // in a bubble
		}
		if longest >= time.Second || total > 31*time.Second {
			t.Errorf("waited for %v of a minute, and up to %v in one evaluation", total, longest)
		}
		if answered == 0 || answered > 10*time.Second || calls[slow].Load() != known {
			t.Errorf("the quick filter has answered everything after %v, by %d calls", answered, calls[slow].Load())
		}
		for i := range slow {
			if n := calls[i].Load(); n < 30 {
				t.Errorf("filter %d was called %d times, want its share of some 330", i, n)
			}
		}
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		synctest.Wait()
		if n := len(chain.slices[2].filter.budget.queue); n > 0 {
			t.Errorf("%d filters without questions wait for time", n)
		}
	})
}
