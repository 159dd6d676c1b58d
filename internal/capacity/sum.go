package capacity

import "slices"

// View returns the state of the account at this moment, with one pool for each selection. It costs a look at each node for
// each selection, and nothing for each pod.
func (l *Ledger) View(selections []Selection) View {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := View{
		Columns: slices.Clone(l.columns),
		Pools:   make([]Pool, len(selections)),
		Used:    map[string]Row{},
	}
	width := len(l.columns)
	for i := range v.Pools {
		v.Pools[i] = Pool{
			Listed:      make([]bool, width),
			Allocatable: make(Row, width),
			Free:        make(Row, width),
			Used:        map[string]Row{},
			Overlaps:    make([]bool, len(selections)),
		}
	}
	matching := make([]int, 0, len(selections))
	for _, a := range l.nodes {
		if a.node != nil && a.node.Virtual {
			continue
		}
		a.addUse(v.Used, width)
		if a.node == nil {
			continue
		}
		matching = matching[:0]
		for i, s := range selections {
			if s.Matches(a.node) {
				matching = append(matching, i)
				v.Pools[i].add(a)
			}
		}
		for _, i := range matching {
			for _, j := range matching {
				v.Pools[i].Overlaps[j] = true
			}
		}
	}
	return v
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
