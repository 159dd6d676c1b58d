package capacity

import (
	"slices"
	"strings"
)

// Selection selects the nodes of one pool.
type Selection struct {
	// Selector selects nodes by label; nil selects every node.
	Selector Selector
	// Tolerations admit nodes whose NoSchedule and NoExecute taints they tolerate.
	Tolerations []Toleration
}

// Selector selects objects by label. Package selection adapts those of Kubernetes.
type Selector interface {
	// Matches reports whether an object with these labels is selected.
	Matches(labels map[string]string) bool
	// Keys returns the keys of the labels that matter, in any order.
	Keys() []string
	// String returns the selector as text. Selectors of equal texts select the same.
	String() string
}

// Toleration admits nodes with some taints. Package selection adapts those of Kubernetes.
type Toleration interface {
	// Tolerates reports whether the taint is tolerated.
	Tolerates(taint Taint) bool
	// String returns the toleration as text. Tolerations of equal texts tolerate the same.
	String() string
}

// Taint is a taint of a node.
type Taint struct{ Key, Value, Effect string }

// The effects of the taints that keep a node out of a pool.
const (
	NoSchedule = "NoSchedule"
	NoExecute  = "NoExecute"
)

// String returns the taint as Kubernetes writes it: key=value:effect, or key:effect without a
// value.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// Matches reports whether the node is in the pool: Ready, selected by its labels, and without a
// NoSchedule or NoExecute taint that is not tolerated. Taints with other effects must have been
// removed.
func (s Selection) Matches(n *Node) bool {
	return n.State == Ready && s.selects(n) && s.untolerated(n) == nil
}

// selects reports whether the selector matches the node's labels.
func (s Selection) selects(n *Node) bool { return s.Selector == nil || s.Selector.Matches(n.Labels) }

// untolerated returns the node's first taint that is not tolerated, nil for none.
func (s Selection) untolerated(n *Node) *Taint {
	for i, taint := range n.Taints {
		if !slices.ContainsFunc(s.Tolerations, func(t Toleration) bool { return t.Tolerates(taint) }) {
			return &n.Taints[i]
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
		return "tainted " + taint.String() + ", which is not tolerated"
	}
	return ""
}

// Key is equal for selections that are written alike. They share a pool.
func (s Selection) Key() string {
	var b strings.Builder
	if s.Selector != nil {
		b.WriteString(s.Selector.String())
	}
	for _, t := range s.Tolerations {
		b.WriteByte(0)
		b.WriteString(t.String())
	}
	return b.String()
}
