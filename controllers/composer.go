package controllers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube"
)

// composer says decisions in the words of a ResourceSlice's status. Of many slices hardly any is decided on anew, so it remembers what it said
// of each. It is used by whoever evaluates.
type composer struct {
	// storage are all the StorageClasses that there are.
	storage []namedClass
	said    map[types.UID]*composed
}

// composed is what was said of a decision.
type composed struct {
	given given
	// What it was said of. Lines are its own: those of the decision share their memory with very many others.
	class    string
	problems []string
	decided  grant.Answer
	// claim is the state of the slice in which there was nothing to be done about it.
	claim *claim
}

func newComposer() *composer { return &composer{said: map[types.UID]*composed{}} }

// begin is for before a round of decisions.
func (m *composer) begin(all []*claim, storage []namedClass) {
	if !slices.Equal(m.storage, storage) {
		m.storage = storage
		clear(m.said)
	}
	if len(m.said) > len(all) { // Some are gone.
		forgetGone(m.said, all)
	}
}

// say composes the answer of a slice, unless it is known.
func (m *composer) say(c *claim, decided *grant.Answer) *composed {
	known := m.said[c.uid]
	if known != nil && known.class == c.class && slices.Equal(known.problems, c.problems) && alike(&known.decided, decided) {
		return known
	}
	said := &composed{given: m.compose(c, decided), class: c.class, problems: c.problems, decided: *decided}
	if decided.Policy != nil { // Or else it depends on more.
		said.decided.Lines = slices.Clone(decided.Lines)
		m.said[c.uid] = said
	}
	return said
}

// alike reports whether two decisions are said alike.
func alike(a, b *grant.Answer) bool {
	return a.Verdict == b.Verdict && a.Invalid == b.Invalid && a.Frozen == b.Frozen &&
		a.Policy != nil && b.Policy != nil && a.Policy.Name == b.Policy.Name && a.Policy.Version == b.Policy.Version &&
		slices.Equal(a.Lines, b.Lines)
}

// compose says a decision in the words of a ResourceSlice's status.
func (m *composer) compose(c *claim, decided *grant.Answer) given {
	g := given{
		answer: answer{
			verdict: denied, reason: reasonPrefix + decided.Reason(),
			message: kube.Shorten(decided.Explain(strings.Join(c.problems, "; ")), kube.MaxMessage),
		},
		share: protocol.Share{Class: c.class},
	}
	if decided.Policy != nil {
		g.share.Policy, g.share.Reclaim = decided.Policy.Name, decided.Policy.Reclaim
	} else {
		held := c.holds.In(c.class)
		g.share.Policy, g.share.Reclaim = held.Policy, held.Reclaim
	}
	if decided.Verdict != grant.Accept {
		return g
	}
	g.verdict, g.resources = accepted, decided.Amounts()
	if decided.Policy == nil {
		// Only the amounts are withdrawn: pods that still run keep their storage.
		if was := &c.answer; was.ours() {
			g.storageClasses, g.ingressClasses, g.loadBalancerClasses = was.storageClasses, was.ingressClasses, was.loadBalancerClasses
			g.nodeLabels, g.nodeSelector = was.nodeLabels, was.nodeSelector
		}
		return g
	}
	with := &decided.Policy.Slices
	g.storageClasses = firstIsDefault(with.StorageClasses)
	if with.StorageClasses == nil {
		g.storageClasses = m.storage
	}
	g.ingressClasses, g.loadBalancerClasses = firstIsDefault(with.IngressClasses), firstIsDefault(with.LoadBalancerClasses)
	g.nodeLabels, g.nodeSelector = with.NodeLabels, with.NodeSelector
	g.answer = g.bounded()
	return g
}

func firstIsDefault(names []string) []namedClass {
	var out []namedClass
	for i, name := range names {
		out = append(out, namedClass{name: name, isDefault: i == 0})
	}
	return out
}
