package world

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/controllers/policy"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/engine"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// provider is an engine at work, without an API server.
type provider struct {
	engine.Config
	policies  *policy.Cache
	consumers []offer.Consumer
	// slices are what the next evaluation decides on. Every decision is carried out before it.
	slices []grant.Slice
	// answers are those of the external source of all policies that have one.
	answers capacity.Answers
	// generation is that of the latest edit of any policy.
	generation int64
}

// listed are the consumers and slices of a provider.
type listed struct{ *provider }

func (p listed) List() []offer.Consumer            { return p.consumers }
func (p listed) Resources(names []string) []string { return names }
func (p listed) Granters() map[string]struct{}     { return nil }

// Decide implements engine.Slices: each decision is carried out when the next one is made.
func (p listed) Decide(_ time.Time, terms func() *offer.AllocationInput) table.SliceDecisions {
	var r rehearse.Requests
	for i := range p.slices {
		s := &p.slices[i]
		r = append(r, table.DecidedSlice{Namespace: "tenant", Name: s.Key, UID: s.Key, Slice: *s})
	}
	if len(r) == 0 {
		return r
	}
	d := r.DryRun(terms)
	i := 0
	for decided := range d.All {
		p.slices[i] = decided.Slice
		p.slices[i].Granted = decided.After()
		i++
	}
	return d
}

func TestASnapshotHasTheProblemOfARequest(t *testing.T) {
	want := table.DecidedSlice{Problem: "asks for 500m nvidia.com/gpu", Slice: grant.Slice{Invalid: true}}
	var d decoder
	of := sliceObject(want)
	test.Must(t, d.slice(&of))
	if got := d.requests[0]; got.Problem != want.Problem || !got.Invalid {
		t.Errorf("got %+v", got)
	}
}

func newProvider() *provider {
	p := &provider{policies: policy.NewCache(nil)}
	p.Config = engine.Config{
		Ledger: capacity.NewLedger(), Policies: p.policies, Consumers: listed{p}, Slices: listed{p}, Previous: func() []offer.PreviousOffers { return nil },
		Debouncer: debounce.New(0), Table: table.New(), Published: []func(*table.Snapshot){p.policies.Remember}, Log: logr.Discard(),
		Answers: func(capacity.Monitor) capacity.Answers { return p.answers },
	}
	// A rehearsal knows what a source has answered for any policy.
	p.apply(kubetest.Policy("anchor", func(s *v1alpha1.ResourcePolicySpec) {
		s.Class, s.Offer = "anchor", v1alpha1.PolicyOffer{External: flatPlugin()}
	}))
	return p
}

// flatPlugin is an external source. In the flat form it is the same for all classes.
func flatPlugin() *v1alpha1.External {
	return &v1alpha1.External{Address: "plugin:1", Form: v1alpha1.ExternalFormFlat}
}

// anyAnswers draws what the external source answers, also to consumers in general.
func anyAnswers(t *rapid.T) capacity.Answers {
	a := capacity.Answers{Asked: true, Of: map[string]capacity.Answered{}, Problem: rapid.SampledFrom([]string{"", "it is away"}).Draw(t, "problem")}
	for _, id := range append([]string{""}, rapid.SliceOfDistinct(anyID, rapid.ID).Draw(t, "answered")...) {
		a.Of[id] = capacity.Answered{Index: len(a.Distinct), At: time.Unix(1000, 0).UTC()}
		a.Distinct = append(a.Distinct, capacity.Answer{
			Amounts: rapid.MapOfN(rapid.SampledFrom([]string{"cpu", "memory", "example.com/gpu"}), rapid.Int64Range(0, 30_000), 1, 3).Draw(t, "answer"),
			Stale:   rapid.Bool().Draw(t, "stale"),
		})
	}
	return a
}

// apply writes a policy as the API server would.
func (p *provider) apply(object *v1alpha1.ResourcePolicy) {
	next := object.DeepCopy()
	p.generation++
	next.UID, next.Generation, next.CreationTimestamp = types.UID("of "+object.Name), p.generation, metav1.NewTime(time.Now())
	for _, known := range p.policies.List().All {
		if known.Name == next.Name {
			next.UID, next.CreationTimestamp = types.UID(known.UID), known.Object.CreationTimestamp
			if same, _ := sameSpec(&known.Object.Spec, &next.Spec); same {
				next.Generation = known.Generation
			}
		}
	}
	p.policies.Set(next)
}

