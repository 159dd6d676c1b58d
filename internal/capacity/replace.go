package capacity

import "iter"

// ReplaceNodes sets the complete list of nodes, as SetNode and DeleteNode would for each, and
// reports whether the account changed. No View sees a part of it.
func (l *Ledger) ReplaceNodes(nodes iter.Seq[Node]) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := map[string]struct{}{}
	for n := range nodes {
		kept[n.Name] = struct{}{}
		changed = l.setNode(n) || changed
	}
	for name := range l.nodes {
		if _, keep := kept[name]; !keep {
			changed = l.deleteNode(name) || changed
		}
	}
	return changed
}

// ReplacePods sets the complete list of pods that are not finished, as SetPod and
// DeletePod would for each, and reports whether the account changed. No View sees a part of it.
func (l *Ledger) ReplacePods(pods iter.Seq[Pod]) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := make(map[string]struct{}, len(l.pods))
	for p := range pods {
		kept[p.Key] = struct{}{}
		changed = l.setPod(p) || changed
	}
	for key := range l.pods {
		_, keep := kept[key]
		if _, announced := l.announced[key]; !keep && !announced {
			changed = l.deletePod(key) || changed
		}
	}
	return changed
}

// ReplaceAnnounced sets the complete list of announced pods, as SetAnnounced and DeleteAnnounced would for
// each, and reports whether the account changed. No View sees a part of it.
func (l *Ledger) ReplaceAnnounced(pods iter.Seq[Pod]) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := make(map[string]struct{}, len(l.announced))
	for p := range pods {
		kept[p.Key] = struct{}{}
		changed = l.setAnnounced(p) || changed
	}
	for key := range l.announced {
		if _, keep := kept[key]; !keep {
			changed = l.deleteAnnounced(key) || changed
		}
	}
	return changed
}
