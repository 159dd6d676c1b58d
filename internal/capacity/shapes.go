package capacity

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// Shape counts nodes on each of which these amounts are free together. Each node also takes at
// least one more pod.
type Shape struct {
	Nodes int
	// Free has no pods, and no amount of 0.
	Free Amounts
}

// Shapes describes what single nodes have free for pods that start now. It is immutable. The zero
// value has none.
//
// A node counts if it takes one more pod, and has at least one step of RoundDown free of cpu and of
// memory, if the class has them. Nodes whose amounts are equal after RoundDown form a shape. The
// largest shape has the largest part of the pool free: the sum, over all resources, of the free
// amount divided by the sum of what the usable nodes list. So a scarce resource, such as GPUs on
// few nodes, weighs more. Shapes of equal size are ordered by cpu, memory, devices by name and
// other resources by name, the larger amount first.
//
// For example, one node of a pool has 20 of its 64 cores and all of its 8 GPUs free, another one
// has 60 of its 64 cores free and no GPUs: the sizes are 20/128 + 8/8 and 60/128, so the node with
// GPUs is the larger one.
type Shapes struct {
	// Largest holds the free amounts and pod slots of the largest node of the first shape, not
	// rounded. It has all resources of the class that the node lists, and is nil without a shape.
	Largest Amounts
	// List holds the shapes, the largest first. A node is in one of them at most.
	List []Shape
}

const (
	// MaxShapes bounds the shapes that are shown.
	MaxShapes = 8
	// MaxShapeResources bounds the resources of a shape: cpu and memory, then devices, then others,
	// by name.
	MaxShapeResources = 16
	// maxKeptShapes bounds the shapes of a pool. Within makes equal ones of them.
	maxKeptShapes = 64
	// leastCPU and leastBytes are the least steps of cpu, in milli, and of bytes.
	leastCPU   = 125
	leastBytes = 128 << 20
)

// RoundDown rounds an amount down to 1 to 8, 10, 12, 14, 16, 20, 24, 28, 32, 40 and so on, in steps
// of an eighth of a core, of 128Mi, or of 1 for other resources than cpu and bytes. From four steps
// on, less than a fifth is lost.
func RoundDown(name string, amount int64) int64 {
	step := int64(1)
	switch {
	case name == CPU:
		step = leastCPU
	case InBytes(name):
		step = leastBytes
	}
	for step <= amount/8 {
		step *= 2
	}
	return amount - amount%step
}

// Within returns the first MaxShapes shapes for pods that can have at most these amounts, and no
// other resource. Shapes that become equal are one. It returns none if no cpu, no memory or no pod
// can be had.
func (s Shapes) Within(most Amounts) Shapes {
	if len(s.List) == 0 || lacksNeeded(most) {
		return Shapes{}
	}
	out := Shapes{Largest: s.Largest.atMost(most)}
	for _, shape := range s.List {
		free := shape.Free
		if !free.within(most) {
			free = free.atMost(most)
			maps.DeleteFunc(free, func(_ string, amount int64) bool { return amount <= 0 })
		}
		i := slices.IndexFunc(out.List, func(o Shape) bool { return maps.Equal(o.Free, free) })
		switch {
		case i >= 0:
			out.List[i].Nodes += shape.Nodes
		case len(free) > 0 && len(out.List) < MaxShapes:
			out.List = append(out.List, Shape{shape.Nodes, free})
		}
	}
	if out.List == nil {
		return Shapes{}
	}
	return out
}

// lacksNeeded reports whether there is none of what each pod needs: cpu, memory or pods.
func lacksNeeded(of Amounts) bool {
	return slices.ContainsFunc([]string{CPU, Memory, Pods}, func(name string) bool {
		amount, has := of[name]
		return has && amount <= 0
	})
}

// within reports whether no amount is more than in most.
func (a Amounts) within(most Amounts) bool {
	for name, amount := range a {
		if limit, has := most[name]; !has || amount > limit {
			return false
		}
	}
	return true
}

// atMost returns the amounts of the resources in most, at most so much of each.
func (a Amounts) atMost(most Amounts) Amounts {
	out := make(Amounts, len(a))
	for name, amount := range a {
		if limit, has := most[name]; has {
			out[name] = min(amount, limit)
		}
	}
	return out
}

// shapeGroup holds the nodes of one shape.
type shapeGroup struct {
	rounded freeVector
	nodes   int
	// largest is the largest of the nodes, with its exact amounts.
	largest *nodeRoom
	exact   freeVector
}

// freeVector holds free amounts by column, and their size: see shapeColumns.sized.
type freeVector struct {
	amounts []int64
	size    int64
}