func (p *provider) remove(name string) {
	for _, known := range p.policies.List().All {
		if known.Name == name {
			p.policies.Remove(known.Name)
		}
	}
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // In synctest.Test only the clock of the bubble moves.
	synctest.Wait()
}

// rest returns what is published when nothing changes any more.
func (p *provider) rest(t *rapid.T) *table.Snapshot {
	for same := 0; ; {
		before := p.Table.Current()
		p.Debouncer.WakeNow()
		synctest.Wait()
		pass(10 * time.Minute)
		now := p.Table.Current()
		if same++; !rehearsedAlike(before, now) {
			same = 0
		}
		if same == 3 {
			return now
		}
		if now.Revision > 1000 {
			t.Fatal("the engine does not come to rest")
		}
	}
}

func rehearsedAlike(a, b *table.Snapshot) bool {
	return cmp.Equal(offersOf(a.Offers), offersOf(b.Offers)) && cmp.Equal(a.Input.Grants, b.Input.Grants)
}

// offersOf returns all amounts by consumer, "" for the default offer, and class.
func offersOf(all offer.Offers) map[string]map[string]map[string]int64 {
	out := map[string]map[string]map[string]int64{}
	add := func(id string, e *offer.Entry) {
		out[id] = map[string]map[string]int64{}
		for _, o := range e.Offers {
			out[id][o.Class] = o.ByResource()
		}
	}
	for id, e := range all.Readable().All {
		add(id, e)
	}
	add("", all.Default)
	return out
}

var (
	anyID       = rapid.SampledFrom([]string{"rome", "oslo", "lima"})
	anyZone     = rapid.SampledFrom([]string{"a", "b"})
	anyQuantity = rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 30).Draw(t, "quantity")) })
	anyNames    = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"cpu", "memory", "pods", "example.com/gpu"}), 1, 3, rapid.ID)
)

func anyQuantities(t *rapid.T, label string) v1alpha1.Quantities {
	var pairs []string
	for _, name := range anyNames.Draw(t, label) {
		pairs = append(pairs, name, anyQuantity.Draw(t, name))
	}
	return kubetest.Quantities(pairs...)
}

// anyPolicy draws a valid policy of one of four names.
func anyPolicy(t *rapid.T) *v1alpha1.ResourcePolicy {
	return kubetest.Policy(fmt.Sprint("p", rapid.IntRange(0, 3).Draw(t, "policy")), func(s *v1alpha1.ResourcePolicySpec) {
		zone := kubetest.Matching(map[string]string{"zone": anyZone.Draw(t, "zone")})
		s.Class = rapid.SampledFrom([]string{"", "gold"}).Draw(t, "class")
		if s.Class != "" && rapid.IntRange(0, 2).Draw(t, "filtered") == 0 {
			s.Slices = &v1alpha1.Slices{Filter: "request.labels.team == 'a'"}
		}
		s.Priority = rapid.Int32Range(0, 1).Draw(t, "priority")
		s.UpdateThresholdPercent = new(rapid.SampledFrom([]int32{0, 5, 20}).Draw(t, "threshold"))
		s.Reclaim = rapid.SampledFrom([]v1alpha1.Reclaim{"", v1alpha1.ReclaimEvict, v1alpha1.ReclaimRetain}).Draw(t, "reclaim")
		switch rapid.IntRange(0, 3).Draw(t, "consumers") {
		case 0:
			s.Consumers = &v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{v1alpha1.ClusterID(anyID.Draw(t, "id"))}}
		case 1:
			s.Consumers = &v1alpha1.Consumers{Selector: &zone}
		}
		if rapid.IntRange(0, 7).Draw(t, "mode") == 0 {
			s.Mode = v1alpha1.ModeDryRun
		}
		switch rapid.IntRange(0, 4).Draw(t, "source") {
		case 0:
			s.Offer.Nodes, s.Offer.Fixed = nil, anyQuantities(t, "fixed")
		case 1:
			s.Offer.Nodes, s.Offer.External = nil, flatPlugin()
			s.Offer.External.OnFailure = rapid.SampledFrom([]v1alpha1.OnFailure{v1alpha1.OnFailureKeep, v1alpha1.OnFailureZero}).Draw(t, "on failure")
		default:
			s.Offer.Percent = new(v1alpha1.Percent(rapid.IntRange(1, 150).Draw(t, "percent")))
			if rapid.IntRange(0, 2).Draw(t, "peers") == 0 {
				s.Offer.Nodes, s.Offer.Peers = nil, &v1alpha1.Peers{Depth: new(rapid.Int32Range(1, 2).Draw(t, "depth"))}
				if rapid.Bool().Draw(t, "named") {
					s.Offer.Peers.ClusterIDs = []v1alpha1.ClusterID{"milan"}
				}
			} else if rapid.Bool().Draw(t, "zoned") {
				s.Offer.Nodes.Selector = &zone
			}
			if rapid.Bool().Draw(t, "reserved") {
				s.Offer.Reserve = anyQuantities(t, "reserve")
			}
		}
		if rapid.Bool().Draw(t, "limited") {
			s.Offer.Max = anyQuantities(t, "max")
		}
		if rapid.Bool().Draw(t, "overridden") {
			s.Overrides = []v1alpha1.Override{{
				Consumers: v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{v1alpha1.ClusterID(anyID.Draw(t, "override"))}},
				Offer:     v1alpha1.OverrideOffer{Fixed: anyQuantities(t, "override fixed")},
			}}
		}
	})
}

