package capacity

import (
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Matches reports whether the node is in the pool: Ready, selected by its labels, and without a
// NoSchedule or NoExecute taint that is not tolerated. Taints with other effects must have been
// removed.
func (s Selection) Matches(n *Node) bool {
	return n.State == Ready && s.selects(n) && s.untolerated(n) == nil
}

// selects reports whether the selector matches the node's labels.
func (s Selection) selects(n *Node) bool {
	return s.Selector == nil || s.Selector.Matches(labels.Set(n.Labels))
}

// untolerated returns the node's first taint that is not tolerated, nil for none.
func (s Selection) untolerated(n *Node) *corev1.Taint {
	for i := range n.Taints {
		taint := &n.Taints[i]
		tolerates := func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), taint, true) }
		if !slices.ContainsFunc(s.Tolerations, tolerates) {
			return taint
		}
	}
	return nil
}

// Unusable is a node that a selection selects by label and that is not in the pool, and why not.
type Unusable struct{ Node, Why string }

// Unusable returns the nodes that the selection selects by label and that are not in its pool,
// sorted by name. Virtual nodes are not among them. Its cost grows with the number of all nodes.
func (l *Ledger) Unusable(s Selection) []Unusable {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Unusable
	for _, a := range l.nodes {
		if !a.physical() || !s.selects(a.node) {
			continue
		}
		if why := s.whyUnusable(a.node); why != "" {
			all = append(all, Unusable{Node: a.name, Why: why})
		}
	}
	slices.SortFunc(all, func(a, b Unusable) int { return strings.Compare(a.Node, b.Node) })
	return all
}

// whyUnusable returns why a selected node is not in the pool, empty if it is.
func (s Selection) whyUnusable(n *Node) string {
	switch n.State {
	case Cordoned:
		return "cordoned"
	case NotReady:
		return "not Ready"
	case Ready, Virtual:
	}
	if taint := s.untolerated(n); taint != nil {
		return "tainted " + taint.ToString() + ", which is not tolerated"
	}
	return ""
}

// Key is equal for selections that are written alike. They share a pool.
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
