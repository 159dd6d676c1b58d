package holding

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/offer"
)

// Whoever replaces a policy deletes it first.
func TestAGrantWhosePolicyIsGoneIsLeftAloneForAWhile(t *testing.T) {
	start := time.Now()
	u := Grace{Started: start, Since: map[[2]string]time.Time{}}
	for _, step := range []struct {
		after  time.Duration
		policy fate
		want   time.Duration
	}{
		{0, gone, startGrace},
		{time.Minute, replaced, 0},
		{time.Hour, gone, replaceGrace},
		{time.Hour + time.Second, gone, replaceGrace - time.Second},
		{time.Hour + 2*time.Second, replaced, 0},
		{2 * time.Hour, gone, replaceGrace},
		{2*time.Hour + replaceGrace, gone, 0},
		{3 * time.Hour, gone, 0},
		{4 * time.Hour, replaced, 0},
		{5 * time.Hour, narrowed, 0},
	} {
		if got := u.leaveAloneFor("gold", "rome", step.policy, start.Add(step.after)); got != step.want {
			t.Errorf("after %s the grant is left alone for %s, want %s", step.after, got, step.want)
		}
	}
	for i := range 100 {
		u.forget(1)
		u.leaveAloneFor("gold", strconv.Itoa(i), replaced, start)
	}
	if len(u.Since) > 3 {
		t.Errorf("%d classes and consumers are remembered for one slice", len(u.Since))
	}
}

func TestMissingCapacityTakesNoGrantForTheGraceOfNodesAfterTheFirstDecision(t *testing.T) {
	start := time.Now()
	g := Grace{Nodes: 2 * time.Minute}
	for _, step := range []struct{ after, want time.Duration }{
		{time.Hour, 2 * time.Minute},
		{time.Hour + time.Minute, time.Minute},
		{time.Hour + 2*time.Minute, 0},
		{2 * time.Hour, 0},
	} {
		g.Begin(start.Add(step.after), "term")
		if got := g.shelterFor(start.Add(step.after)); got != step.want {
			t.Errorf("after %s it takes none for %s, want %s", step.after, got, step.want)
		}
	}
	if got := (*Grace)(nil).shelterFor(start); got != 0 {
		t.Errorf("a rehearsal shelters grants for %s", got)
	}
}

// provider is a provider whose answers are written at once. Its slices are all of the resource cpu, and one
// whose key is less is older.
type provider struct {
	t        *testing.T
	ledger   *capacity.Ledger
	policies []offer.Policy
	former   []offer.Policy
	slices   []*Slice
	grace    Grace
	now      time.Time
	term     string
}

func newProvider(t *testing.T, policies ...offer.Policy) *provider {
	return &provider{t: t, term: "term", ledger: capacity.NewLedger(), policies: policies, now: time.Now(), grace: Grace{Since: map[[2]string]time.Time{}, Nodes: nodeGrace}}
}

const nodeGrace = 2 * time.Minute

// inZone selects the nodes of a zone. It implements capacity.Selector.
type inZone string

func (z inZone) Matches(labels map[string]string) bool { return labels["zone"] == string(z) }
func (inZone) Keys() []string                          { return []string{"zone"} }
func (z inZone) String() string                        { return string(z) }

// evicting returns a policy of all nodes of a zone in a class, for all consumers or for some.
func evicting(name, class, zone string, consumers ...string) offer.Policy {
	p := offer.Policy{Name: name, Class: class, Reclaim: offer.Evict, Nodes: &offer.Nodes{Percent: 100}}
	p.Nodes.Selection.Selector = inZone(zone)
	if len(consumers) > 0 {
		p.Consumers.IDs = map[string]struct{}{}
	}
	for _, id := range consumers {
		p.Consumers.IDs[id] = struct{}{}
	}
	return p
}

func unused(p offer.Policy) offer.Policy {
	p.Reclaim = offer.Unused
	return p
}

// node sets what a node has.
func (p *provider) node(name, zone string, cpu int64) *provider {
	p.ledger.SetNode(capacity.Node{
		Name: name, Labels: map[string]string{"zone": zone}, State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: cpu},
	})
	return p
}

// pods sets what the pods of a slice request on a node.
func (p *provider) pods(key, node string, cpu int64) *provider {
	p.ledger.SetPod(capacity.Pod{
		Key: key, Node: node, Consumer: key, Creator: key, Requests: capacity.Amounts{capacity.CPU: cpu},
	})
	return p
}

// slice adds a slice, or sets what it asks for. With had above 0, it has that of a policy.
func (p *provider) slice(key, class, policy string, asks, had int64) *provider {
	c := &Slice{Key: key, UID: key, Class: class, Creator: key, Created: int64(key[0])}
	i := slices.IndexFunc(p.slices, func(c *Slice) bool { return c.Key == key })
	if i < 0 {
		i, p.slices = len(p.slices), append(p.slices, nil)
	} else {
		*c = *p.slices[i]
	}
	c.Request = capacity.Amounts{capacity.CPU: asks}
	if p.slices[i] = c; had > 0 {
		p.write(c, policy, had)
	}
	return p
}

