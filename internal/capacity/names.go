package capacity

import (
	"cmp"
	"slices"
)

// names are the resource names that something in the account refers to, each under a number. A number is given back with its last reference,
// and then used for another name.
type names struct {
	numbers map[string]int32
	known   []known
	free    []int32
	// changed says that a name is listed by a first node, or by none any more, since the columns were chosen.
	changed bool
}

// known is one name.
type known struct {
	name string
	// references are from pods, from nodes, and from the columns.
	references int
	// nodes is how many nodes that are not virtual list the name.
	nodes int
	// column is its place in the columns, -1 for none.
	column int
}

// named is an amount of a resource, by the number of its name.
type named struct {
	number int32
	amount int64
}

func newNames() names { return names{numbers: map[string]int32{}} }

// refer returns the number of a name, with one more reference.
func (n *names) refer(name string) int32 {
	number, ok := n.numbers[name]
	if !ok {
		if last := len(n.free) - 1; last >= 0 {
			number, n.free = n.free[last], n.free[:last]
		} else {
			number = int32(len(n.known))
			n.known = append(n.known, known{})
		}
		n.numbers[name], n.known[number] = number, known{name: name, column: -1}
	}
	n.known[number].references++
	return number
}

// release takes a reference back.
func (n *names) release(number int32) {
	k := &n.known[number]
	if k.references--; k.references > 0 {
		return
	}
	delete(n.numbers, k.name)
	*k = known{column: -1}
	n.free = append(n.free, number)
}

// ofNode refers to what a node lists, 0 included, sorted by number.
func (n *names) ofNode(allocatable Amounts) []named {
	row := make([]named, 0, len(allocatable))
	for name, amount := range allocatable {
		row = append(row, named{n.refer(name), max(0, amount)})
	}
	slices.SortFunc(row, byNumber)
	return row
}

// ofPod refers to what a pod requests, sorted by number, without what is 0. The pod itself takes the place of one pod.
func (n *names) ofPod(requests Amounts) []named {
	row := make([]named, 0, len(requests)+1)
	for name, amount := range requests {
		if amount > 0 && name != Pods {
			row = append(row, named{n.refer(name), amount})
		}
	}
	row = append(row, named{n.refer(Pods), 1})
	slices.SortFunc(row, byNumber)
	return row
}

// areOfPod reports whether ofPod would return such a row.
func (n *names) areOfPod(row []named, requests Amounts) bool {
	some := 1
	for name, amount := range requests {
		if amount > 0 && name != Pods {
			some++
		}
	}
	if some != len(row) {
		return false
	}
	for _, r := range row {
		if name := n.known[r.number].name; name != Pods && requests[name] != r.amount {
			return false
		}
	}
	return true
}

func byNumber(a, b named) int { return cmp.Compare(a.number, b.number) }

func (n *names) releaseAll(row []named) {
	for _, r := range row {
		n.release(r.number)
	}
}

// list notes that one node more, or one less, lists the names.
func (n *names) list(row []named, by int) {
	for _, r := range row {
		k := &n.known[r.number]
		was := k.nodes
		k.nodes += by
		n.changed = n.changed || (was == 0) != (k.nodes == 0)
	}
}

// lists reports whether a node that is not virtual lists the name.
func (n *names) lists(name string) bool {
	number, ok := n.numbers[name]
	return ok && n.known[number].nodes > 0
}