// anyPolicy draws a policy, with a threshold only where there are no slices: the operator publishes the
// states between its answers, which a threshold may keep.
func (p *provider) anyPolicy(t *rapid.T) *v1alpha1.ResourcePolicy {
	object := anyPolicy(t)
	if len(p.slices) > 0 {
		object.Spec.UpdateThresholdPercent = new(int32)
	}
	return object
}

// anySlices draws requests in the class of some policies.
func anySlices(t *rapid.T) (all []grant.Slice) {
	for i := range rapid.IntRange(1, 4).Draw(t, "slices") {
		all = append(all, grant.Slice{
			Key: fmt.Sprint("s", i), Consumer: anyID.Draw(t, "asks"), Class: "gold", Created: int64(i),
			Request: rapid.MapOfN(rapid.SampledFrom([]string{"cpu", "memory", "pods"}), rapid.Int64Range(0, 20_000), 1, 3).Draw(t, "request"),
			Labels:  map[string]string{"team": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "team")},
		})
	}
	return all
}

// grantsOf returns what each slice has, by name.
func grantsOf(s *table.Snapshot) map[string]map[string]string {
	all := map[string]map[string]string{}
	for x := range s.Slices.All {
		all[x.Name] = texts(x.After())
	}
	return all
}

// live lets something happen to the cluster.
func (p *provider) live(t *rapid.T) {
	name, key := fmt.Sprint("n", rapid.IntRange(0, 3).Draw(t, "node")), fmt.Sprint("pod", rapid.IntRange(0, 7).Draw(t, "pod"))
	amounts := func(label string, most int64) capacity.Amounts {
		return rapid.MapOf(rapid.SampledFrom([]string{"cpu", "memory", "example.com/gpu"}), rapid.Int64Range(0, most)).Draw(t, label)
	}
	switch rapid.IntRange(0, 6).Draw(t, "event") {
	case 0, 1:
		allocatable := amounts("allocatable", 40_000)
		allocatable[capacity.CPU], allocatable[capacity.Pods] = rapid.Int64Range(1, 40_000).Draw(t, "cpu"), 10
		n := capacity.Node{
			Name: name, Labels: map[string]string{"zone": anyZone.Draw(t, "zone")}, Allocatable: allocatable,
			State:   rapid.SampledFrom([]capacity.NodeState{capacity.Ready, capacity.Ready, capacity.Ready, capacity.Cordoned}).Draw(t, "state"),
			Deleted: rapid.IntRange(0, 9).Draw(t, "deleted") == 0,
		}
		if n.Virtual = rapid.IntRange(0, 2).Draw(t, "virtual") == 0; n.Virtual {
			n.Peer, n.Depth = rapid.SampledFrom([]string{"milan", "rome", ""}).Draw(t, "peer"), rapid.SampledFrom([]int{0, 0, 1, capacity.UnknownDepth}).Draw(t, "depth")
			p.Ledger.SetGroups([]capacity.NodeGroup{{Key: "a/s", Nodes: []string{"n0", "n1"}, Peer: rapid.SampledFrom([]string{"milan", ""}).Draw(t, "giver"), Given: amounts("given", 40_000)}})
		}
		p.Ledger.SetNode(n)
	case 2:
		p.Ledger.DeletePod(key)
	case 3, 4:
		consumer := rapid.SampledFrom([]string{"", "", "rome", "oslo"}).Draw(t, "consumer")
		p.Ledger.SetPod(capacity.Pod{Key: key, Node: name, Consumer: consumer, Requests: amounts("requests", 3000)})
	case 5:
		p.apply(p.anyPolicy(t))
	case 6:
		p.remove(fmt.Sprint("p", rapid.IntRange(0, 3).Draw(t, "removed")))
	}
	p.Debouncer.WakeNow()
}

