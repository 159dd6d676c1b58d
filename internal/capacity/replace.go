package capacity

import "iter"

// ReplaceNodes tells all nodes that there are, as SetNode and DeleteNode would for each, and reports whether anything in the account changed.
// No View sees a part of it.
func (l *Ledger) ReplaceNodes(nodes iter.Seq[Node]) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	are := map[string]struct{}{}
	for n := range nodes {
		are[n.Name] = struct{}{}
		changed = l.setNode(n) || changed
	}
	for name := range l.nodes {
		if _, is := are[name]; !is {
			changed = l.deleteNode(name) || changed
		}
	}
	return changed
}

// ReplacePods tells all pods that are bound and not finished, as SetPod and DeletePod would for each, and reports whether anything in the account
// changed. No View sees a part of it.
func (l *Ledger) ReplacePods(pods iter.Seq[Pod]) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	are := make(map[string]struct{}, len(l.pods))
	for p := range pods {
		are[p.Key] = struct{}{}
		changed = l.setPod(p) || changed
	}
	for key := range l.pods {
		if _, is := are[key]; !is {
			changed = l.deletePod(key) || changed
		}
	}
	return changed
}