// write has a grant in the record of a slice, and in its status.
func (p *provider) write(c *Slice, policy string, cpu int64) {
	share := protocol.Share{Class: c.Class, Policy: policy, Reclaim: offer.Evict, Amounts: capacity.Amounts{capacity.CPU: cpu}}
	c.Holds, c.Vouched, c.Recorded, c.Settled = protocol.Shares{share}, protocol.Shares{share}, true, true
	c.Present, c.Former, c.Answer = c.Class, c.Class, Answer{Given: true, Accepted: true, Own: true, Amounts: share.Amounts}
}

func (p *provider) decide() *Decision {
	p.grace.Begin(p.now, p.term)
	slices.SortFunc(p.slices, (*Slice).Compare)
	in := Input{Now: p.now, Slices: p.slices, Grace: &p.grace, Terms: offer.NewAllocationInput(offer.Input{
		Policies: p.policies, Former: p.former, View: p.ledger.View(offer.Selections(p.policies, p.former), capacity.CPU),
	})}
	for _, c := range p.slices {
		in.Gates, in.Consumers = append(in.Gates, Open), append(in.Consumers, c.Key)
	}
	return Decide(in)
}

// decides decides twice, with what was written in between, and wants these grants then.
func (p *provider) decides(what, want string) {
	p.t.Helper()
	for range 2 {
		d := p.decide()
		for i, v := range d.Verdicts {
			c := *p.slices[i]
			if a := d.Answers[v.At]; a.Verdict == grant.Accept {
				p.write(&c, a.Policy.Name, a.Amounts()[capacity.CPU])
				p.slices[i] = &c
			}
		}
	}
	var all []string
	for _, c := range p.slices {
		all = append(all, fmt.Sprint(c.Key, " ", c.Answer.Amounts[capacity.CPU]))
	}
	if got := strings.Join(all, ", "); got != want {
		p.t.Errorf("%s: granted %s; want %s", what, got, want)
	}
}

// A node of 5 cpu has lost its label when the operator starts, and has it back later.
func TestAStartTakesNothingFromAnySliceOfANodeThatComesBack(t *testing.T) {
	for name, policy := range map[string]offer.Policy{
		"Evict": evicting("gold", "gold", "a"), "Unused": unused(evicting("gold", "gold", "a")),
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, policy).node("n1", "a", 3).slice("1-idle", "gold", "gold", 5, 5).
				slice("2-busy", "gold", "gold", 3, 3).pods("2-busy", "n1", 3)
			p.decides("at the start", "1-idle 5, 2-busy 3")
			p.pods("2-busy", "n1", 0)
			p.decides("the pods end", "1-idle 5, 2-busy 3")
			p.pods("1-idle", "n1", 3)
			p.decides("those of the other start", "1-idle 5, 2-busy 3")
			p.pods("1-idle", "n1", 0).pods("2-busy", "n1", 2).slice("3-late", "gold", "", 4, 0)
			p.decides("another asks", "1-idle 5, 2-busy 3, 3-late 0")
			p.node("n2", "a", 5).node("n3", "a", 2)
			p.decides("the label is back", "1-idle 5, 2-busy 3, 3-late 2")
			p.now = p.now.Add(nodeGrace)
			p.decides("the grace is over", "1-idle 5, 2-busy 3, 3-late 2")
		})
	}
}

func TestThePolicyDecidesWhenTheGraceOfAStartIsOver(t *testing.T) {
	for name, tc := range map[string]struct {
		policy offer.Policy
		want   string
	}{
		"Evict":  {evicting("gold", "gold", "a"), "1-idle 3, 2-busy 0"},
		"Unused": {unused(evicting("gold", "gold", "a")), "1-idle 0, 2-busy 3"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, tc.policy).node("n1", "a", 3).slice("1-idle", "gold", "gold", 5, 5).
				slice("2-busy", "gold", "gold", 3, 3).pods("2-busy", "n1", 3)
			p.decides("at the start", "1-idle 5, 2-busy 3")
			if left := p.decide().Again; left != nodeGrace {
				t.Errorf("the next decision is due in %s, want %s", left, nodeGrace)
			}
			p.now = p.now.Add(nodeGrace)
			p.decides("the grace is over", tc.want)
			if left := p.decide().Again; left != 0 {
				t.Errorf("another decision is due in %s", left)
			}
		})
	}
}

