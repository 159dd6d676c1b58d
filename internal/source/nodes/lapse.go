package nodes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/internal/capacity"
)

const (
	// recovery is the ratio between the time for which something must be back and the time for which it
	// was gone, until its whole grace is available again. So what is gone most of the time counts for
	// at most a tenth of that time.
	recovery = 10
	// maxLapses bounds what is remembered of one node. What a node loses beyond it counts at once.
	maxLapses = 1000
	// maxNamedLosses bounds the losses that capacity.Node.Grace names.
	maxNamedLosses = 3
)

// loss is something that a node may get back by itself: a label, an amount of a resource, the devices of a pool,
// or, if all are empty, readiness.
type loss struct{ label, resource, pool string }

func (l loss) String() string {
	switch {
	case l.label != "":
		return "without the label " + l.label
	case l.resource != "":
		return "without " + l.resource
	case l.pool != "":
		return "without the devices of " + l.pool
	}
	return "not Ready"
}

func compareLosses(a, b loss) int {
	return cmp.Or(
		strings.Compare(a.label, b.label), strings.Compare(a.resource, b.resource), strings.Compare(a.pool, b.pool))
}

// lapse is the used part of the grace of a loss. It grows while the node counts as if it had what it
// has lost, and shrinks, recovery times more slowly, afterwards.
type lapse struct {
	// kept reports whether the node counts as if it had lost nothing.
	kept bool
	// at is the time of the last change of kept, spent the grace used up then.
	at    time.Time
	spent time.Duration
}

func (l lapse) spentBy(now time.Time) time.Duration {
	if l.kept {
		return l.spent + now.Sub(l.at)
	}
	return max(0, l.spent-now.Sub(l.at)/recovery)
}

// next returns the time at which the grace ends, or the lapse can be forgotten.
func (l lapse) next(grace time.Duration) time.Time {
	if l.kept {
		return l.at.Add(grace - l.spent)
	}
	return l.at.Add(l.spent * recovery)
}

// lapses holds the lapses of one node.
type lapses map[loss]lapse

// next is the first time at which one of the lapses changes, zero for never.
func (all lapses) next(grace time.Duration) (first time.Time) {
	for _, l := range all {
		first = earlier(first, l.next(grace))
	}
	return first
}

// keeping reports whether the node counts as if it had something that it has lost.
func (all lapses) keeping() bool {
	for _, l := range all {
		if l.kept {
			return true
		}
	}
	return false
}

// count returns a node as it counts, given how it counted before and what it reports, with the lapses
// that follow. What it has lost and may get back by itself counts until the grace ends. Everything else
// counts as reported.
func (all lapses) count(
	before, reported *capacity.Node, now time.Time, grace time.Duration,
) (counts capacity.Node, next lapses) {
	counts, next = *reported, lapses{}
	for was, l := range all {
		if l = (lapse{at: now, spent: l.spentBy(now)}); l.spent > 0 {
			next[was] = l
		}
	}
	losses := lossesOf(before, reported)
	if len(losses) > 0 { // The maps of the node as reported must not change.
		counts.Labels, counts.Allocatable = copyOf(reported.Labels), copyOf(reported.Allocatable)
		if len(before.Devices) > 0 {
			counts.Devices = copyOf(reported.Devices)
		}
	}
	for _, lost := range losses {
		l, known := all[lost]
		if !l.kept {
			l = lapse{kept: true, at: now, spent: l.spentBy(now)}
		}
		switch {
		case l.spentBy(now) >= grace:
			next[lost] = lapse{at: now, spent: grace}
		case known || len(next) < maxLapses:
			next[lost] = l
			lost.undo(&counts, before)
		}
	}
	describeLabels(&counts)
	counts.Grace = next.text(grace)
	return counts, next
}

// lossesOf returns the losses of a node, in order. The peer gives the amounts of a virtual node, so an
// amount that is gone was taken back.
func lossesOf(before, reported *capacity.Node) []loss {
	var lost []loss
	if isUp(before) && !isUp(reported) && reported.State != capacity.Cordoned {
		lost = append(lost, loss{})
	}
	for key := range before.Labels {
		if _, has := reported.Labels[key]; !has {
			lost = append(lost, loss{label: key})
		}
	}
	for name, amount := range before.Allocatable {
		if amount > 0 && reported.Allocatable[name] <= 0 && !before.Virtual {
			lost = append(lost, loss{resource: name})
		}
	}
	for pool := range before.Devices {
		if len(lostDevices(before, reported, pool)) > 0 {
			lost = append(lost, loss{pool: pool})
		}
	}
	slices.SortFunc(lost, compareLosses)
	return lost
}

// undo gives a node back what it has lost.
func (l loss) undo(counts, before *capacity.Node) {
	switch {
	case l.label != "":
		counts.Labels[l.label] = before.Labels[l.label]
	case l.resource != "":
		counts.Allocatable[l.resource] = before.Allocatable[l.resource]
	case l.pool != "":
		counts.Devices[l.pool] = lostDevices(before, counts, l.pool)
	default:
		counts.State = capacity.Ready
		counts.Taints = slices.DeleteFunc(slices.Clone(counts.Taints), ofReadiness)
	}
}

// isUp reports whether a node is Ready, and the node controller has seen it.
func isUp(n *capacity.Node) bool {
	return n.State == capacity.Ready && !slices.ContainsFunc(n.Taints, ofReadiness)
}

// ofReadiness reports whether the taint comes and goes with a node's components: the node controller sets it on nodes
// that are not Ready, and removes it some time after they are Ready again; the taint of the network is set while an
// agent of the network restarts.
func ofReadiness(t capacity.Taint) bool {
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable:
		return true
	}
	return false
}

// text describes the losses that do not count yet, for capacity.Node.Grace.
func (all lapses) text(grace time.Duration) string {
	var kept []loss
	for lost, l := range all {
		if l.kept {
			kept = append(kept, lost)
		}
	}
	slices.SortFunc(kept, compareLosses)
	var texts []string
	for _, lost := range kept[:min(len(kept), maxNamedLosses)] {
		l := all[lost]
		texts = append(texts, fmt.Sprintf("%s since %s and counts as before until %s", lost,
			l.at.UTC().Format(time.RFC3339), l.next(grace).UTC().Format(time.RFC3339)))
	}
	if more := len(kept) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

func copyOf[M ~map[string]V, V any](of M) M {
	out := make(M, len(of))
	maps.Copy(out, of)
	return out
}
