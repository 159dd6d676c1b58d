package capacity

import (
	"cmp"
	"slices"
)

// nameTable numbers the resource names that the account refers to. The last release of a number
// frees it for another name.
type nameTable struct {
	numbers map[string]int32
	// infos are indexed by number; free are the numbers without a name.
	infos []nameInfo
	free  []int32
	// listingsChanged is set when a first node lists a name or the last one no longer does, and
	// reset when the columns are updated.
	listingsChanged bool
}

// nameInfo describes one name.
type nameInfo struct {
	name string
	// references counts the references of pods, nodes and columns.
	references int
	// nodes counts the nodes that list the name and whose capacity counts.
	nodes int
	// column is the column of the name in the last View, or noColumn.
	column int
}

// noColumn is the column of a name that the last View did not include.
const noColumn = -1

// numberedAmount is an amount of the resource with a number.
type numberedAmount struct {
	number int32
	amount int64
}

// refer adds a reference to a name, and returns its number.
func (n *nameTable) refer(name string) int32 {
	number, ok := n.numbers[name]
	if !ok {
		if last := len(n.free) - 1; last >= 0 {
			number, n.free = n.free[last], n.free[:last]
		} else {
			number = int32(len(n.infos))
			n.infos = append(n.infos, nameInfo{})
		}
		n.numbers[name], n.infos[number] = number, nameInfo{name: name, column: noColumn}
	}
	n.infos[number].references++
	return number
}

// release removes a reference.
func (n *nameTable) release(number int32) {
	info := &n.infos[number]
	if info.references--; info.references > 0 {
		return
	}
	delete(n.numbers, info.name)
	*info = nameInfo{column: noColumn}
	n.free = append(n.free, number)
}

// referNode refers to everything that a node lists, amounts of 0 included, and returns it sorted by
// number.
func (n *nameTable) referNode(allocatable Amounts) []numberedAmount {
	row := make([]numberedAmount, 0, len(allocatable))
	for name, amount := range allocatable {
		row = append(row, numberedAmount{n.refer(name), max(0, amount)})
	}
	slices.SortFunc(row, byNumber)
	return row
}

// referPod refers to everything that a pod requests, without amounts of 0, and returns it sorted by
// number. The pod itself counts as 1 of pods.
func (n *nameTable) referPod(pod Pod) []numberedAmount {
	row := make([]numberedAmount, 0, len(pod.Requests)+1)
	for name, amount := range pod.Requests {
		if amount > 0 && name != Pods {
			row = append(row, numberedAmount{n.refer(name), amount})
		}
	}
	if !pod.OfClaim {
		row = append(row, numberedAmount{n.refer(Pods), 1})
	}
	slices.SortFunc(row, byNumber)
	return row
}

// matchesPod reports whether referPod would return the row.
func (n *nameTable) matchesPod(row []numberedAmount, pod Pod) bool {
	length := 1
	if pod.OfClaim {
		length = 0
	}
	for name, amount := range pod.Requests {
		if amount > 0 && name != Pods {
			length++
		}
	}
	if length != len(row) {
		return false
	}
	for _, r := range row {
		if name := n.infos[r.number].name; name != Pods && pod.Requests[name] != r.amount {
			return false
		}
	}
	return true
}

func byNumber(a, b numberedAmount) int { return cmp.Compare(a.number, b.number) }

func (n *nameTable) releaseAll(row []numberedAmount) {
	for _, r := range row {
		n.release(r.number)
	}
}

// countListings adds to the number of nodes that list the names of a row.
func (n *nameTable) countListings(row []numberedAmount, nodes int) {
	for _, r := range row {
		info := &n.infos[r.number]
		before := info.nodes
		info.nodes += nodes
		n.listingsChanged = n.listingsChanged || (before == 0) != (info.nodes == 0)
	}
}

// listed reports whether a node lists the name whose capacity counts.
func (n *nameTable) listed(name string) bool {
	number, ok := n.numbers[name]
	return ok && n.infos[number].nodes > 0
}
