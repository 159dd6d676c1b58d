package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const gpu = "nvidia.com/gpu"

func TestNodesWithAboutTheSameFreeAreOneShape(t *testing.T) {
	l := NewLedger()
	of := func(cpu, gib, gpus int64) func(*Node) {
		return allocatable(Amounts{CPU: cpu, Memory: gib << 30, Pods: 110, gpu: gpus})
	}
	for i, milli := range []int64{20_000, 21_000, 23_990} {
		l.SetNode(node(fmt.Sprint("gpu", i), of(milli, 200, 4)))
	}
	for i := range 5 {
		l.SetNode(node(fmt.Sprint("cpu", i), of(8000, 32, 0)))
	}
	l.SetNode(node("full", allocatable(Amounts{CPU: 64_000, Memory: 512 << 30, Pods: 1, gpu: 8})))
	l.SetPod(pod("p", "full", "rome", 1))
	l.SetNode(node("without slots", allocatable(Amounts{CPU: 64_000, Memory: 512 << 30})))
	want := Shapes{
		Largest: Amounts{CPU: 23_990, Memory: 200 << 30, Pods: 110, gpu: 4},
		List: []Shape{
			{3, Amounts{CPU: 20_000, Memory: 192 << 30, gpu: 4}},
			{5, Amounts{CPU: 8000, Memory: 32 << 30}},
		},
	}
	if diff := gocmp.Diff(want, l.Shapes([]ShapeQuery{{Selection{}, all}})[0]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// A class without GPUs has the same nodes, and no word of GPUs.
	want.Largest, want.List[0].Free = Amounts{CPU: 23_990, Memory: 200 << 30, Pods: 110}, Amounts{CPU: 20_000, Memory: 192 << 30}
	got := l.Shapes([]ShapeQuery{{Selection{}, func(name string) bool { return name != gpu }}})[0]
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAnAmountOfAShapeIsRoundedDownByLessThanAFifth(t *testing.T) {
	for _, tc := range []struct {
		name         string
		amount, want int64
	}{
		{CPU, 124, 0}, {CPU, 125, 125}, {CPU, 999, 875}, {CPU, 1249, 1000}, {CPU, 3999, 3500}, {CPU, 7999, 7000},
		{CPU, 9999, 8000}, {CPU, 31_999, 28_000}, {CPU, 63_999, 56_000}, {Memory, 128<<20 - 1, 0}, {Memory, 200 << 30, 192 << 30},
		{"hugepages-1Gi", 5 << 30, 5 << 30}, {gpu, 7, 7}, {gpu, 8, 8}, {gpu, 9, 8}, {gpu, 0, 0}, {gpu, math.MaxInt64, 7 << 60},
	} {
		if got := RoundDown(tc.name, tc.amount); got != tc.want {
			t.Errorf("%s %d: got %d, want %d", tc.name, tc.amount, got, tc.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{CPU, Memory, gpu, "ephemeral-storage"}).Draw(t, "name")
		amount := rapid.Int64Range(0, math.MaxInt64).Draw(t, "amount")
		got := RoundDown(name, amount)
		if step := stepsOf[name]; got > amount || got%step != 0 || amount >= 4*step && got <= amount/5*4 || amount-got >= max(step, amount/4+1) {
			t.Fatalf("%s %d is rounded to %d", name, amount, got)
		}
		if again := RoundDown(name, got); again != got {
			t.Fatalf("%s %d is rounded to %d, and that to %d", name, amount, got, again)
		}
	})
}

// stepsOf holds the least step of each name, 1 for others.
var stepsOf = map[string]int64{CPU: 125, Memory: 128 << 20, "ephemeral-storage": 128 << 20, gpu: 1, "example.com/z": 1}

func TestShapesAreThoseOfANaiveModelInAnyOrderOfEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, pods := anyRooms(t)
		class := rapid.SampledFrom([][]string{
			{CPU, Memory, Pods, gpu, "ephemeral-storage", "example.com/z"}, {CPU, Memory, Pods}, {gpu}, {Memory, gpu, Pods}, {"example.com/none"},
		}).Draw(t, "class")
		admits := func(name string) bool { return slices.Contains(class, name) }
		got := filled(nodes, pods).Shapes([]ShapeQuery{{Selection{}, admits}})[0]
		want := naiveShapes(nodes, pods, class)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
		again := filled(rapid.Permutation(nodes).Draw(t, "nodes"), rapid.Permutation(pods).Draw(t, "pods"))
		if diff := gocmp.Diff(got, again.Shapes([]ShapeQuery{{Selection{Selector: nothing}, all}, {Selection{}, admits}})[1]); diff != "" {
			t.Fatalf("in another order: (-want +got)\n%s", diff)
		}
		checkCounts(t, got, nodes, pods)
	})
}

