package slice

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/visible"
)

// statusRenderer renders decisions as the status of a ResourceSlice. Most decisions repeat the
// previous one, so it remembers what it rendered for each slice. It is for the goroutine that
// evaluates.
type statusRenderer struct {
	// storage are all the StorageClasses that there are.
	storage []namedClass
	known   map[types.UID]*rendered
}

// rendered is the status rendered for a decision.
type rendered struct {
	answer decidedAnswer
	// class, problems and decided are what it was rendered from. The lines of decided are a copy:
	// those of the decision share their memory with very many others.
	class    string
	problems []string
	decided  grant.Answer
	// entry is the state of the slice in which nothing had to be written.
	entry *entry
}

func newStatusRenderer() *statusRenderer { return &statusRenderer{known: map[types.UID]*rendered{}} }

// begin is called before a round of decisions.
func (m *statusRenderer) begin(all []*entry, storage []namedClass) {
	if !slices.Equal(m.storage, storage) {
		m.storage = storage
		clear(m.known)
	}
	if len(m.known) > len(all) { // Some are gone.
		forgetGone(m.known, all)
	}
}

// render returns the status for a slice, the remembered one if nothing it depends on has changed.
func (m *statusRenderer) render(c *entry, decided *grant.Answer) *rendered {
	known := m.known[c.uid]
	if known != nil && known.class == c.class && slices.Equal(known.problems, c.problems) &&
		alike(&known.decided, decided) {
		return known
	}
	status := &rendered{answer: m.status(c, decided), class: c.class, problems: c.problems, decided: *decided}
	if decided.Policy != nil { // Without a policy the status depends on more than these.
		status.decided.Lines = slices.Clone(decided.Lines)
		m.known[c.uid] = status
	}
	return status
}

// alike reports whether two decisions are rendered alike.
func alike(a, b *grant.Answer) bool {
	return a.Verdict == b.Verdict && a.Invalid == b.Invalid && a.Frozen == b.Frozen && a.Ruling == b.Ruling &&
		a.Policy != nil && b.Policy != nil && a.Policy.Name == b.Policy.Name && a.Policy.Version == b.Policy.Version &&
		slices.Equal(a.Lines, b.Lines)
}

// status renders a decision.
func (m *statusRenderer) status(c *entry, decided *grant.Answer) decidedAnswer {
	g := decidedAnswer{
		answer: answer{
			verdict: denied, reason: reasonPrefix + decided.Reason(),
			message: explained(c, decided),
		},
		share: protocol.Share{Class: c.class},
	}
	if decided.Policy != nil {
		g.share.Policy, g.share.Reclaim = decided.Policy.Name, decided.Policy.Reclaim
	} else {
		held := c.Holds.In(c.class)
		g.share.Policy, g.share.Reclaim = held.Policy, held.Reclaim
	}
	if decided.Verdict != grant.Accept {
		return g
	}
	g.verdict, g.resources = accepted, decided.Amounts()
	if decided.Policy == nil {
		// Only the amounts are withdrawn: pods that still run keep their storage.
		if was := &c.answer; was.ours() {
			g.storageClasses, g.ingressClasses = was.storageClasses, was.ingressClasses
			g.loadBalancerClasses = was.loadBalancerClasses
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
	g.nodeLabels, g.nodeSelector = nodeLabels(decided.Policy), with.NodeSelector
	g.answer = g.bounded()
	return g
}

// explained returns the message of an answer. It repeats what the consumer wrote.
func explained(c *entry, decided *grant.Answer) string {
	return kube.Shorten(visible.Escape(decided.Explain(strings.Join(c.problems, "; ")), ""), kube.MaxMessage)
}

// nodeLabels returns the labels for virtual nodes. What is resold has its depth as a label.
func nodeLabels(p *offer.Policy) map[string]string {
	if p.Nodes == nil || p.Nodes.Selection.Peers == nil {
		return p.Slices.NodeLabels
	}
	labels := maps.Clone(p.Slices.NodeLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[capacity.DepthLabel] = strconv.Itoa(p.Nodes.Selection.Peers.Depth)
	return labels
}

func firstIsDefault(names []string) []namedClass {
	var out []namedClass
	for i, name := range names {
		out = append(out, namedClass{name: name, isDefault: i == 0})
	}
	return out
}
