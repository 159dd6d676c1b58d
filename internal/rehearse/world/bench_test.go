package world

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// evaluated is a snapshot of 20 policies for this many consumers, each with this many slices, on this
// many nodes, each with ten pods, a tenth of them of consumers.
func evaluated(consumers, slices, nodes int) (*table.Snapshot, *capacity.Ledger) {
	l := capacity.NewLedger()
	for i := range nodes {
		l.SetNode(capacity.Node{
			Name: fmt.Sprintf("node-%04d", i), State: capacity.Ready, Labels: map[string]string{"zone": fmt.Sprint(i % 10)},
			Allocatable: capacity.Amounts{capacity.CPU: 64_000, capacity.Memory: 256 << 30, capacity.Pods: 110, "nvidia.com/gpu": 4},
		})
	}
	for i := range 10 * nodes {
		p := capacity.Pod{
			Key: fmt.Sprintf("6f1c2d3e-0000-4000-8000-%012d", i), Node: fmt.Sprintf("node-%04d", i%nodes),
			Requests: capacity.Amounts{capacity.CPU: 500, capacity.Memory: 1 << 30},
		}
		if i%10 == 0 {
			p.Consumer = fmt.Sprintf("consumer-%04d", i/10%consumers)
		}
		l.SetPod(p)
	}
	var all []table.Policy
	for i := range 20 {
		all = append(all, policy.Of(zoned(fmt.Sprintf("policy-%02d", i), i, 50), nil))
	}
	list := table.NewPolicyList(all)
	in := offer.Input{Policies: list.Valid, View: l.View(list.Selections, list.Resources...)}
	for i := range consumers {
		id := fmt.Sprintf("consumer-%04d", i)
		in.Consumers = append(in.Consumers, offer.Consumer{ID: id, Labels: map[string]string{"tier": fmt.Sprint(i % 3), "name": id}})
	}
	s := table.Snapshot{Policies: list.All, Time: time.Now()}
	s.Levels.Stabilize(s.Time, &in)
	if slices > 0 {
		s.Slices = requests(consumers, slices).DryRun(func() *offer.AllocationInput { return offer.NewAllocationInput(in) })
		in.Grants = s.Slices.Granted()
	}
	s.Result, s.Input = offer.Evaluate(in), in
	return table.New().Publish(s), l
}

// requests are slices of consumers that ask for a little of one class each.
func requests(consumers, each int) rehearse.Requests {
	var all rehearse.Requests
	for i := range consumers * each {
		name := fmt.Sprintf("slice-%05d", i)
		all = append(all, table.DecidedSlice{Namespace: "tenants", Name: name, UID: name, Slice: grant.Slice{
			Key: "tenants/" + name, Consumer: fmt.Sprintf("consumer-%04d", i%consumers), Class: fmt.Sprintf("class-%d", i/consumers%10),
			Request: capacity.Amounts{capacity.CPU: 2000, capacity.Memory: 4 << 30, capacity.Pods: 10},
		}})
	}
	return all
}

// zoned is a policy of one zone, in one of ten classes.
func zoned(name string, i, percent int) *v1alpha1.ResourcePolicy {
	p := kubetest.Policy(name, kubetest.Selecting(metav1.LabelSelector{MatchLabels: map[string]string{"zone": fmt.Sprint(i % 10)}}), func(s *v1alpha1.ResourcePolicySpec) {
		s.Class, s.Priority, s.Offer.Percent, s.UpdateThresholdPercent = fmt.Sprintf("class-%d", i%10), int32(i), new(v1alpha1.Percent(percent)), nil
	})
	return p
}

// simulated is everything that POST /simulate does with a body.
func simulated(t testing.TB, s *table.Snapshot, l *capacity.Ledger, body []byte) *rest.Simulation {
	t.Helper()
	c, err := DecodeChange(bytes.NewReader(body))
	test.Must(t, err)
	w := rehearse.Of(s, l.Copy())
	parsed, problems, err := ChangeOf(c, &w, nil)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	simulation := SimulationOf(rehearse.Rehearse(&w, parsed, never), rest.Evaluated{}, nil, nil)
	test.Must(t, json.NewEncoder(io.Discard).Encode(simulation))
	return simulation
}