// anyChange draws a change that makes sense for the provider.
func (p *provider) anyChange(t *rapid.T) *rest.Change {
	c, touched := &rest.Change{}, map[string]bool{}
	for range rapid.IntRange(0, 2).Draw(t, "applied") {
		if object := p.anyPolicy(t); !touched[object.Name] {
			c.Apply, touched[object.Name] = append(c.Apply, *object), true
		}
	}
	for _, known := range p.policies.List().All {
		if !touched[known.Name] && rapid.IntRange(0, 3).Draw(t, "deleted") == 0 {
			c.Delete = append(c.Delete, known.Name)
		}
	}
	nodes := slices.SortedFunc(slices.Values(p.Ledger.Copy().Nodes), func(a, b capacity.Node) int { return slices.Compare([]string{a.Name}, []string{b.Name}) })
	for _, n := range nodes {
		if rapid.IntRange(0, 3).Draw(t, "drained") == 0 {
			c.Drain = append(c.Drain, n.Name)
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "more nodes") == 0 {
		added := rest.AddedNodes{Count: rapid.IntRange(1, 2).Draw(t, "count"), Allocatable: anyQuantities(t, "added"), Labels: map[string]string{"zone": anyZone.Draw(t, "zone")}}
		c.AddNodes = append(c.AddNodes, added)
	}
	return c
}

// makeChange makes the change for real.
func (p *provider) makeChange(c *rest.Change, parsed *rehearse.Change) {
	for i := range c.Apply {
		p.apply(&c.Apply[i])
	}
	for _, name := range c.Delete {
		p.remove(name)
	}
	for _, name := range c.Drain {
		p.Ledger.DeleteNode(name)
		for pod := range p.Ledger.Copy().Pods {
			if pod.Node == name {
				p.Ledger.DeletePod(pod.Key)
			}
		}
	}
	for _, n := range parsed.AddNodes {
		p.Ledger.SetNode(n)
	}
}

// run starts the engine until the test of a bubble ends.
func (p *provider) run(t *rapid.T) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- engine.New(p.Config).Start(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		test.Check(t, <-ended)
	}
}

func never() bool { return false }

// carriedOut returns the offers before with what a simulation changes of them.
func carriedOut(t *rapid.T, before offer.Offers, s *rest.Simulation) map[string]map[string]map[string]string {
	all := map[string]map[string]map[string]string{}
	for id, classes := range offersOf(before) {
		all[id] = map[string]map[string]string{}
		for class, amounts := range classes {
			all[id][class] = texts(amounts)
		}
	}
	for _, c := range s.Offers {
		if all[c.Consumer] == nil {
			all[c.Consumer] = map[string]map[string]string{}
			for class, amounts := range offersOf(before)[""] { // What it reads until it is known.
				all[c.Consumer][class] = texts(amounts)
			}
		}
		if all[c.Consumer][c.Class] == nil {
			all[c.Consumer][c.Class] = map[string]string{}
		}
		amounts := all[c.Consumer][c.Class]
		if amounts[c.Resource] != c.Now {
			t.Fatalf("%+v, where %q is published", c, amounts[c.Resource])
		}
		amounts[c.Resource] = c.Then
		if c.Then == "" {
			delete(amounts, c.Resource)
		}
	}
	for _, classes := range all {
		maps.DeleteFunc(classes, func(_ string, amounts map[string]string) bool { return len(amounts) == 0 })
	}
	return all
}

func texts(amounts map[string]int64) map[string]string {
	out := map[string]string{}
	for name, amount := range amounts {
		out[name] = capacity.Canonical(name, amount)
	}
	return out
}

