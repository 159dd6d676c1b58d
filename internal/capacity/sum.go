package capacity

import "slices"

// View returns the state of the account at this moment, with one pool for each selection. It costs a look at each node for
// each selection, and nothing for each pod; labels and taints are looked at only where the node or the selections changed.
func (l *Ledger) View(selections []Selection) View {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.choose(selections)
	v := View{
		Columns: slices.Clone(l.columns),
		Pools:   make([]Pool, len(selections)),
		Used:    make(map[string]Row, l.found[len(selections)]),
	}
	width := len(l.columns)
	for i := range v.Pools {
		v.Pools[i] = Pool{
			Listed:      make([]bool, width),
			Allocatable: make(Row, width),
			Free:        make(Row, width),
			Used:        make(map[string]Row, l.found[i]),
			Overlaps:    make([]bool, len(selections)),
		}
	}
	for _, a := range l.nodes {
		if a.node != nil && a.node.Virtual {
			continue
		}
		a.addUse(v.Used, width)
		if a.node == nil {
			continue
		}
		if a.selection != l.selection {
			a.match(selections)
			a.selection = l.selection
		}
		for _, i := range a.matching {
			v.Pools[i].add(a)
			for _, j := range a.matching {
				v.Pools[i].Overlaps[j] = true
			}
		}
	}
	for i := range v.Pools {
		l.found[i] = len(v.Pools[i].Used)
	}
	l.found[len(selections)] = len(v.Used)
	return v
}

// choose makes what accounts know of their selections stale, unless these are the same as the last time.
func (l *Ledger) choose(selections []Selection) {
	keys := make([]string, len(selections))
	for i, s := range selections {
		keys[i] = s.Key()
	}
	if l.selection == 0 || !slices.Equal(l.selected, keys) {
		l.selected, l.found = keys, make([]int, len(keys)+1)
		l.selection++
	}
}

func (a *account) match(selections []Selection) {
	a.matching = a.matching[:0]
	for i, s := range selections {
		if s.Matches(a.node) {
			a.matching = append(a.matching, i)
		}
	}
}

func (p *Pool) add(a *account) {
	p.Nodes++
	for i, allocatable := range a.allocatable {
		if !a.listed[i] {
			continue
		}
		p.Listed[i] = true
		p.Allocatable[i] = Sum(p.Allocatable[i], allocatable)
		free := allocatable
		if i < len(a.local) {
			free = max(0, allocatable-a.local[i].amount())
		}
		p.Free[i] = Sum(p.Free[i], free)
	}
	a.addUse(p.Used, len(p.Listed))
}

// addUse adds what consumers use of one node.
func (a *account) addUse(used map[string]Row, width int) {
	for consumer, u := range a.used {
		row := used[consumer]
		if row == nil {
			row = make(Row, width)
			used[consumer] = row
		}
		for i, t := range u.requests {
			row[i] = Sum(row[i], t.amount())
		}
	}
}
