package slice

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/visible"
)

// statusRenderer renders decisions as the statuses of ResourceSlices. Most decisions repeat the previous ones, so it
// keeps the answers of the last round. It is for the goroutine that evaluates.
type statusRenderer struct {
	// storage lists all StorageClasses.
	storage []namedClass
	// round holds the decisions of this round. In the order of their slices, answers holds what was rendered, nil
	// for nothing, and current is set where nothing had to be written.
	round   *decisions
	answers []*sliceAnswer
	current []bool
}

// begin starts a round. An answer stays as in the last round where nothing has changed that it depends on.
func (m *statusRenderer) begin(a *decisions, storage []namedClass) {
	last := *m
	m.storage, m.round = storage, a
	m.answers, m.current = make([]*sliceAnswer, len(a.entries)), make([]bool, len(a.entries))
	if last.round == nil || !slices.Equal(last.storage, storage) {
		return
	}
	k := 0 // The slices of both rounds are in the same order.
	for i, c := range a.entries {
		for k < len(last.answers) && last.round.Slices[k].Compare(a.Slices[i]) < 0 {
			k++
		}
		if k < len(last.answers) && last.answers[k] != nil && last.round.entries[k].uid == c.uid &&
			renderedAlike(last.round, k, a, i) {
			m.answers[i], m.current[i] = last.answers[k], last.current[k] && last.round.entries[k] == c
		}
	}
}

// render returns the answer for the slice at an index.
func (m *statusRenderer) render(i int) sliceAnswer {
	if m.answers[i] == nil {
		m.answers[i] = new(m.status(m.round.entries[i], &m.round.Answers[m.round.Verdicts[i].At]))
	}
	return *m.answers[i]
}

// renderedAlike reports whether two decisions on one slice have the same answer. Without a policy an answer depends
// on more than what is compared.
func renderedAlike(last *decisions, k int, now *decisions, i int) bool {
	before, c := last.entries[k], now.entries[i]
	if now.Verdicts[i].At < 0 || before.class != c.class || !slices.Equal(before.problems, c.problems) {
		return false
	}
	a, b := &last.Answers[last.Verdicts[k].At], &now.Answers[now.Verdicts[i].At]
	return a.Verdict == b.Verdict && a.Invalid == b.Invalid && a.Frozen == b.Frozen && a.Ruling == b.Ruling &&
		a.Policy != nil && b.Policy != nil && a.Policy.Name == b.Policy.Name && a.Policy.Version == b.Policy.Version &&
		a.Seat.Equal(b.Seat) && slices.Equal(a.Lines, b.Lines)
}

// status renders a decision.
func (m *statusRenderer) status(c *sliceEntry, decided *grant.Answer) sliceAnswer {
	explanation := decided.Explain(strings.Join(c.problems, "; ")) // It repeats what the consumer wrote.
	g := sliceAnswer{
		class: c.class, verdict: denied, reason: reasonPrefix + decided.Reason(),
		message: kube.Shorten(visible.Escape(explanation, ""), kube.MaxMessage),
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
	g.nodeLabels, g.nodeSelector = nodeLabels(decided.Policy), decided.NodeSelector()
	return g.bounded()
}

// nodeLabels returns the labels for virtual nodes. What is resold has its depth as a label.
func nodeLabels(p *offer.Policy) map[string]string {
	if p.Nodes == nil || p.Nodes.Selection.Peers == nil {
		return p.Slices.NodeLabels
	}
	labels := map[string]string{}
	maps.Copy(labels, p.Slices.NodeLabels)
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
