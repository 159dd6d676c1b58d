package capacity

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// world is the model that a Ledger is compared with: the objects themselves.
type world struct {
	nodes map[string]Node
	// pods has what counts: the existing pods, and the announced ones from which none of them is made.
	pods, existing, announced map[string]Pod
	groups                    []NodeGroup
	// reselling is set if a selection is of peers.
	reselling bool
}

// count sets the pods that count.
func (w *world) count() {
	w.pods = maps.Clone(w.announced)
	for _, p := range w.existing {
		delete(w.pods, p.From)
	}
	maps.Copy(w.pods, w.existing)
}

func (w world) counts(n Node) bool { return w.reselling || !n.Virtual }

// withPeers returns the model with each node as it counts: its group may know better whose it is.
func (w world) withPeers() world {
	nodes := maps.Clone(w.nodes)
	for _, g := range w.groups {
		for _, name := range g.Nodes {
			if n, known := nodes[name]; known && g.Peer != "" {
				n.Virtual, n.Peer = true, g.Peer
				nodes[name] = n
			}
		}
	}
	w.nodes = nodes
	return w
}

// allocatable returns what counts of a node: less than it lists if its group was given less.
func (w world) allocatable(t *rapid.T, n Node) Amounts {
	of := slices.IndexFunc(w.groups, func(g NodeGroup) bool { return slices.Contains(g.Nodes, n.Name) })
	if of < 0 || !n.Virtual {
		return n.Allocatable
	}
	var members []Node
	for _, name := range w.groups[of].Nodes {
		if member := w.nodes[name]; member.Virtual {
			members = append(members, member)
		}
	}
	slices.SortFunc(members, func(a, b Node) int {
		if (a.State == Ready) != (b.State == Ready) {
			if a.State == Ready {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	out := Amounts{}
	for name := range n.Allocatable {
		given := w.groups[of].Given[name]
		if w.groups[of].Given == nil {
			for _, member := range members {
				given = max(given, member.Allocatable[name])
			}
		}
		left, has := given, map[string]int64{}
		for _, member := range members {
			requested := sums{}
			for _, p := range w.pods {
				if p.Node == member.Name {
					requested.addPod(p)
				}
			}
			has[member.Name] = min(left, member.Allocatable[name], requested.amounts()[name])
			left -= has[member.Name]
		}
		sum := new(big.Int)
		for _, member := range members {
			more := min(left, member.Allocatable[name]-has[member.Name])
			has[member.Name], left = has[member.Name]+more, left-more
			sum.Add(sum, big.NewInt(has[member.Name]))
		}
		if sum.Cmp(big.NewInt(given)) > 0 {
			t.Fatalf("the nodes of a group have %v of %s, which is more than the %d that it was given", sum, name, given)
		}
		out[name] = has[n.Name]
	}
	return out
}

// sums adds up amounts as integers of any size.
type sums map[string]*big.Int

func (s sums) add(name string, amount *big.Int) {
	if s[name] == nil {
		s[name] = new(big.Int)
	}
	s[name].Add(s[name], amount)
}

// addPod adds the requests of the pod.
func (s sums) addPod(p Pod) {
	s.add(Pods, big.NewInt(1))
	for name, amount := range p.Requests {
		if name != Pods {
			s.add(name, big.NewInt(amount))
		}
	}
}

// leave returns what the sums leave of an amount, at least 0.
func (s sums) leave(name string, amount int64) *big.Int {
	left := big.NewInt(amount)
	if s[name] != nil {
		left.Sub(left, s[name])
	}
	if left.Sign() < 0 {
		return new(big.Int)
	}
	return left
}

// amounts returns the positive sums, each limited to the largest int64.
func (s sums) amounts() Amounts {
	a := Amounts{}
	for name, n := range s {
		if n.Sign() > 0 {
			a[name] = math.MaxInt64
			if n.IsInt64() {
				a[name] = n.Int64()
			}
		}
	}
	return a
}

// namedView is a View with amounts by resource name.
type namedView struct {
	Columns []string
	Pools   []namedPool
	Singles []namedSingle
	Used    map[string]namedUse
}

type namedSingle struct {
	Name                     string
	Pools, CordonedFrom      []int
	Allocatable, Free, InUse Amounts
	Used                     map[string]Amounts
}

type namedPool struct {
	Nodes, Known             int
	Listed                   []string
	Allocatable, Free, InUse Amounts
	Blocked                  Amounts
	Shared                   []int
	Overlaps                 []bool
	LeftOut, Filtered, Full  int
	FirstLeftOut, FirstFull  []string
}

type namedUse struct {
	Everywhere, Stranded Amounts
	ByPool               []Amounts
	ByCreator            map[string]Amounts
}

// amountsOf returns the positive sums of these names.
func (s sums) amountsOf(names []string) Amounts {
	a := s.amounts()
	maps.DeleteFunc(a, func(name string, _ int64) bool { return !slices.Contains(names, name) })
	return a
}

// columns returns the expected columns: cpu, memory and pods, the resources that nodes list, the
// ones asked for, and previous columns that consumers' pods still request.
func (w world) columns(asked, before []string) []string {
	used := sums{}
	for _, p := range w.pods {
		if p.Consumer != "" && w.counts(w.nodes[p.Node]) {
			used.addPod(p)
		}
	}
	others := map[string]bool{}
	for _, n := range w.nodes {
		for name := range n.Allocatable {
			others[name] = others[name] || w.counts(n)
		}
	}
	for _, name := range asked {
		others[name] = true
	}
	for name := range used.amountsOf(before) {
		others[name] = true
	}
	maps.DeleteFunc(
		others,
		func(name string, shown bool) bool { return !shown || name == CPU || name == Memory || name == Pods },
	)
	return append([]string{CPU, Memory, Pods}, slices.Sorted(maps.Keys(others))...)
}

// references counts the objects that have the resource name, plus its column.
func (w world) references(columns []string, name string) (n int) {
	for _, node := range w.nodes {
		if _, ok := node.Allocatable[name]; ok {
			n++
		}
	}
	for _, p := range w.pods {
		if name == Pods || p.Requests[name] > 0 {
			n++
		}
	}
	if slices.Contains(columns, name) {
		n++
	}
	return n
}

// recount returns the expected View, summed from the objects.
func (w world) recount(t *rapid.T, selections []Selection, asked, before []string) namedView {
	w = w.withPeers()
	w.reselling = slices.ContainsFunc(selections, func(s Selection) bool { return s.Peers != nil })
	all := namedView{Columns: w.columns(asked, before), Used: map[string]namedUse{}}
	usedBy := func(counts func(Pod) bool) Amounts {
		used := sums{}
		for _, p := range w.pods {
			if p.Consumer != "" && counts(p) {
				used.addPod(p)
			}
		}
		return used.amountsOf(all.Columns)
	}
	in := func(s Selection) func(string) bool {
		return func(name string) bool { n, known := w.nodes[name]; return known && s.Matches(&n) }
	}
	for _, p := range w.pods {
		if _, counted := all.Used[p.Consumer]; counted || p.Consumer == "" || !w.counts(w.nodes[p.Node]) {
			continue
		}
		ours := func(of Pod) bool { return of.Consumer == p.Consumer && w.counts(w.nodes[of.Node]) }
		use := namedUse{Everywhere: usedBy(ours), ByCreator: map[string]Amounts{}}
		use.Stranded = usedBy(func(of Pod) bool {
			n, known := w.nodes[of.Node]
			return ours(of) && known && n.State == NotReady
		})
		for _, s := range selections {
			use.ByPool = append(use.ByPool, usedBy(func(of Pod) bool { return ours(of) && in(s)(of.Node) }))
		}
		for _, by := range w.pods {
			if ours(by) && by.Creator != "" {
				use.ByCreator[by.Creator] = usedBy(func(of Pod) bool { return ours(of) && of.Creator == by.Creator })
			}
		}
		all.Used[p.Consumer] = use
	}
	for _, s := range selections {
		pool := namedPool{InUse: usedBy(func(p Pod) bool { return in(s)(p.Node) })}
		allocatable, free, blocked, listed := sums{}, sums{}, sums{}, map[string]bool{}
		for _, n := range w.nodes {
			if n.Virtual == (s.Peers != nil) {
				pool.Known++
			}
			if !in(s)(n.Name) {
				if s.selects(&n) {
					pool.LeftOut++
					if s.usable(&n) {
						pool.Filtered++
					}
					pool.FirstLeftOut = append(pool.FirstLeftOut, n.Name)
				}
				continue
			}
			if n.Deleted || !n.Virtual && n.Labels[OSLabel] == "windows" {
				t.Fatalf("%s is in a pool: %+v", n.Name, n)
			}
			pool.Nodes++
			local, ofAll, bound := sums{}, sums{}, int64(0)
			for _, p := range w.pods {
				if p.Node == n.Name {
					ofAll.addPod(p)
					bound++
					if p.Consumer == "" {
						local.addPod(p)
					}
				}
			}
			has := w.allocatable(t, n)
			slots, limited := has[Pods]
			full := limited && bound >= slots
			if full {
				pool.Full++
				pool.FirstFull = append(pool.FirstFull, n.Name)
			}
			for name, amount := range has {
				listed[name] = true
				allocatable.add(name, big.NewInt(amount))
				left := ofAll.leave(name, amount)
				if full {
					blocked.add(name, left)
					left = new(big.Int).Sub(local.leave(name, amount), left)
				} else {
					left = local.leave(name, amount)
				}
				free.add(name, left)
			}
		}
		pool.Listed, pool.Allocatable, pool.Free = slices.Sorted(maps.Keys(listed)), allocatable.amounts(), free.amounts()
		pool.Blocked = blocked.amounts()
		slices.Sort(pool.FirstFull)
		slices.Sort(pool.FirstLeftOut)
		pool.FirstLeftOut = pool.FirstLeftOut[:min(pool.LeftOut, MaxUnusableNamed)]
		for _, other := range selections {
			shared := 0
			for _, n := range w.nodes {
				if in(s)(n.Name) && in(other)(n.Name) {
					shared++
				}
			}
			pool.Shared, pool.Overlaps = append(pool.Shared, shared), append(pool.Overlaps, shared > 0)
		}
		all.Pools = append(all.Pools, pool)
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if n := w.single(t, selections, w.nodes[name]); len(n.Pools)+len(n.CordonedFrom) > 0 {
			all.Singles = append(all.Singles, n)
		}
	}
	return all
}

// single returns the expected Single of a node.
func (w world) single(t *rapid.T, selections []Selection, n Node) namedSingle {
	out := namedSingle{Name: n.Name, Used: map[string]Amounts{}}
	uncordoned := n
	if n.State == Cordoned {
		uncordoned.State = Ready
	}
	for i, s := range selections {
		switch {
		case !s.Single:
		case s.Matches(&n):
			out.Pools = append(out.Pools, i)
		case n.State == Cordoned && s.selects(&n) && s.usable(&uncordoned):
			out.CordonedFrom = append(out.CordonedFrom, i)
		}
	}
	allocatable, local, ofAll, used := sums{}, sums{}, sums{}, sums{}
	of, bound := map[string]sums{}, int64(0)
	for _, p := range w.pods {
		if p.Node != n.Name {
			continue
		}
		ofAll.addPod(p)
		if bound++; p.Consumer == "" {
			local.addPod(p)
			continue
		}
		used.addPod(p)
		by := p.Consumer + "/" + p.Creator
		if of[by] == nil {
			of[by] = sums{}
		}
		of[by].addPod(p)
	}
	free, has := sums{}, w.allocatable(t, n)
	slots, limited := has[Pods]
	for name, amount := range has {
		allocatable.add(name, big.NewInt(amount))
		left := local.leave(name, amount)
		if limited && bound >= slots {
			left = new(big.Int).Sub(left, ofAll.leave(name, amount))
		}
		free.add(name, left)
	}
	out.Allocatable, out.Free, out.InUse = allocatable.amounts(), free.amounts(), used.amounts()
	for by, sum := range of {
		out.Used[by] = sum.amounts()
	}
	return out
}

// readSingles converts the Singles of a View.
func readSingles(v View) (all []namedSingle) {
	for _, n := range v.Singles {
		out := namedSingle{
			Name: n.Name, Pools: n.Pools, CordonedFrom: n.CordonedFrom, Used: map[string]Amounts{},
			Allocatable: amounts(v, n.Allocatable), Free: amounts(v, n.Free), InUse: amounts(v, n.InUse),
		}
		for _, u := range n.Used {
			out.Used[u.Consumer+"/"+u.Creator] = amounts(v, n.UsedBy(u.Consumer, u.Creator))
		}
		all = append(all, out)
	}
	return all
}

// read converts a View, and checks that its parts are consistent.
func read(t *rapid.T, v View) namedView {
	all := namedView{Columns: v.Columns, Singles: readSingles(v), Used: map[string]namedUse{}}
	for consumer, use := range v.Used.All {
		u := namedUse{Everywhere: amounts(v, use.Everywhere), Stranded: amounts(v, use.Stranded), ByCreator: map[string]Amounts{}}
		for creator := range use.ByCreator {
			u.ByCreator[creator] = amounts(v, use.By(creator))
		}
		for i := range v.Pools {
			u.ByPool = append(u.ByPool, amounts(v, use.In(i)))
		}
		all.Used[consumer] = u
		if v.Used.Of(consumer) != use {
			t.Fatalf("%s: All and Of return different uses", consumer)
		}
	}
	if v.Used.Len() != len(all.Used) {
		t.Fatalf("Len is %d, but All yields %d", v.Used.Len(), len(all.Used))
	}
	cells := map[string]bool{}
	for _, c := range v.Cells {
		cells[fmt.Sprint(c.Pools, c.Peer)] = true
	}
	if len(cells) != len(v.Cells) {
		t.Fatalf("two cells are in the same pools, and of the same peer: %+v", v.Cells)
	}
	for i, p := range v.Pools {
		checkCells(t, v, i)
		pool := namedPool{
			Nodes: p.Nodes, Known: p.Known, Allocatable: amounts(v, p.Allocatable), Free: amounts(v, p.Free), InUse: amounts(v, p.InUse),
			Shared: p.Shared, Overlaps: p.Overlaps, LeftOut: p.Unusable.Count, Filtered: p.Unusable.Filtered,
			Blocked: amounts(v, p.Blocked), Full: p.Full.Count,
		}
		for _, n := range p.Full.First {
			pool.FirstFull = append(pool.FirstFull, n.Name)
		}
		for _, n := range p.Unusable.First {
			pool.FirstLeftOut = append(pool.FirstLeftOut, n.Name)
		}
		for i, listed := range p.Listed {
			if listed {
				pool.Listed = append(pool.Listed, v.Columns[i])
			}
		}
		slices.Sort(pool.Listed)
		all.Pools = append(all.Pools, pool)
	}
	return all
}

// checkCells checks that the amounts of a pool are the sums over its cells.
func checkCells(t *rapid.T, v View, pool int) {
	allocatable, free, used := sums{}, sums{}, sums{}
	for _, c := range v.Cells {
		if !slices.Contains(c.Pools, pool) {
			continue
		}
		for i, name := range v.Columns {
			allocatable.add(name, big.NewInt(c.Allocatable[i]))
			free.add(name, big.NewInt(c.Free[i]))
			used.add(name, big.NewInt(c.InUse[i]))
		}
	}
	// Both the amounts of cells and those of pools are limited to the largest int64.
	if want, got := amounts(v, v.Pools[pool].Allocatable), allocatable.amounts(); !maps.Equal(got, want) {
		t.Fatalf("pool %d: allocatable of the cells is %v, of the pool %v", pool, got, want)
	}
	if want, got := amounts(v, v.Pools[pool].Free), free.amounts(); !maps.Equal(got, want) {
		t.Fatalf("pool %d: free of the cells is %v, of the pool %v", pool, got, want)
	}
	if want, got := amounts(v, v.Pools[pool].InUse), used.amounts(); !maps.Equal(got, want) {
		t.Fatalf("pool %d: in use in the cells is %v, in the pool %v", pool, got, want)
	}
}

func TestTheLedgerEqualsARecountAfterAnyOrderOfEvents(t *testing.T) {
	amount := rapid.OneOf(rapid.Int64Range(0, 20), rapid.SampledFrom([]int64{math.MaxInt64, math.MaxInt64 - 1, 1 << 62}))
	resource := rapid.SampledFrom(
		[]string{CPU, Memory, Pods, "nvidia.com/gpu", "example.com/fpga", "made.up/a", "made.up/b"},
	)
	state := rapid.SampledFrom([]NodeState{Ready, Ready, Ready, Ready, NotReady, Cordoned})
	every := []Selection{
		{Peers: &Peers{Depth: 1}},
		{Peers: &Peers{Depth: 2, IDs: []string{"milan"}}},
		{Peers: &Peers{Depth: 3}, Selector: having("zone", "a"), Tolerations: []Toleration{tolerates("")}},
		{},
		{Selector: nothing},
		{Selector: having("zone", "a"), Single: true},
		{Tolerations: []Toleration{tolerates("")}},
		{Single: true, Filters: []NodeFilter{&nodeFilter{text: "8 cpu", admits: func(n *Node) bool { return n.Allocatable[CPU] >= 8 }}}},
		{Selector: having("zone", "a"), Filters: []NodeFilter{&nodeFilter{text: "pods", admits: func(n *Node) bool { return n.Allocatable[Pods] > 0 }}}},
	}
	rapid.Check(t, func(t *rapid.T) {
		selections, asked := every, []string{"example.com/fpga"}
		l, w := NewLedger(), world{nodes: map[string]Node{}, existing: map[string]Pod{}, announced: map[string]Pod{}}
		var (
			before   View
			expected namedView
		)
		nodeName := rapid.SampledFrom([]string{"n1", "n2", "n3"})
		podKey := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("p", rapid.IntRange(0, 9).Draw(t, "pod")) })
		announcedKey := rapid.SampledFrom([]string{"a1", "a2", "a3"})
		pod := func(t *rapid.T, key *rapid.Generator[string], consumers ...string) Pod {
			return Pod{
				Key: key.Draw(t, "key"), Consumer: rapid.SampledFrom(consumers).Draw(t, "consumer"),
				Creator: rapid.SampledFrom([]string{"", "slice-1", "slice-2", strings.Repeat("x", MaxCreator+1)}).
					Draw(t, "creator"),
				Requests: rapid.MapOf(resource, amount).Draw(t, "requests"),
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"set node": func(t *rapid.T) {
				n := Node{
					Name: nodeName.Draw(t, "name"), State: state.Draw(t, "state"),
					Labels:      map[string]string{"zone": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")},
					Allocatable: rapid.MapOf(resource, amount).Draw(t, "allocatable"),
				}
				if n.Virtual = rapid.Bool().Draw(t, "virtual"); n.Virtual {
					n.Peer = rapid.SampledFrom([]string{"milan", "oslo", ""}).Draw(t, "peer")
					n.Depth = rapid.SampledFrom([]int{0, 0, 1, 2, UnknownDepth}).Draw(t, "depth")
				}
				n.Deleted = rapid.IntRange(0, 9).Draw(t, "deleted") == 0
				if !n.Virtual && rapid.IntRange(0, 9).Draw(t, "windows") == 0 {
					n.Labels[OSLabel] = "windows"
				}
				if rapid.Bool().Draw(t, "tainted") {
					n.Taints = []Taint{{Key: "k", Effect: NoExecute}}
				}
				l.SetNode(n)
				w.nodes[n.Name] = n
			},
			"delete node": func(t *rapid.T) {
				name := nodeName.Draw(t, "name")
				l.DeleteNode(name)
				delete(w.nodes, name)
			},
			"set pod": func(t *rapid.T) {
				p := pod(t, podKey, "", "", "rome", "oslo")
				p.Node = rapid.OneOf(nodeName, rapid.Just("")).Draw(t, "node")
				p.From = rapid.OneOf(rapid.Just(""), announcedKey).Draw(t, "from")
				l.SetPod(p)
				w.existing[p.Key] = withoutLongCreator(p)
			},
			"delete pod": func(t *rapid.T) {
				key := podKey.Draw(t, "key")
				l.DeletePod(key)
				delete(w.existing, key)
			},
			"set announced": func(t *rapid.T) {
				p := pod(t, announcedKey, "rome", "oslo")
				l.SetAnnounced(p)
				w.announced[p.Key] = withoutLongCreator(p)
			},
			"delete announced": func(t *rapid.T) {
				key := announcedKey.Draw(t, "key")
				l.DeleteAnnounced(key)
				delete(w.announced, key)
			},
			"replace all": func(t *rapid.T) {
				drop := rapid.IntRange(0, 2)
				replace := func(pods map[string]Pod, by func(iter.Seq[Pod]) bool) {
					w.count()
					before := slices.Sorted(maps.Keys(w.pods))
					for _, key := range slices.Sorted(maps.Keys(pods)) {
						if drop.Draw(t, "drop pod") == 0 {
							delete(pods, key)
						}
					}
					w.count()
					after := slices.Sorted(maps.Keys(w.pods))
					if got, want := by(maps.Values(pods)), !slices.Equal(before, after); got != want {
						t.Fatalf("replacing %v by %v: changed is %v", before, after, got)
					}
				}
				replace(w.existing, l.ReplacePods)
				replace(w.announced, l.ReplaceAnnounced)
				known := 0
				for _, a := range l.nodes {
					if a.node != nil {
						known++
					}
				}
				for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
					if drop.Draw(t, "drop node") == 0 {
						delete(w.nodes, name)
					}
				}
				if got, want := l.ReplaceNodes(maps.Values(w.nodes)), known != len(w.nodes); got != want {
					t.Fatalf("ReplaceNodes keeps %d of %d nodes: changed is %v", len(w.nodes), known, got)
				}
			},
			"set groups": func(t *rapid.T) {
				w.groups = nil
				of := map[string][]string{}
				for _, name := range []string{"n1", "n2", "n3", "unknown"} {
					key := rapid.SampledFrom([]string{"", "g1", "g2"}).Draw(t, "group")
					of[key] = append(of[key], name)
				}
				for _, key := range []string{"g2", "g1"} {
					g := NodeGroup{Key: key, Nodes: of[key], Peer: rapid.SampledFrom([]string{"", "milan", "oslo"}).Draw(t, "giver")}
					if rapid.Bool().Draw(t, "known") {
						g.Given = rapid.MapOf(resource, amount).Draw(t, "given")
					}
					w.groups = append(w.groups, g)
				}
				l.SetGroups(w.groups)
			},
			"select others": func(t *rapid.T) {
				others := rapid.Permutation(every).Draw(t, "selections")
				selections = slices.Clone(others[:rapid.IntRange(0, len(others)).Draw(t, "count")])
				for i := range selections {
					selections[i].Single = selections[i].Single && rapid.Bool().Draw(t, "single")
				}
			},
			"ask for others": func(t *rapid.T) { asked = rapid.SliceOfN(resource, 0, 3).Draw(t, "asked") },
			"": func(t *rapid.T) {
				w.count()
				v := l.View(selections, asked...)
				now := w.recount(t, selections, asked, before.Columns)
				if diff := cmp.Diff(now, read(t, v), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("recount (-) and View (+): %s", diff)
				}
				if diff := cmp.Diff(expected, read(t, before), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("the previous View changed: %s", diff)
				}
				before, expected = v, now
				if len(l.made) > len(w.existing) {
					t.Fatalf("pods are made from %v, which is more than there are", l.made)
				}
				for name, number := range l.names.numbers {
					if want := w.references(v.Columns, name); l.names.infos[number].references != want {
						t.Fatalf("%d references to %s, want %d", l.names.infos[number].references, name, want)
					}
				}
			},
		})
	})
}

// withoutLongCreator returns the pod as it counts.
func withoutLongCreator(p Pod) Pod {
	if len(p.Creator) > MaxCreator {
		p.Creator = ""
	}
	return p
}

func TestUsesAreAnImmutableMap(t *testing.T) {
	id := rapid.Map(rapid.IntRange(0, 99), func(i int) string { return fmt.Sprint("c", i) })
	use := rapid.OneOf(
		rapid.Just((*Use)(nil)),
		rapid.Map(rapid.Int64Range(1, 9), func(n int64) *Use { return &Use{Everywhere: Row{n}} }),
	)
	check := func(t *rapid.T, want map[string]*Use, u Uses) {
		if diff := cmp.Diff(want, maps.Collect(u.All)); diff != "" || u.Len() != len(want) {
			t.Fatalf("%d consumers, want %d: %s", u.Len(), len(want), diff)
		}
		for i := range 100 {
			if id := fmt.Sprint("c", i); u.Of(id) != want[id] {
				t.Fatalf("%s uses %v, want %v", id, u.Of(id), want[id])
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var u Uses
		want := map[string]*Use{}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			changes := rapid.MapOfN(id, use, 1, 30).Draw(t, "changed")
			before, wantBefore := u, maps.Clone(want)
			u = u.with(maps.Clone(changes))
			maps.Copy(want, changes)
			maps.DeleteFunc(want, func(_ string, use *Use) bool { return use == nil })
			check(t, want, u)
			check(t, wantBefore, before)
		}
	})
}