func bodyOf(t testing.TB, c *rest.Change) []byte {
	t.Helper()
	body, err := json.Marshal(c)
	test.Must(t, err)
	if len(body) > rest.MaxChange {
		t.Fatalf("the body has %d bytes", len(body))
	}
	return body
}

// BenchmarkSimulate simulates one policy at 1,000 consumers, 10,000 slices, 5,000 nodes and 50,000 pods.
func BenchmarkSimulate(b *testing.B) {
	s, l := evaluated(1000, 10, 5000)
	body := bodyOf(b, &rest.Change{Apply: []v1alpha1.ResourcePolicy{*zoned("policy-19", 19, 30)}})
	b.ReportAllocs()
	for b.Loop() {
		if got := simulated(b, s, l, body); len(got.Offers) < 1000 {
			b.Fatalf("%d offers change", len(got.Offers))
		}
	}
}

// BenchmarkSnapshot writes a snapshot of the same size.
func BenchmarkSnapshot(b *testing.B) {
	s, l := evaluated(1000, 10, 5000)
	b.ReportAllocs()
	for b.Loop() {
		test.Must(b, Encode(io.Discard, s, l.Copy(), "v0.1.0", nil))
	}
}

// worst is a change at all of its bounds: policies that overlap in many ways, each with names, selectors
// and overrides of its own, and nodes of many kinds.
func worst(classOf func(i int) string) *rest.Change {
	c := &rest.Change{}
	const (
		overrides = rest.MaxOverrides / rest.MaxApplied
		ids       = rest.MaxNamedConsumers / rest.MaxApplied
		terms     = rest.MaxSelectorTerms/rest.MaxApplied - 4 // The node selector has three, and there is a toleration.
	)
	for i := range rest.MaxApplied {
		c.Apply = append(c.Apply, *kubetest.Policy(fmt.Sprintf("worst-%02d", i), func(s *v1alpha1.ResourcePolicySpec) {
			s.Class, s.Priority = classOf(i), 1000
			s.Offer.Nodes.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: fmt.Sprintf("bit-%d", i%6), Operator: metav1.LabelSelectorOpNotIn, Values: []string{fmt.Sprint(i / 6 % 2), fmt.Sprint("x", i)},
			}}}
			s.Offer.Nodes.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
			for k := range overrides {
				o := v1alpha1.Override{Offer: v1alpha1.OverrideOffer{Fixed: kubetest.Quantities(fmt.Sprintf("example.com/r%d", k), "1")}}
				switch k {
				case 0:
					for m := range ids {
						o.Consumers.ClusterIDs = append(o.Consumers.ClusterIDs, v1alpha1.ClusterID(fmt.Sprintf("worst-%d-%d", i, m)))
					}
				case 1:
					o.Consumers.Selector = &metav1.LabelSelector{}
					for range terms - (overrides - 2) {
						o.Consumers.Selector.MatchExpressions = append(o.Consumers.Selector.MatchExpressions, metav1.LabelSelectorRequirement{
							Key: "name", Operator: metav1.LabelSelectorOpExists,
						})
					}
					// Everything but the last expression holds.
					o.Consumers.Selector.MatchExpressions[terms-overrides+1].Operator = metav1.LabelSelectorOpDoesNotExist
				default:
					o.Consumers.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
						{Key: "name", Operator: metav1.LabelSelectorOpDoesNotExist},
					}}
				}
				s.Overrides = append(s.Overrides, o)
			}
		}))
	}
	for i := range rest.MaxAddedKinds {
		n := rest.AddedNodes{Count: rest.MaxAddedNodes / rest.MaxAddedKinds, Labels: map[string]string{}, Allocatable: kubetest.Quantities("cpu", "8", "memory", "8Gi", "pods", "10")}
		for bit := range 6 {
			n.Labels[fmt.Sprintf("bit-%d", bit)] = fmt.Sprint(i >> bit & 1)
		}
		for k := range rest.MaxChangeResources - 3 {
			n.Allocatable[corev1.ResourceName(fmt.Sprintf("example.com/r%d", k))] = n.Allocatable["pods"]
		}
		c.AddNodes = append(c.AddNodes, n)
	}
	return c
}