// What goes away after the start is known to go away, and lowers the youngest.
func TestInTheGraceOfAStartOlderSlicesLoseNothingToYoungerOnes(t *testing.T) {
	for name, policies := range map[string][]offer.Policy{
		"one policy": {evicting("gold", "gold", "a")},
		"two policies of a class": {
			evicting("gold", "gold", "a", "2-old"), evicting("rest", "gold", "a", "1-late", "3-young", "4-late"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			rest := policies[len(policies)-1].Name
			p := newProvider(t, policies...).node("n1", "a", 4).node("n2", "a", 1).slice("1-late", "gold", "", 9, 0).
				slice("2-old", "gold", "gold", 5, 5).slice("3-young", "gold", rest, 3, 3).slice("4-late", "gold", "", 9, 0)
			p.decides("at the start", "1-late 0, 2-old 5, 3-young 3, 4-late 0")
			p.slice("2-old", "gold", "", 1, 0)
			p.decides("the old one asks for less", "1-late 1, 2-old 1, 3-young 3, 4-late 0")
			p.slice("2-old", "gold", "", 5, 0)
			p.decides("and for more again", "1-late 1, 2-old 1, 3-young 3, 4-late 0")
			p.ledger.DeleteNode("n2")
			p.decides("a node is deleted", "1-late 1, 2-old 1, 3-young 2, 4-late 0")
		})
	}
	p := newProvider(t, evicting("gold", "gold", "a")).node("n1", "a", 4).node("n2", "a", 1).
		slice("1-old", "gold", "gold", 5, 5).slice("2-young", "gold", "gold", 3, 3)
	p.decides("at the start", "1-old 5, 2-young 3")
	p.ledger.DeleteNode("n2")
	p.decides("a node is deleted while another may come back", "1-old 5, 2-young 2")
}

// The nodes of the next policy are fewer. It may have been replaced while its own node lacks something.
func TestAPolicyThatIsCreatedInTheGraceOfAStartLowersGrantsAfterIt(t *testing.T) {
	p := newProvider(t, evicting("gold", "gold", "a")).node("n1", "a", 3).node("n2", "b", 1).
		slice("1-old", "gold", "gold", 5, 5)
	p.decides("at the start", "1-old 5")
	p.policies = []offer.Policy{evicting("next", "gold", "b")}
	p.decides("another policy decides", "1-old 5")
	p.node("n2", "b", 0)
	p.decides("its node has less", "1-old 4")
	p.now = p.now.Add(nodeGrace)
	p.decides("the grace is over", "1-old 0")
}

// A former leader has granted more since this process has started: it knew what nodes had lost.
func TestATermBeginsWithWhatItsPoolsLackThen(t *testing.T) {
	p := newProvider(t, evicting("gold", "gold", "a")).node("n1", "a", 3).slice("1-old", "gold", "gold", 5, 5)
	p.term = ""
	p.decides("while another replica leads", "1-old 5")
	p.slice("2-young", "gold", "gold", 3, 3)
	p.decides("it grants more", "1-old 5, 2-young 3")
	p.term = "next"
	p.decides("at the beginning of the term", "1-old 5, 2-young 3")
	p.node("n1", "a", 2)
	p.decides("the node has less", "1-old 5, 2-young 2")
}

// What the replaced policy granted may count in every pool meanwhile, but takes nothing from anybody.
func TestTheReplacementOfAPolicyTakesNothingFromSlicesOfOthers(t *testing.T) {
	for name, of := range map[string]func(offer.Policy) offer.Policy{"Evict": func(p offer.Policy) offer.Policy { return p }, "Unused": unused} {
		t.Run(name, func(t *testing.T) {
			gold, silver := of(evicting("gold", "gold", "a")), of(evicting("silver", "silver", "b"))
			p := newProvider(t, gold, silver).node("n1", "a", 8).node("n2", "b", 8).
				slice("1-other", "gold", "gold", 8, 8).slice("2-replaced", "silver", "silver", 6, 6).pods("2-replaced", "n2", 6)
			p.decide()
			p.now = p.now.Add(time.Hour)
			p.want("1-other", 8)
			p.policies = []offer.Policy{gold}
			p.now = p.now.Add(time.Second)
			p.want("1-other", 8)
			if d := p.decide(); !d.LeftAlone(1) || d.Again <= 0 {
				t.Errorf("left alone: %t, again after %s", d.LeftAlone(1), d.Again)
			}
		})
	}
}

// The younger slice has been evicted, and is deleted while its pods still end.
func TestADeletedSliceThatWasEvictedTakesNothingFromOthers(t *testing.T) {
	p := newProvider(t, evicting("gold", "gold", "a")).node("n1", "a", 8).
		slice("1-older", "gold", "gold", 4, 4).slice("2-evicted", "gold", "gold", 4, 4).pods("2-evicted", "n1", 4)
	p.decide()
	p.now = p.now.Add(time.Hour)
	p.node("n1", "a", 4)
	p.want("1-older", 4)
	p.want("2-evicted", 0)
	p.slices[1].Holds[0].Reclaim = offer.Unused // The policy was edited since.
	deleted := *p.slices[1]
	deleted.Answer.Amounts, deleted.Vouched = capacity.Amounts{capacity.CPU: 0}, protocol.Shares{}
	deleted.RemovedAt = p.now.Add(-time.Minute)
	p.slices[1] = &deleted
	p.want("1-older", 4)
}

// want decides, and fails the test if the slice is not granted this.
func (p *provider) want(key string, cpu int64) {
	p.t.Helper()
	d := p.decide()
	i := slices.IndexFunc(p.slices, func(c *Slice) bool { return c.Key == key })
	if got := d.Answers[d.Verdicts[i].At].Amounts()[capacity.CPU]; got != cpu {
		p.t.Errorf("%s is granted %d, want %d", key, got, cpu)
	}
}
