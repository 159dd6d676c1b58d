package capacity

// SetAnnounced sets a pod of a consumer that is accepted, so that it may be made at any time, and reports
// whether the account changed. It counts like a pod without a node, unless a pod that is made from it exists.
// Its key is none of a pod's.
func (l *Ledger) SetAnnounced(pod Pod) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.setAnnounced(pod)
}

func (l *Ledger) setAnnounced(pod Pod) (changed bool) {
	pod.Node, pod.From = "", ""
	l.announced[pod.Key] = l.counted(pod)
	return l.countAnnounced(pod.Key)
}

// DeleteAnnounced removes a pod that is not going to be made, or made again, and reports whether the account
// changed.
func (l *Ledger) DeleteAnnounced(key string) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deleteAnnounced(key)
}

func (l *Ledger) deleteAnnounced(key string) (changed bool) {
	if _, known := l.announced[key]; !known {
		return false
	}
	delete(l.announced, key)
	return l.countAnnounced(key)
}

// countMade adds to the number of pods that are made from an announced one, and reports whether the account changed.
func (l *Ledger) countMade(from string, pods int) (changed bool) {
	if from == "" {
		return false
	}
	if l.made[from] += pods; l.made[from] == 0 {
		delete(l.made, from)
	}
	return l.countAnnounced(from)
}

// countAnnounced counts an announced pod if none is made from it, and reports whether the account changed.
func (l *Ledger) countAnnounced(key string) (changed bool) {
	if pod, known := l.announced[key]; known && l.made[key] == 0 {
		_, changed = l.place(pod)
		return changed
	}
	e, counted := l.pods[key]
	if counted {
		l.dropPod(key, e)
	}
	return counted
}