// BenchmarkSimulateTheWorst simulates a change at all of its bounds, in a world of the same size.
func BenchmarkSimulateTheWorst(b *testing.B) {
	for name, classOf := range worstClasses {
		b.Run(name, func(b *testing.B) {
			s, l := evaluated(1000, 10, 5000)
			body := bodyOf(b, worst(classOf))
			b.ReportAllocs()
			for b.Loop() {
				simulated(b, s, l, body)
			}
		})
	}
}

// worstClasses are the classes of worst: one for each policy, or one that has slices.
var worstClasses = map[string]func(i int) string{
	"classes": func(i int) string { return fmt.Sprintf("worst-%02d", i) },
	"slices":  func(i int) string { return fmt.Sprintf("class-%d", i%10) },
}

// cpuTime is the time that all threads of the process have used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	test.Must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestOnePolicyIsSimulatedWithinTwoSeconds measures processor time. Other work on the machine extends it by half, so
// the bound is as much longer. Of three runs the fastest counts.
func TestOnePolicyIsSimulatedWithinTwoSeconds(t *testing.T) {
	s, l := evaluated(1000, 10, 5000)
	body := bodyOf(t, &rest.Change{Apply: []v1alpha1.ResourcePolicy{*zoned("policy-19", 19, 30)}})
	fastest := time.Hour
	for range 3 {
		start := cpuTime(t)
		simulated(t, s, l, body)
		fastest = min(fastest, cpuTime(t)-start)
	}
	if t.Logf("%v", fastest); fastest > kubetest.Slower(3*time.Second, 20) {
		t.Errorf("it takes %v", fastest)
	}
}

// TestAnEvaluationOfTheWorstChangeIsBounded measures from one question whether to end to the next: what a
// simulation can take beyond its time, and at most as memory. It is three seconds, and half more beside other work on
// the machine. Of three runs the fastest counts.
func TestAnEvaluationOfTheWorstChangeIsBounded(t *testing.T) {
	bound := kubetest.Slower(4500*time.Millisecond, 20)
	s, l := evaluated(1000, 10, 5000)
	for name, classOf := range worstClasses {
		longest, most := evaluationsOf(t, s, l, worst(classOf))
		for more := 2; more > 0 && longest > bound; more-- {
			again, _ := evaluationsOf(t, s, l, worst(classOf))
			longest = min(longest, again)
		}
		if longest > bound || most > 340<<20 {
			t.Errorf("%s: %v and %d MiB", name, longest, most>>20)
		}
	}
}

// countedFilter counts how often it is asked about each node.
type countedFilter struct {
	capacity.NodeFilter
	asked map[string]int
}

func (f countedFilter) Admits(n *capacity.Node) (ok bool, why string) {
	f.asked[f.String()+n.Name]++
	return f.NodeFilter.Admits(n)
}

// TestAnEvaluationOfTheWorstFiltersIsBounded counts the questions, of which package filter bounds each: time
// says little on a busy machine. It measures no memory: what a filter allocates is garbage after each node.
func TestAnEvaluationOfTheWorstFiltersIsBounded(t *testing.T) {
	s, l := evaluated(1000, 10, 5000)
	c := worst(worstClasses["slices"])
	const loop = "[0,1,2,3,4,5,6,7].all("
	for i := range rest.MaxFilters {
		c.Apply[i].Spec.Offer.Nodes.Filter = loop + "a, " + loop + "b, " + loop + "c, " + loop + fmt.Sprintf("d, a + b + c + d != %d))))", 99+i)
	}
	w := rehearse.Of(s, l.Copy())
	change, problems, err := ChangeOf(c, &w, nil)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	asked, start := map[string]int{}, cpuTime(t)
	for i := range rest.MaxFilters {
		filters := change.Apply[i].Parsed.Nodes.Selection.Filters
		for k := range filters {
			filters[k] = countedFilter{filters[k], asked}
		}
	}
	rehearse.Rehearse(&w, change, never)
	if most := 2 * rest.MaxFilters * 5000; len(asked) == 0 || len(asked) > most {
		t.Errorf("there are %d questions, want at most %d", len(asked), most)
	}
	for question, times := range asked {
		if times > 1 {
			t.Fatalf("%s is asked %d times", question, times)
		}
	}
	const mostOfOne = 5 * time.Millisecond // See internal/filter/limits.
	took := cpuTime(t) - start
	if t.Logf("%d questions, %v", len(asked), took); took > time.Duration(len(asked))*mostOfOne {
		t.Errorf("%d questions take %v", len(asked), took)
	}
}