func TestBoundedShapesPromiseNoMoreThanTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, pods := anyRooms(t)
		all := filled(nodes, pods).Shapes([]ShapeQuery{{Selection{}, all}})[0]
		most := Amounts{}
		for _, name := range []string{CPU, Memory, Pods, gpu, "ephemeral-storage"} {
			if rapid.IntRange(0, 5).Draw(t, "has "+name) > 0 {
				most[name] = rapid.Int64Range(0, 12).Draw(t, "most "+name) * max(1, stepsOf[name])
			}
		}
		got := all.Within(most)
		checkCounts(t, got, nodes, pods)
		for i, s := range got.List {
			for name, amount := range s.Free {
				if amount <= 0 || amount > most[name] {
					t.Fatalf("%v is not within %v", s, most)
				}
			}
			if slices.ContainsFunc(got.List[:i], func(o Shape) bool { return maps.Equal(o.Free, s.Free) }) {
				t.Fatalf("%v is listed twice", s)
			}
		}
		for name, amount := range got.Largest {
			if amount > most[name] {
				t.Fatalf("the largest pod %v is not within %v", got.Largest, most)
			}
		}
		without := slices.ContainsFunc([]string{CPU, Memory, Pods}, func(name string) bool {
			amount, has := most[name]
			return has && amount == 0
		})
		if (got.List == nil) != (got.Largest == nil) || without && got.List != nil {
			t.Fatalf("of %v there is %+v", most, got)
		}
		if plenty := (Amounts{CPU: math.MaxInt64, Memory: math.MaxInt64, Pods: math.MaxInt64, gpu: math.MaxInt64, "ephemeral-storage": math.MaxInt64, "example.com/z": math.MaxInt64}); all.List != nil {
			if diff := gocmp.Diff(all.List[:min(len(all.List), MaxShapes)], all.Within(plenty).List); diff != "" {
				t.Fatalf("without a bound: (-want +got)\n%s", diff)
			}
		}
	})
}

func TestShapesAreBounded(t *testing.T) {
	l := NewLedger()
	for i := range 200 {
		amounts := Amounts{CPU: 1000, Memory: 1 << 30, Pods: 10}
		for k := range 20 {
			amounts[fmt.Sprintf("example.com/r%02d", k)] = int64(i+k)%7 + 1
		}
		amounts[CPU] = int64(i+1) * 1000
		l.SetNode(node(fmt.Sprint("n", i), allocatable(amounts)))
	}
	s := l.Shapes([]ShapeQuery{{Selection{}, all}})[0]
	if len(s.List) != maxKeptShapes || len(s.List[0].Free) != MaxShapeResources || s.List[0].Free["example.com/r14"] != 0 || s.List[0].Free["example.com/r13"] == 0 {
		t.Errorf("%d shapes, the first %v", len(s.List), s.List[0])
	}
	if shown := s.Within(s.Largest).List; len(shown) > MaxShapes {
		t.Errorf("%d shapes are shown", len(shown))
	}
}

