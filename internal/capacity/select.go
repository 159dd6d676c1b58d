package capacity

import (
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Matches reports whether the node is in the selection: usable, with matching labels, and with no taint that keeps pods away
// and is not tolerated.
func (s Selection) Matches(n *Node) bool {
	if n.State != Ready {
		return false
	}
	if s.Selector != nil && !s.Selector.Matches(labels.Set(n.Labels)) {
		return false
	}
	return !slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool { return !s.tolerates(&t) })
}

func (s Selection) tolerates(taint *corev1.Taint) bool {
	return slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(logr.Discard(), taint, true)
	})
}

// Unusable is a node that a selection matches by its labels, and why it is not in the pool.
type Unusable struct{ Node, Why string }

// Unusable returns the nodes that the selection matches by their labels and that are not in its pool, by name. Virtual nodes are left out. It
// takes a time for each node that there is.
func (l *Ledger) Unusable(s Selection) []Unusable {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Unusable
	for _, a := range l.nodes {
		n := a.node
		if n == nil || n.State == Virtual || s.Matches(n) || s.Selector != nil && !s.Selector.Matches(labels.Set(n.Labels)) {
			continue
		}
		all = append(all, Unusable{Node: n.Name, Why: s.whyNot(n)})
	}
	slices.SortFunc(all, func(a, b Unusable) int { return strings.Compare(a.Node, b.Node) })
	return all
}

// whyNot says why a node with matching labels is not in the selection.
func (s Selection) whyNot(n *Node) string {
	switch n.State {
	case Cordoned:
		return "cordoned"
	case NotReady, Virtual:
		return "not Ready"
	case Ready:
	}
	i := slices.IndexFunc(n.Taints, func(t corev1.Taint) bool { return !s.tolerates(&t) })
	return "tainted " + n.Taints[i].ToString() + ", which is not tolerated"
}

// Key is equal for selections that are written alike, so that their pool is added up once.
func (s Selection) Key() string {
	var b strings.Builder
	if s.Selector != nil {
		b.WriteString(s.Selector.String())
		if _, selectable := s.Selector.Requirements(); !selectable {
			// A selector of nothing is written like one of everything.
			b.WriteString("!")
		}
	}
	for _, t := range s.Tolerations {
		for _, part := range []string{t.Key, string(t.Operator), t.Value, string(t.Effect)} {
			b.WriteByte(0)
			b.WriteString(part)
		}
	}
	return b.String()
}
