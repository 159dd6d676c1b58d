package capacity

import "iter"

// ReplaceNodes sets the complete list of nodes, as SetNode and DeleteNode would for each, and
// reports whether the account changed. No View sees a part of it.
func (l *Ledger) ReplaceNodes(nodes iter.Seq[Node]) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Replace(l.nodes, nodes, func(n Node) string { return n.Name }, l.setNode, l.deleteNode)
}

// ReplacePods sets the complete list of pods that are not finished, as SetPod and
// DeletePod would for each, and reports whether the account changed. No View sees a part of it.
func (l *Ledger) ReplacePods(pods iter.Seq[Pod]) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Replace(l.pods, pods, podKey, l.setPod, func(key string) bool {
		_, announced := l.announced[key]
		return !announced && !l.isClaim(key) && l.deletePod(key)
	})
}

// ReplaceAnnounced sets the complete list of announced pods, as SetAnnounced and DeleteAnnounced would for
// each, and reports whether the account changed. No View sees a part of it.
func (l *Ledger) ReplaceAnnounced(pods iter.Seq[Pod]) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Replace(l.announced, pods, podKey, l.setAnnounced, l.deleteAnnounced)
}

func podKey(p Pod) string { return p.Key }

// Replace sets each of the objects of a complete list, deletes what else is known, and reports whether one of the
// calls did. set and deleteKey may change known.
func Replace[T, K any](
	known map[string]K, objects iter.Seq[T], key func(T) string, set func(T) bool, deleteKey func(string) bool,
) (changed bool) {
	kept := make(map[string]struct{}, len(known))
	for o := range objects {
		kept[key(o)] = struct{}{}
		changed = set(o) || changed
	}
	for k := range known {
		if _, keep := kept[k]; !keep {
			changed = deleteKey(k) || changed
		}
	}
	return changed
}