// anyRooms draws nodes, some of which are not usable, and pods.
func anyRooms(t *rapid.T) (nodes []Node, pods []Pod) {
	states := []NodeState{Ready, Ready, Ready, Ready, NotReady, Cordoned}
	for i := range rapid.IntRange(0, 12).Draw(t, "nodes") {
		amounts := Amounts{}
		for name, most := range map[string]int64{CPU: 12, Memory: 12, Pods: 4, gpu: 3, "ephemeral-storage": 3, "example.com/z": 2} {
			if rapid.IntRange(0, 9).Draw(t, "lists "+name) > 0 {
				amounts[name] = rapid.Int64Range(0, most).Draw(t, name) * max(1, stepsOf[name])
			}
		}
		nodes = append(nodes, node(fmt.Sprint("n", i), allocatable(amounts), func(n *Node) {
			n.State = rapid.SampledFrom(states).Draw(t, "state")
		}))
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "pods") {
		p := Pod{Key: fmt.Sprint(i), Node: fmt.Sprint("n", rapid.IntRange(0, 12).Draw(t, "on")), Requests: Amounts{}}
		p.Consumer = rapid.SampledFrom([]string{"", "rome"}).Draw(t, "of")
		for name, most := range map[string]int64{CPU: 1500, Memory: 600 << 20, gpu: 2} {
			p.Requests[name] = rapid.Int64Range(0, most).Draw(t, "requests "+name)
		}
		pods = append(pods, p)
	}
	return nodes, pods
}

func filled(nodes []Node, pods []Pod) *Ledger {
	l := NewLedger()
	for _, n := range nodes {
		l.SetNode(n)
	}
	for _, p := range pods {
		l.SetPod(p)
	}
	return l
}

// freeOn returns what is free on a usable node, nil for others.
func freeOn(n Node, pods []Pod) Amounts {
	if n.State != Ready {
		return nil
	}
	free := maps.Clone(n.Allocatable)
	for _, p := range pods {
		if p.Node != n.Name {
			continue
		}
		for name := range free {
			if free[name] -= p.Requests[name]; name == Pods {
				free[name]--
			}
		}
	}
	for name := range free {
		free[name] = max(0, free[name])
	}
	return free
}

// checkCounts checks that a pod of the size of the largest one has a node, and that as many pods of
// the sizes of the shapes as their nodes are have different nodes: a node is taken by the first
// shape that it has room for.
func checkCounts(t *rapid.T, s Shapes, nodes []Node, pods []Pod) {
	t.Helper()
	starts := func(n Node, size Amounts) bool {
		free := freeOn(n, pods)
		size = maps.Clone(size)
		delete(size, Pods)
		return free[Pods] >= 1 && size.within(free)
	}
	if s.Largest != nil && !slices.ContainsFunc(nodes, func(n Node) bool { return starts(n, nonzero(s.Largest)) }) {
		t.Fatalf("no node has room for the largest pod %v", s.Largest)
	}
	together := 0
	for _, shape := range s.List {
		together += shape.Nodes
		fit := 0
		for _, n := range nodes {
			if starts(n, shape.Free) {
				fit++
			}
		}
		if fit < shape.Nodes || shape.Nodes < 1 {
			t.Fatalf("%d nodes have room for %v", fit, shape)
		}
	}
	if together > len(nodes) {
		t.Fatalf("the shapes have %d nodes of %d", together, len(nodes))
	}
}

func nonzero(a Amounts) Amounts {
	a = maps.Clone(a)
	maps.DeleteFunc(a, func(_ string, amount int64) bool { return amount == 0 })
	return a
}

// naiveGroup is a shape with the exact amounts of its nodes.
type naiveGroup struct {
	free  Amounts
	exact []Amounts
	names []string
}