// evaluationsOf returns the longest time, and the most memory that was allocated, from one question
// whether to end to the next.
func evaluationsOf(t *testing.T, s *table.Snapshot, l *capacity.Ledger, c *rest.Change) (longest time.Duration, most uint64) {
	t.Helper()
	w := rehearse.Of(s, l.Copy())
	change, problems, err := ChangeOf(c, &w, nil)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, evaluations := cpuTime(t), 0
	asked := func() bool {
		runtime.ReadMemStats(&after)
		longest, most = max(longest, cpuTime(t)-start), max(most, after.TotalAlloc-before.TotalAlloc)
		before, start = after, cpuTime(t)
		evaluations++
		return false
	}
	o := rehearse.Rehearse(&w, change, asked)
	asked()
	SimulationOf(o, rest.Evaluated{}, nil, nil)
	asked()
	t.Logf("at most %v and %d MiB, %d times", longest, most>>20, evaluations)
	return longest, most
}

func TestTheAnswerToTheWorstChangeIsBounded(t *testing.T) {
	s, l := evaluated(100, 10, 100)
	got := simulated(t, s, l, bodyOf(t, worst(worstClasses["classes"])))
	if len(got.Offers) != rest.MaxOfferChanges || fmt.Sprint(got.Truncated) != "[offers]" {
		t.Errorf("%d offers, truncated %v", len(got.Offers), got.Truncated)
	}
}

func TestAChangeBeyondItsBoundsIsRefused(t *testing.T) {
	s, l := evaluated(1, 1, 1)
	w := rehearse.Of(s, l.Copy())
	for _, tc := range []struct {
		refusal string
		beyond  func(*rest.Change)
	}{
		{"there are 33 policies: write at most 32", func(c *rest.Change) { c.Apply = append(c.Apply, *kubetest.Policy("more")) }},
		{"there are 4 different filters: write at most 3", func(c *rest.Change) {
			for i := range 4 {
				c.Apply[i].Spec.Offer.Nodes = &v1alpha1.Nodes{Filter: fmt.Sprintf("node.name != '%d'", i)}
			}
		}},
		{"there are 4 different filters: write at most 3", func(c *rest.Change) { // Nodes and consumers count for themselves.
			for i := range 2 {
				text := fmt.Sprintf("'%d' != ''", i)
				c.Apply[i].Spec.Offer.Nodes = &v1alpha1.Nodes{Filter: text}
				c.Apply[i].Spec.Consumers = &v1alpha1.Consumers{Filter: text}
			}
		}},
		{"there are 513 overrides in all policies: write at most 512", func(c *rest.Change) {
			s := &c.Apply[0].Spec
			s.Overrides = append(s.Overrides, s.Overrides[0])
		}},
		{"there are 4097 cluster IDs in all policies: write at most 4096", func(c *rest.Change) {
			c.Apply[1].Spec.Consumers = &v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"more"}}
		}},
		{"apply[1]: spec.overrides[0].consumers.clusterIDs[0] has 64 characters: write at most 63", func(c *rest.Change) {
			c.Apply[1].Spec.Overrides[0].Consumers.ClusterIDs[0] = v1alpha1.ClusterID(strings.Repeat("a", 64))
		}},
		{"there are 4097 labels, expressions, values and tolerations in the selectors", func(c *rest.Change) {
			n := c.Apply[31].Spec.Offer.Nodes
			n.Tolerations = append(n.Tolerations, n.Tolerations[0])
		}},
		{"there are 4097 labels, expressions, values and tolerations in the selectors", func(c *rest.Change) {
			c.Apply[0].Spec.Consumers = &v1alpha1.Consumers{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
		}},
		{"there are 33 different resources: write at most 32", func(c *rest.Change) {
			c.AddNodes[0].Allocatable["example.com/more"] = c.AddNodes[0].Allocatable["cpu"]
		}},
		{"there are 34 different resources: write at most 32", func(c *rest.Change) {
			c.Apply[2].Spec.Offer.Resources = []v1alpha1.ResourceName{"example.com/more"}
			c.Apply[3].Spec.Overrides[4].Offer.Max = kubetest.Quantities("example.com/other", "1")
		}},
		{"apply[2]: spec.offer.resources has 65 elements: write at most 64", func(c *rest.Change) {
			c.Apply[2].Spec.Offer.Resources = slices.Repeat([]v1alpha1.ResourceName{"cpu"}, 65)
		}},
		{"apply[2]: spec.slices.ingressClasses has 65 elements: write at most 64", func(c *rest.Change) {
			c.Apply[2].Spec.Slices = &v1alpha1.Slices{IngressClasses: make([]v1alpha1.ClassName, 65)}
		}},
		{"apply[2]: spec.slices.filterMessage has 257 characters: write at most 256", func(c *rest.Change) {
			c.Apply[2].Spec.Slices = &v1alpha1.Slices{FilterMessage: v1alpha1.Message(strings.Repeat("ü", 257))}
		}},
		{"apply[2]: metadata.name: ", func(c *rest.Change) { c.Apply[2].Name = strings.Repeat("a", 254) }},
		{"there are 65 kinds of nodes: write at most 64", func(c *rest.Change) { c.AddNodes = append(c.AddNodes, c.AddNodes[0]) }},
		{"there are 10001 added nodes: write at most 10000", func(c *rest.Change) { c.AddNodes[0].Count += 17 }},
		{"is not the name of a resource", func(c *rest.Change) {
			*c = rest.Change{AddNodes: []rest.AddedNodes{{Count: 1, Allocatable: kubetest.Quantities(strings.Repeat("a", 64), "1")}}}
		}},
	} {
		c := worst(worstClasses["classes"])
		if _, _, err := ChangeOf(c, &w, nil); err != nil {
			t.Fatal(err)
		}
		tc.beyond(c)
		if _, _, err := ChangeOf(c, &w, nil); err == nil || !strings.Contains(err.Error(), tc.refusal) {
			t.Errorf("got %v, want %s", err, tc.refusal)
		}
	}
}

