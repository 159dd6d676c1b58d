package capacity

import "slices"

// columns are the resources that a View tells of.
type columns struct {
	// names are cpu, memory and pods, which every consumer's pods request, and after them all others by name: rows of consumers end early.
	names []string
	// numbers are those of the names, each with a reference.
	numbers []int32
	// requested is what all consumers' pods on nodes that are not virtual request.
	requested []total
	// asked are the names that the last View was asked for; lingering are the columns that are there for nothing but being requested.
	asked     []string
	lingering []int
}

// chooseColumns finds the columns for a View, and reports whether they are others than before.
func (l *Ledger) chooseColumns(asked []string) bool {
	if !l.names.changed && l.columns.names != nil && slices.Equal(asked, l.asked) && !slices.ContainsFunc(l.lingering, l.unrequested) {
		return false
	}
	l.names.changed, l.asked = false, asked
	named := map[string]struct{}{CPU: {}, Memory: {}, Pods: {}}
	for _, k := range l.names.known {
		if k.nodes > 0 {
			named[k.name] = struct{}{}
		}
	}
	for _, name := range asked {
		named[name] = struct{}{}
	}
	linger := map[string]struct{}{}
	for c, name := range l.columns.names {
		if _, ok := named[name]; !ok && !l.unrequested(c) {
			named[name], linger[name] = struct{}{}, struct{}{}
		}
	}
	next := make([]string, 0, len(named))
	next = append(next, CPU, Memory, Pods)
	for name := range named {
		if !slices.Contains(next[:3], name) {
			next = append(next, name)
		}
	}
	slices.Sort(next[3:])
	l.lingering = nil
	for c, name := range next {
		if _, ok := linger[name]; ok {
			l.lingering = append(l.lingering, c)
		}
	}
	if slices.Equal(next, l.columns.names) {
		return false
	}
	l.number(next)
	return true
}

// number gives the names their columns.
func (l *Ledger) number(columns []string) {
	was := l.numbers
	for _, number := range was {
		l.names.known[number].column = -1
	}
	l.columns.names, l.numbers = columns, make([]int32, len(columns))
	for c, name := range columns {
		l.numbers[c] = l.names.refer(name)
		l.names.known[l.numbers[c]].column = c
	}
	for _, number := range was {
		l.names.release(number)
	}
}

// unrequested reports whether no consumer's pod requests anything of a column.
func (l *Ledger) unrequested(column int) bool {
	return column >= len(l.requested) || l.requested[column] == total{}
}
