package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Selection selects the nodes of one pool.
type Selection struct {
	// Selector selects nodes by label; nil selects every node.
	Selector Selector
	// Tolerations admit nodes whose NoSchedule and NoExecute taints they tolerate.
	Tolerations []Toleration
	// Early are asked about nodes that are selected, Filters about those that are usable too. The first
	// filter that leaves a node out says why.
	Early, Filters []NodeFilter
	// Peers selects virtual nodes instead of nodes of this cluster's own; nil for the latter.
	Peers *Peers
	// Single lists each node of the pool in View.Singles. It makes no other pool: Key does not include it.
	Single bool
}

// Peers selects virtual nodes.
type Peers struct {
	// IDs are the clusters that the nodes may stand for, sorted; nil for all.
	IDs []string
	// Depth is the depth of what is resold: it is more than the Depth of every usable node. So depths
	// rise from each reseller to the next, and clusters that resell to each other in a circle do not
	// count the same capacity again.
	Depth int
}

// String returns the selection as text. Selections of equal texts select the same.
func (p *Peers) String() string { return fmt.Sprintf("%d of %s", p.Depth, strings.Join(p.IDs, ",")) }

// NodeFilter is a rule of the provider. Package filter has the rules in CEL, and plugins/filters the
// rules in Go.
type NodeFilter interface {
	// Admits reports whether the node may be in the pool, and if not, why, as in "NODE is WHY". It
	// must depend on nothing but the node: the ledger remembers the answer until the node changes, or
	// until Reconsider.
	Admits(n *Node) (ok bool, why string)
	// String returns the filter as text. Filters of equal texts admit the same.
	String() string
}

// ContentFilter is a NodeFilter that reads nothing but the name, labels and amounts of a node. It is not
// asked again when a node is cordoned or tainted, or is not Ready for a while.
type ContentFilter interface {
	NodeFilter
	ReadsContentOnly()
}

// sameContent reports whether a ContentFilter admits two nodes alike.
func (n *Node) sameContent(o *Node) bool {
	return n != nil && o != nil && maps.Equal(n.Labels, o.Labels) && maps.Equal(n.Allocatable, o.Allocatable)
}

// Selector selects objects by label. Package selection adapts Kubernetes' selectors.
type Selector interface {
	// Matches reports whether an object with these labels is selected.
	Matches(labels map[string]string) bool
	// Keys returns the keys of the labels that matter, in any order.
	Keys() []string
	// String returns the selector as text. Selectors of equal texts select the same.
	String() string
}

// Toleration admits nodes with some taints. Package selection adapts Kubernetes' tolerations.
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

// Matches reports whether the node is in the pool: it is selected by label, usable, and admitted by
// every filter.
func (s Selection) Matches(n *Node) bool {
	leavesOut := func(f NodeFilter) bool { return whyFiltered(f, n) != "" }
	return s.selects(n) && s.usable(n) && !slices.ContainsFunc(s.Early, leavesOut) &&
		!slices.ContainsFunc(s.Filters, leavesOut)
}

// whyFiltered returns why the filter leaves a node out, empty if it does not.
func whyFiltered(f NodeFilter, n *Node) string {
	if ok, why := f.Admits(n); !ok {
		return cmp.Or(why, "left out by the filter")
	}
	return ""
}

// usable reports whether the node is fit and Ready, and without a NoSchedule or NoExecute taint that is
// not tolerated. Taints with other effects must have been removed.
func (s Selection) usable(n *Node) bool {
	return n.State == Ready && s.untolerated(n) == nil && s.whyUnfit(n) == "" && s.whyNotResold(n) == ""
}

// whyNotResold returns why a virtual node cannot be resold, empty if it can, and for other nodes.
func (s Selection) whyNotResold(n *Node) string {
	switch {
	case s.Peers == nil:
		return ""
	case n.Peer == "":
		return "of an unknown peer"
	case n.Depth == UnknownDepth:
		return "labelled with a depth that is not a number"
	case n.Depth >= s.Peers.Depth:
		return fmt.Sprintf("resold, with a depth of %d", n.Depth)
	}
	return ""
}

// selects reports whether the node is of the selection's kind, and the selector matches its labels.
func (s Selection) selects(n *Node) bool {
	switch {
	case n.Virtual != (s.Peers != nil):
		return false
	case n.Virtual && s.Peers.IDs != nil && !slices.Contains(s.Peers.IDs, n.Peer):
		return false
	}
	return s.Selector == nil || s.Selector.Matches(n.Labels)
}

// untolerated returns the node's first taint that is not tolerated, nil for none.
func (s Selection) untolerated(n *Node) *Taint {
	for i, taint := range n.Taints {
		if !slices.ContainsFunc(s.Tolerations, func(t Toleration) bool { return t.Tolerates(taint) }) {
			return &n.Taints[i]
		}
	}
	return nil
}

// MaxUnusableNamed bounds the nodes that an Unusable names.
const MaxUnusableNamed = 5

// Unusable are the nodes that a selection selects by kind and label and that are not in its pool.
type Unusable struct {
	// Count is the number of nodes, Filtered the number of those that a filter leaves out. First are the
	// first MaxUnusableNamed of all, by name.
	Count, Filtered int
	First           []UnusableNode
}

// UnusableNode is the name of a node, and why the node is not in a pool.
type UnusableNode struct{ Name, Why string }

// String lists the nodes as in "n1 is cordoned, n2 is not Ready, and 3 more". It is empty for none.
func (u Unusable) String() string {
	texts := make([]string, len(u.First), len(u.First)+1)
	for i, n := range u.First {
		texts[i] = n.Name + " is " + n.Why
	}
	if more := u.Count - len(u.First); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// whyUnusable returns why a node of the selection's kind is not usable, empty if it is.
func (s Selection) whyUnusable(n *Node) string {
	if why := s.whyUnfit(n); why != "" {
		return why
	}
	switch n.State {
	case Cordoned:
		return "cordoned"
	case NotReady:
		return "not Ready"
	case Ready:
	}
	if taint := s.untolerated(n); taint != nil {
		return "tainted " + taint.String() + ", which is not tolerated"
	}
	return s.whyNotResold(n)
}

// Key is equal for selections that are written alike. They share a pool.
func (s Selection) Key() string {
	var b strings.Builder
	if s.Peers != nil {
		fmt.Fprintf(&b, "peers\x01%s\x01", s.Peers)
	}
	for i, filters := range [][]NodeFilter{s.Early, s.Filters} {
		for _, f := range filters {
			text := f.String()
			fmt.Fprintf(&b, "%d\x01%d\x01%s", i, len(text), text) // Its length, because it may contain anything.
		}
	}
	if s.Selector != nil {
		b.WriteString(s.Selector.String())
	}
	for _, t := range s.Tolerations {
		b.WriteByte(0)
		b.WriteString(t.String())
	}
	return b.String()
}
