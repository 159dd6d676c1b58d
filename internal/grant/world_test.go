package grant

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// world is a provider: nodes, pods, policies and slices.
type world struct {
	ledger    *capacity.Ledger
	policies  []offer.Policy
	consumers []offer.Consumer
	slices    []Slice
	// inGrace is set in the grace after a start. lack is what the pools lacked in the last decision.
	inGrace bool
	lack    Lack
	// former remembers the nodes from which slices have something.
	former offer.FormerPolicies
	// made counts all policies that ever existed.
	made int
	// recordedBy maps the keys of slices with Recorded to the granter that decided on them then.
	recordedBy map[string]string
}

func newWorld(policies ...offer.Policy) *world {
	return &world{ledger: capacity.NewLedger(), policies: policies, recordedBy: map[string]string{}}
}

// node adds a node, which a peer may give.
func (w *world) node(name, zone string, allocatable capacity.Amounts, peer ...string) *world {
	n := capacity.Node{Name: name, Labels: map[string]string{"zone": zone}, State: capacity.Ready, Allocatable: allocatable}
	if len(peer) > 0 && peer[0] != "" {
		n.Virtual, n.Peer = true, peer[0]
	}
	w.ledger.SetNode(n)
	return w
}

// down adds a node that is not Ready, or makes it so.
func (w *world) down(name, zone string, allocatable capacity.Amounts) *world {
	w.ledger.SetNode(capacity.Node{Name: name, Labels: map[string]string{"zone": zone}, Allocatable: allocatable})
	return w
}

func (w *world) pod(key, node, consumer string, requests capacity.Amounts) *world {
	w.ledger.SetPod(capacity.Pod{Key: key, Node: node, Consumer: consumer, Requests: requests})
	return w
}

func (w *world) slice(s Slice) *world {
	w.slices = append(w.slices, s)
	return w
}

func (w *world) terms() *offer.AllocationInput {
	in := offer.Input{Policies: w.policies, Consumers: w.consumers}
	w.former.Update(&in, w.granters)
	in.View = w.ledger.View(offer.Selections(in.Policies, in.Former), offer.ResourceNames(w.policies)...)
	terms := offer.NewAllocationInput(in)
	w.dropStrayRecords(terms)
	return terms
}

// dropStrayRecords drops what is on record by a granter that no longer decides on the slice: package holding asks with
// it as a pinned slice of its own.
func (w *world) dropStrayRecords(terms *offer.AllocationInput) {
	for i := range w.slices {
		s := &w.slices[i]
		of, by := terms.Terms(s.Class, s.Consumer), w.recordedBy[s.Key]
		if len(s.Recorded) == 0 || of == nil || by != "" && by != of.Granter {
			s.Recorded = nil
			delete(w.recordedBy, s.Key)
			continue
		}
		w.recordedBy[s.Key] = of.Granter
	}
}

// granters returns the granters of what the slices have.
func (w *world) granters() map[string]struct{} {
	all := map[string]struct{}{}
	for i := range w.slices {
		for _, by := range offer.Granters(w.slices[i].GrantedBy) {
			all[by] = struct{}{}
		}
	}
	return all
}

// start has the grace after a start begin.
func (w *world) start() *world {
	w.inGrace, w.lack = true, nil
	return w
}

func (w *world) allocate(terms *offer.AllocationInput) (answers []Answer) {
	if !w.inGrace {
		return Allocate(terms, w.slices)
	}
	answers, w.lack = AllocateInGrace(terms, w.slices, w.lack)
	return answers
}

// step decides, and writes all answers.
func (w *world) step() []Answer {
	answers := w.allocate(w.terms())
	for i := range answers {
		w.write(i, &answers[i])
	}
	return answers
}

func (w *world) write(i int, a *Answer) {
	if w.slices[i].Pinned {
		return
	}
	switch a.Verdict {
	case Deny:
		w.slices[i].Granted, w.slices[i].GrantedBy, w.slices[i].GrantedIn, w.slices[i].Used = nil, "", "", nil
		w.slices[i].Recorded = nil
	case Accept:
		// If no policy decides any longer, the grant stays that of its former policy and class.
		w.slices[i].Granted = a.Amounts()
		if s := &w.slices[i]; a.Policy != nil {
			s.GrantedBy, s.GrantedIn, s.Reclaim = a.Granter, s.Class, a.Policy.Reclaim
		}
	}
}

// settle steps until nothing changes.
func (w *world) settle(t testingT) []Answer {
	t.Helper()
	for range 10 {
		before := slices.Clone(w.slices)
		answers := w.step()
		same := slices.EqualFunc(before, w.slices, func(a, b Slice) bool {
			return maps.Equal(a.Granted, b.Granted) && (a.Granted == nil) == (b.Granted == nil)
		})
		if same {
			return answers
		}
	}
	t.Fatal("the grants still change after ten steps")
	return nil
}

type testingT interface {
	Helper()
	Fatal(args ...any)
}

// granted returns what each slice has, as text such as "name cpu=4,memory=1".
func (w *world) granted() string {
	var out []string
	for i := range w.slices {
		s := &w.slices[i]
		if s.Granted == nil {
			out = append(out, s.Key+" -")
			continue
		}
		var amounts []string
		for _, name := range slices.Sorted(maps.Keys(s.Granted)) {
			amounts = append(amounts, fmt.Sprintf("%s=%d", name, s.Granted[name]))
		}
		out = append(out, s.Key+" "+strings.Join(amounts, ","))
	}
	return strings.Join(out, "; ")
}

func (w *world) want(t *testing.T, want string) {
	t.Helper()
	if got := w.granted(); got != want {
		t.Errorf("granted\n%s\nwant\n%s", got, want)
	}
}

// becauseOf explains an answer without what the slice lacks to run pods: most tests are about one resource.
func becauseOf(a *Answer, problem string) string {
	alone := *a
	alone.Missing = nil
	return alone.Explain(problem)
}

// gold returns a policy of all nodes.
func gold(edits ...func(*offer.Policy)) offer.Policy {
	p := offer.Policy{Name: "standard", Class: "gold", Nodes: &offer.Nodes{Percent: 100}}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func inZone(zone string) capacity.Selection {
	return capacity.Selection{Selector: withLabel("zone", zone)}
}

// withLabel selects objects by the values of one label. It implements capacity.Selector.
func withLabel(key string, values ...string) capacity.Selector { return labelSelector{key, values} }

type labelSelector struct {
	key    string
	values []string
}

func (l labelSelector) Matches(labels map[string]string) bool {
	value, ok := labels[l.key]
	return ok && slices.Contains(l.values, value)
}

func (l labelSelector) Keys() []string { return []string{l.key} }

func (l labelSelector) String() string { return fmt.Sprint(l.key, l.values) }

// asking returns a slice of class gold. A lower age is older.
func asking(name, consumer string, age int64, cpu int64) Slice {
	return Slice{Key: name, Consumer: consumer, Class: "gold", Created: age, Request: capacity.Amounts{"cpu": cpu}}
}

// having returns a slice that was granted what it asks for.
func having(name, consumer string, age int64, cpu int64) Slice {
	s := asking(name, consumer, age, cpu)
	s.Granted, s.GrantedBy, s.GrantedIn = capacity.Amounts{"cpu": cpu}, "standard", "gold"
	return s
}

func cpu(amount int64) capacity.Amounts { return capacity.Amounts{"cpu": amount} }
