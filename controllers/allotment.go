package controllers

import (
	"maps"
	"slices"
	"strings"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
)

const (
	// reasonPrefix makes the reasons of our conditions ours: another controller may answer other classes.
	reasonPrefix = "Proffer"
	// maxAnswered is more resources than an answer of ours ever names: what names more was written by somebody else.
	maxAnswered = 4 * maxRequested
	// messageInterval is the least time between two writes to a slice where only the message differs: what remains of a pool comes and goes.
	messageInterval = 10 * time.Second
)

// ours reports whether the answer of a slice was written by this operator, by what it says. Slices of this cluster's own, that a provider
// has answered, are none of it: one that another cluster made is known by its labels, or else by where it is.
func (g *gates) ours(owners map[string]string, s *slice) bool {
	made := s.originOK || s.consumer != "" && s.consumer == owners[s.namespace]
	return made && len(s.answer.resources) <= maxAnswered && s.answer.verdict != unanswered && strings.HasPrefix(s.answer.reason, reasonPrefix)
}

// allotment is what one evaluation decided on the slices.
type allotment struct {
	// term is that of the leader whose book was decided on, 0 for none.
	term    int
	claims  []claim
	gates   []decision
	serving []bool
	// answers are those of claims[of[i]].
	of      []int
	answers []grant.Answer
	// grants are what counts as granted, by class and consumer.
	grants map[string]map[string]capacity.Amounts
	// byPolicy is the same by the policy that decides.
	byPolicy map[string]grantsOf
}

// grantsOf is what one policy has granted.
type grantsOf struct {
	// slices is how many slices have something.
	slices    int32
	consumers map[string]grantOf
}

// grantOf is what the slices of one consumer have under a policy.
type grantOf struct {
	slices  int32
	amounts capacity.Amounts
}

// under is what a policy has granted.
func (a *allotment) under(policy string) grantsOf {
	if a == nil {
		return grantsOf{}
	}
	return a.byPolicy[policy]
}

// allot decides on all slices, by terms that are worked out only if there are any. Nobody is told yet.
func (s *sliceSources) allot(termsOf func() *offer.Terms) *allotment {
	a := &allotment{grants: map[string]map[string]capacity.Amounts{}, byPolicy: map[string]grantsOf{}}
	a.claims, a.term = s.book.claims()
	if len(a.claims) == 0 {
		return a
	}
	terms, owners := termsOf(), s.gates.owners.all()
	a.gates = s.gates.decide(owners, a.claims)
	a.serving = make([]bool, len(a.claims))
	asked := make([]grant.Slice, 0, len(a.claims))
	a.of = make([]int, 0, len(a.claims))
	for i := range a.claims {
		c := &a.claims[i]
		a.serving[i] = c.class != "" && c.class != liqoClass && terms.Serves(c.class)
		if in, decided := a.input(i, a.term == 0 && s.gates.ours(owners, &c.slice)); decided {
			asked, a.of = append(asked, in), append(a.of, i)
		}
	}
	a.answers = grant.Allocate(terms, asked)
	for j := range a.of {
		a.count(&asked[j], &a.answers[j])
	}
	return a
}

// input is what is to be decided on a slice, if anything is. Where there is no book of a leader, what stands in the slice counts, if it is ours.
func (a *allotment) input(i int, ours bool) (in grant.Slice, decided bool) {
	c := &a.claims[i]
	if a.left(i) {
		return in, false
	}
	granted := c.granted()
	switch {
	case a.term > 0 && granted == nil:
		granted = c.void()
	case ours && c.answer.verdict == accepted:
		granted = c.answer.resources
	}
	in = grant.Slice{
		Key: c.key, Consumer: c.consumer, Class: c.class, Created: c.created, Request: c.request, Invalid: len(c.problems) > 0,
		Granted: granted, Frozen: a.gates[i] == cordoned,
	}
	if from := c.origin(); from != nil {
		in.GrantedBy, in.GrantedIn = from.policy, from.class
	}
	if a.away(i) {
		in.Class = c.ours.class
	}
	if !a.open(i) {
		// It cannot be written to now, but what it has counts.
		in.Frozen, in.Invalid = true, true
		return in, granted != nil
	}
	return in, true
}

// open reports whether the slice is to be answered now.
func (a *allotment) open(i int) bool {
	return (a.gates[i] == active || a.gates[i] == cordoned) && !a.claims[i].deleting && !a.away(i)
}

// away reports whether the consumer has taken the slice from a class of ours to one that no policy is for.
func (a *allotment) away(i int) bool {
	c := &a.claims[i]
	return !a.serving[i] && c.ours != nil && c.ours.class != c.class
}

// left reports whether nothing of ours is granted to the slice any more: there was nothing, Liqo has drained its tenant, or the slice has been
// taken to another class and somebody else answers it. Until then it has the Quota that came of our answer, so that counts; of Liqo's own
// class it is certain that Liqo answers at once.
func (a *allotment) left(i int) bool {
	c := &a.claims[i]
	switch {
	case a.gates[i] == drained, c.class == "", c.class == liqoClass:
		return true
	case a.serving[i]:
		return false
	case a.away(i):
		return !equal(c.ours.answer, c.answer)
	}
	return c.ours == nil
}

// void stands for what a slice has been granted that has nothing of ours, and that somebody else has accepted: Liqo, when it was of the class
// that Liqo answers, or the consumer itself. Nothing of that counts, but a denial would leave it the Quota that it has, so all of it becomes 0.
// It is nil where nobody has.
func (c *claim) void() capacity.Amounts {
	if c.answer.verdict != accepted {
		return nil
	}
	void := capacity.Amounts{capacity.CPU: 0, capacity.Memory: 0}
	for _, name := range slices.Sorted(maps.Keys(c.answer.resources)) {
		if len(void) < maxRequested {
			void[name] = 0
		}
	}
	return void
}

// count adds what a slice has, or is about to have, to what is granted.
func (a *allotment) count(asked *grant.Slice, decided *grant.Answer) {
	next := a.term > 0 && decided.Verdict == grant.Accept
	if asked.Granted == nil && !next {
		return
	}
	sums := a.grants[asked.Class]
	if sums == nil {
		sums = map[string]capacity.Amounts{}
		a.grants[asked.Class] = sums
	}
	sum := sums[asked.Consumer]
	if sum == nil {
		sum = capacity.Amounts{}
		sums[asked.Consumer] = sum
	}
	some := false
	for i := range decided.Lines { // What is granted has a line each.
		l := &decided.Lines[i]
		amount, granted := asked.Granted[l.Resource]
		if next && l.Listed {
			amount, granted = max(amount, l.Granted), true
		}
		if granted {
			some = some || amount > 0
			sum[l.Resource] = capacity.Sum(sum[l.Resource], amount)
		}
	}
	if decided.Policy == nil || !some {
		return
	}
	// One consumer's slices of a class are all under one policy.
	under := a.byPolicy[decided.Policy.Name]
	if under.consumers == nil {
		under.consumers = map[string]grantOf{}
	}
	under.slices++
	under.consumers[asked.Consumer] = grantOf{slices: under.consumers[asked.Consumer].slices + 1, amounts: sum}
	a.byPolicy[decided.Policy.Name] = under
}

// onlyMessage reports whether two answers differ in their message alone.
func onlyMessage(a, b answer) bool {
	b.message = a.message
	return equal(a, b)
}

// dropped are the keys that were in a map and are not any more, sorted.
func dropped(was, is map[string]string) []string {
	var out []string
	for key := range was {
		if _, stays := is[key]; !stays {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}