// Whoever adds a field to policies need not know that rehearsals are bounded.
func TestAFieldThatIsAddedToPoliciesIsCounted(t *testing.T) {
	selector := &metav1.LabelSelector{
		MatchLabels:      map[string]string{"a": "b"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "c", Operator: metav1.LabelSelectorOpIn, Values: []string{"d", "e"}}},
	}
	for _, tc := range []struct {
		added any
		tag   reflect.StructTag
		want  string
	}{
		{[]v1alpha1.ClusterID{"rome", "oslo"}, "", "2 IDs"},
		{&v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}, Selector: selector, Filter: "true"}, "", "1 IDs 4 terms 1 filters"},
		{[]corev1.Toleration{{}, {}}, "", "2 terms"},
		{kubetest.Quantities("cpu", "1", "memory", "1"), "", "2 resources"},
		{[]v1alpha1.ResourceName{"cpu", "cpu"}, "", "1 resources"},
		{[]v1alpha1.Override{{}, {}}, "", "2 overrides"},
		{"true", `text:"request filter"`, "1 filters"},
		{"gold", `text:"class"`, ""},
	} {
		s := sizes{resources: map[string]struct{}{}, filters: map[string]struct{}{}}
		policy.Visit(kubetest.SpecWith(tc.added, tc.tag), s.add)
		var got []string
		for i, n := range []int{s.overrides, s.clusterIDs, s.terms, len(s.resources), len(s.filters)} {
			if n > 0 {
				got = append(got, fmt.Sprint(n, " ", []string{"overrides", "IDs", "terms", "resources", "filters"}[i]))
			}
		}
		if text := strings.Join(got, " "); text != tc.want {
			t.Errorf("%T tagged %s: got %s, want %s", tc.added, tc.tag, text, tc.want)
		}
	}
}

func TestARehearsalEndsBetweenTwoEvaluations(t *testing.T) {
	s, l := evaluated(10, 1, 10)
	w := rehearse.Of(s, l.Copy())
	for after := range 4 {
		asked := 0
		if o := rehearse.Rehearse(&w, &rehearse.Change{}, func() bool { asked++; return asked > after }); o != nil && asked <= after || asked > after+1 {
			t.Errorf("asked %d times, to end after %d", asked, after)
		}
	}
}