// compareFree is less than 0 if a comes before b, the larger one.
func compareFree(a, b freeVector) int {
	return cmp.Or(cmp.Compare(b.size, a.size), slices.Compare(b.amounts, a.amounts))
}

// shapesOf groups nodes by the rounded amounts of the resources that a class admits.
func shapesOf(of *nodeRooms, names []string, admits func(string) bool) Shapes {
	columns := columnsOf(of, names, admits)
	groups := map[string]*shapeGroup{}
	var key []byte
	for _, room := range of.rooms {
		exact := columns.of(room)
		rounded, empty := columns.rounded(exact)
		if room.slots < 1 || empty {
			continue
		}
		key = key[:0]
		for _, amount := range rounded {
			key = binary.AppendVarint(key, amount)
		}
		g := groups[string(key)]
		if g == nil {
			g = &shapeGroup{rounded: columns.sized(rounded)}
			groups[string(key)] = g
		}
		g.add(room, columns.sized(exact))
	}
	if len(groups) == 0 {
		return Shapes{}
	}
	sorted := slices.SortedFunc(maps.Values(groups), func(a, b *shapeGroup) int {
		return compareFree(a.rounded, b.rounded)
	})
	out := Shapes{Largest: Amounts{}, List: make([]Shape, min(len(sorted), maxKeptShapes))}
	for _, r := range sorted[0].largest.free {
		if name := names[r.number]; admits(name) {
			out.Largest[name] = r.amount
		}
	}
	for i := range out.List {
		out.List[i] = Shape{sorted[i].nodes, columns.named(sorted[i].rounded.amounts)}
	}
	return out
}

// add adds a node with these amounts.
func (g *shapeGroup) add(room *nodeRoom, exact freeVector) {
	g.nodes++
	if g.largest == nil || cmp.Or(compareFree(exact, g.exact), cmp.Compare(g.largest.slots, room.slots),
		strings.Compare(room.of.name, g.largest.of.name)) < 0 {
		g.largest, g.exact = room, exact
	}
}

// shapeColumns are the resources by which nodes are compared, in the order in which they matter.
type shapeColumns struct {
	names []string
	// allocatable sums what the usable nodes list, by column. None is 0.
	allocatable []int64
	// at maps the number of each resource to its column, noColumn for none.
	at []int
}

// columnsOf returns the columns of the resources that some node has and the class admits, without
// pods.
func columnsOf(of *nodeRooms, names []string, admits func(string) bool) *shapeColumns {
	c := &shapeColumns{at: slices.Repeat([]int{noColumn}, len(names))}
	var numbers []int32
	for number, sum := range of.allocatable {
		if name := names[number]; name != Pods && sum.amount() > 0 && admits(name) {
			numbers = append(numbers, number)
		}
	}
	slices.SortFunc(numbers, func(a, b int32) int {
		return cmp.Or(cmp.Compare(columnRank(names[a]), columnRank(names[b])), strings.Compare(names[a], names[b]))
	})
	for i, number := range numbers[:min(len(numbers), MaxShapeResources)] {
		c.names, c.at[number] = append(c.names, names[number]), i
		c.allocatable = append(c.allocatable, of.allocatable[number].amount())
	}
	return c
}

func columnRank(name string) int {
	switch {
	case name == CPU:
		return 0
	case name == Memory:
		return 1
	case InDevices(name):
		return 2
	}
	return 3
}

// of returns the free amounts of a node.
func (c *shapeColumns) of(room *nodeRoom) []int64 {
	amounts := make([]int64, len(c.names))
	for _, r := range room.free {
		if i := c.at[r.number]; i != noColumn {
			amounts[i] = r.amount
		}
	}
	return amounts
}

// rounded rounds amounts down, and reports whether nothing is left of cpu, of memory, or of
// everything.
func (c *shapeColumns) rounded(amounts []int64) (rounded []int64, empty bool) {
	rounded, empty = make([]int64, len(amounts)), true
	for i, name := range c.names {
		rounded[i] = RoundDown(name, amounts[i])
		if rounded[i] > 0 {
			empty = false
		} else if name == CPU || name == Memory {
			return nil, true
		}
	}
	return rounded, empty
}

// sized adds the size of amounts: the sum of the parts that they are of what the nodes list, each
// in 2^-40 and rounded down.
func (c *shapeColumns) sized(amounts []int64) freeVector {
	v := freeVector{amounts: amounts}
	for i, amount := range amounts {
		v.size += Share(amount, 1<<40, c.allocatable[i])
	}
	return v
}

// named returns amounts by name, without those of 0.
func (c *shapeColumns) named(amounts []int64) Amounts {
	out := make(Amounts, len(amounts))
	for i, amount := range amounts {
		if amount > 0 {
			out[c.names[i]] = amount
		}
	}
	return out
}