// simulate rehearses a change of what is published, and of the same as a file, which must agree.
func (p *provider) simulate(t *rapid.T, c *rest.Change) (*rehearse.Change, *rest.Simulation) {
	s := p.Table.Current()
	w := rehearse.Of(s, p.Ledger.Copy())
	w.Now = time.Now()
	parsed, problems, err := ChangeOf(c, &w, nil)
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v, %v", err, problems)
	}
	live := SimulationOf(rehearse.Rehearse(&w, parsed, never), rest.Evaluated{}, problems, nil)

	var file bytes.Buffer
	test.Must(t, Encode(&file, s, p.Ledger.Copy(), "test", nil))
	if text := file.Bytes(); !json.Valid(text) {
		t.Fatalf("not JSON: %s", text)
	}
	decoded, of, err := Decode(&file)
	if err != nil || of.Revision != s.Revision {
		t.Fatalf("revision %d: %v", of.Revision, err)
	}
	decoded.Now = w.Now
	reparsed, _, err := ChangeOf(c, decoded, nil)
	test.Must(t, err)
	offline := SimulationOf(rehearse.Rehearse(decoded, reparsed, never), rest.Evaluated{}, nil, nil)
	if diff := cmp.Diff(live, offline); diff != "" {
		t.Fatalf("the operator (-) and the file (+) differ:\n%s", diff)
	}
	return parsed, live
}

// inBubble checks a property that lets time pass. A failure is a panic to rapid, and has to leave the
// bubble first. A draw that rapid gives up is one too, and rapid tells them apart by their lines.
func inBubble(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	rapid.Check(t, func(drawn *rapid.T) {
		var failure any
		synctest.Test(t, func(*testing.T) {
			defer func() { failure = recover() }()
			property(drawn)
		})
		switch {
		case failure == nil:
		case drawn.Failed():
			panic(failure)
		default:
			panic(failure)
		}
	})
}

func TestWhatIsRehearsedIsWhatIsPublishedThen(t *testing.T) {
	inBubble(t, func(t *rapid.T) { rehearsedThenPublished(t, nil) })
}

func TestWhatIsRehearsedOfSlicesIsWhatTheyAreGrantedThen(t *testing.T) {
	inBubble(t, func(t *rapid.T) { rehearsedThenPublished(t, anySlices(t)) })
}

// rehearsedThenPublished rehearses a change, makes it, and compares what is published then.
func rehearsedThenPublished(t *rapid.T, asked []grant.Slice) {
	p := newProvider()
	p.slices, p.answers = asked, anyAnswers(t)
	for _, id := range rapid.SliceOfNDistinct(anyID, 0, 3, rapid.ID).Draw(t, "consumers") {
		p.consumers = append(p.consumers, offer.Consumer{ID: id, Labels: map[string]string{"zone": anyZone.Draw(t, "consumer zone")}})
	}
	slices.SortFunc(p.consumers, func(a, b offer.Consumer) int { return slices.Compare([]string{a.ID}, []string{b.ID}) })
	end := p.run(t)
	defer end()
	for range rapid.IntRange(1, 12).Draw(t, "events") {
		p.live(t)
		pass(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
	}
	before := p.rest(t)
	change := p.anyChange(t)
	parsed, said := p.simulate(t, change)
	leave := slices.ContainsFunc(said.Unknown, func(line string) bool { return strings.HasPrefix(line, "where the pods of drained nodes run then") })
	if leave && len(change.Drain) == 0 {
		t.Fatalf("no node is drained, but %v", said.Unknown)
	}
	if joined := len(change.AddNodes) > 0; len(said.Unknown) > 2+len(change.AddNodes) || joined != slices.Contains(said.Unknown, daemons) {
		t.Fatalf("unknown: %v, and nodes join: %t", said.Unknown, joined)
	}
	p.makeChange(change, parsed)
	then := p.rest(t)

	want, unchanged := carriedOut(t, before.Offers, said), carriedOut(t, before.Offers, &rest.Simulation{})
	for id, classes := range offersOf(then.Offers) {
		got := map[string]map[string]string{}
		for class, amounts := range classes {
			got[class] = texts(amounts)
		}
		said := want[id]
		if said == nil {
			said = unchanged[""] // It was not known, and reads the same as before.
		}
		if diff := cmp.Diff(said, got); diff != "" {
			t.Fatalf("%q (-rehearsed +published):\n%s", id, diff)
		}
	}
	granted := grantsOf(before)
	for _, c := range said.Slices {
		granted[c.Name] = map[string]string{}
		for name, q := range c.Then {
			granted[c.Name][name] = q.String()
		}
	}
	if diff := cmp.Diff(granted, grantsOf(then)); diff != "" {
		t.Fatalf("grants (-rehearsed +published):\n%s", diff)
	}
}
