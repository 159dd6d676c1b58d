package capacity

import "slices"

// columns are the resources of the last View.
type columns struct {
	// names are cpu, memory and pods, which all consumers' pods request, then all others by name:
	// most rows of consumers end early.
	names []string
	// numbers holds the number of each name. The columns hold one reference to each.
	numbers []int32
	// requested sums, by column, what all consumers' pods request on nodes that count.
	requested []total
	// asked are the names that the caller of the last View asked for. lingering are the columns
	// that exist only because a consumer's pods still request them.
	asked     []string
	lingering []int
}

// updateColumns sets the columns for a View, and reports whether they changed.
func (l *Ledger) updateColumns(asked []string) bool {
	if !l.names.listingsChanged && l.columns.names != nil && slices.Equal(asked, l.asked) &&
		!slices.ContainsFunc(l.lingering, l.unrequested) {
		return false
	}
	l.names.listingsChanged, l.asked = false, asked
	wanted := map[string]struct{}{CPU: {}, Memory: {}, Pods: {}}
	for _, info := range l.names.infos {
		if info.nodes > 0 {
			wanted[info.name] = struct{}{}
		}
	}
	for _, name := range asked {
		wanted[name] = struct{}{}
	}
	lingering := map[string]struct{}{}
	for c, name := range l.columns.names {
		if _, ok := wanted[name]; !ok && !l.unrequested(c) {
			wanted[name], lingering[name] = struct{}{}, struct{}{}
		}
	}
	next := make([]string, 0, len(wanted))
	next = append(next, CPU, Memory, Pods)
	for name := range wanted {
		if !slices.Contains(next[:3], name) {
			next = append(next, name)
		}
	}
	slices.Sort(next[3:])
	l.lingering = nil
	for c, name := range next {
		if _, ok := lingering[name]; ok {
			l.lingering = append(l.lingering, c)
		}
	}
	if slices.Equal(next, l.columns.names) {
		return false
	}
	l.setColumns(next)
	return true
}

func (l *Ledger) setColumns(columns []string) {
	old := l.numbers
	for _, number := range old {
		l.names.infos[number].column = noColumn
	}
	l.columns.names, l.numbers = columns, make([]int32, len(columns))
	for c, name := range columns {
		l.numbers[c] = l.names.refer(name)
		l.names.infos[l.numbers[c]].column = c
	}
	for _, number := range old {
		l.names.release(number)
	}
}

// unrequested reports whether no consumer's pod requests anything of a column.
func (l *Ledger) unrequested(column int) bool {
	return column >= len(l.requested) || l.requested[column] == total{}
}