// naiveShapes works the shapes out as their documentation has it, with fractions.
func naiveShapes(nodes []Node, pods []Pod, class []string) Shapes {
	pool, groups := sums{}, map[string]*naiveGroup{}
	for _, n := range nodes {
		for name, amount := range n.Allocatable {
			if n.State == Ready {
				pool.add(name, big.NewInt(amount))
			}
		}
	}
	needs := func(a Amounts, name string) bool {
		return slices.Contains(class, name) && pool[name] != nil && pool[name].Sign() > 0 && a[name] == 0
	}
	for _, n := range nodes {
		free := freeOn(n, pods)
		shape := Amounts{}
		for name, amount := range free {
			if slices.Contains(class, name) && name != Pods {
				shape[name] = naiveRound(name, amount)
			}
		}
		shape = nonzero(shape)
		if free[Pods] == 0 || len(shape) == 0 || needs(shape, CPU) || needs(shape, Memory) {
			continue
		}
		key := fmt.Sprint(shape)
		if groups[key] == nil {
			groups[key] = &naiveGroup{free: shape}
		}
		maps.DeleteFunc(free, func(name string, _ int64) bool { return !slices.Contains(class, name) })
		groups[key].exact, groups[key].names = append(groups[key].exact, free), append(groups[key].names, n.Name)
	}
	sorted := slices.SortedFunc(maps.Values(groups), func(a, b *naiveGroup) int { return naiveCompare(a.free, b.free, pool) })
	out := Shapes{}
	for i, g := range sorted {
		out.List = append(out.List, Shape{len(g.exact), g.free})
		if i > 0 {
			continue
		}
		best := 0
		for k := range g.exact {
			if cmp.Or(naiveCompare(g.exact[k], g.exact[best], pool), cmp.Compare(g.exact[best][Pods], g.exact[k][Pods]),
				strings.Compare(g.names[k], g.names[best])) < 0 {
				best = k
			}
		}
		slots, listed := freeOn(nodes[slices.IndexFunc(nodes, func(n Node) bool { return n.Name == g.names[best] })], pods)[Pods]
		if out.Largest = g.exact[best]; listed && slices.Contains(class, Pods) {
			out.Largest[Pods] = slots
		}
	}
	return out
}

// naiveRound tries all amounts of the form 4 to 7 times a power of two steps, and less than four
// steps.
func naiveRound(name string, amount int64) (best int64) {
	for step := stepsOf[name]; step <= amount; step *= 2 {
		for times := int64(1); times <= 7; times++ {
			if step*times <= amount {
				best = max(best, step*times)
			}
		}
	}
	return best
}

// naiveCompare compares by the sum of parts of the pool, each rounded down to 2^-40, then by name.
func naiveCompare(a, b Amounts, pool sums) int {
	size := func(of Amounts) *big.Int {
		sum := new(big.Int)
		for name, amount := range of {
			if name != Pods && amount > 0 {
				part := new(big.Int).Lsh(big.NewInt(amount), 40)
				sum.Add(sum, part.Quo(part, pool[name]))
			}
		}
		return sum
	}
	order := size(b).Cmp(size(a))
	for _, name := range []string{CPU, Memory, "example.com/z", gpu, "ephemeral-storage"} {
		order = cmp.Or(order, cmp.Compare(b[name], a[name]))
	}
	return order
}

// 5,000 nodes of all degrees of use, 50,000 pods, and 5 classes.
func BenchmarkShapes(b *testing.B) {
	l := NewLedger()
	for i := range 5000 {
		l.SetNode(node(fmt.Sprint("n", i), allocatable(Amounts{CPU: 64_000, Memory: 256 << 30, Pods: 110, gpu: int64(i % 9), "ephemeral-storage": 1 << 40})))
	}
	for i := range 50_000 {
		l.SetPod(Pod{Key: fmt.Sprint(i), Node: fmt.Sprint("n", i*i%5000), Requests: Amounts{CPU: int64(i % 5000), Memory: int64(i%7000) << 20}})
	}
	queries := slices.Repeat([]ShapeQuery{{Selection{}, all}}, 5)
	b.ReportAllocs()
	for b.Loop() {
		l.Shapes(queries)
	}
}
