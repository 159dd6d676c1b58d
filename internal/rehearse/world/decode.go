package world

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/kube/jsonstream"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/table"
)

// Decode reads a rest.World element by element. What it says of the evaluation is in the second result.
func Decode(from io.Reader) (*rehearse.World, rest.Evaluated, error) {
	d := decoder{
		json: jsonstream.NewUnbounded(from), ledger: capacity.NewLedger(), answers: answers{},
		entries: map[string]*offer.Entry{}, departed: map[string]offer.Departed{},
	}
	if err := d.read(); err != nil {
		return nil, rest.Evaluated{}, fmt.Errorf("reading the snapshot: %w", err)
	}
	return d.world(), d.of, nil
}

// decoder collects a world.
type decoder struct {
	json    *jsonstream.Reader
	version int
	of      rest.Evaluated
	w       rehearse.World
	ledger  *capacity.Ledger
	// versions holds the versions of the valid policies, by name.
	versions map[string]string
	entries  map[string]*offer.Entry
	departed map[string]offer.Departed
	anyone   *offer.Entry
	levels   map[string]rest.Amounts
	// problems holds the problems of external sources.
	problems map[string]string
	answers  answers
	requests rehearse.Requests
	groups   []capacity.NodeGroup
}

func (d *decoder) read() error {
	err := object(d.json, func(name string) error {
		if d.version == 0 && name != "version" {
			return errors.New("a snapshot begins with its version: write the output of kubectl proffer snapshot")
		}
		return d.member(name)
	})
	if err == nil && d.version == 0 {
		return errors.New("it is empty: write the output of kubectl proffer snapshot")
	}
	return err
}

// object reads an object member by member.
func object(r *jsonstream.Reader, member func(name string) error) error {
	return r.Object(func(name string) error {
		if err := member(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// member reads the value of one member. Members that it does not know are skipped.
func (d *decoder) member(name string) error {
	switch name {
	case "version":
		if err := d.json.Decode(&d.version); err != nil {
			return err
		}
		if d.version != rest.WorldVersion {
			return fmt.Errorf("it is %d, and this program reads %d: use the kubectl-proffer of the operator's version",
				d.version, rest.WorldVersion)
		}
		return nil
	case "revision":
		return d.json.Decode(&d.of.Revision)
	case "time":
		return d.json.Decode(&d.of.Time)
	case "filters":
		return d.json.Decode(&d.w.Filters)
	case "policies":
		return jsonstream.List(d.json, d.policy)
	case "consumers":
		return jsonstream.List(d.json, func(c *rest.WorldConsumer) error {
			d.w.Consumers = append(d.w.Consumers, offer.Consumer{ID: c.ClusterID, Labels: c.Labels})
			return nil
		})
	case "offers":
		return jsonstream.List(d.json, d.offer)
	case "levels":
		return d.json.Decode(&d.levels)
	case "unavailable":
		return d.json.Decode(&d.problems)
	case "answers":
		return jsonstream.List(d.json, d.answers.add)
	case "slices":
		return jsonstream.List(d.json, d.slice)
	case "nodeGroups":
		return jsonstream.List(d.json, func(g *rest.WorldNodeGroup) error {
			d.groups = append(d.groups, groupOf(g))
			return nil
		})
	case "nodes":
		return jsonstream.List(d.json, d.node)
	case "pods":
		return jsonstream.List(d.json, func(p *rest.WorldPod) error {
			d.ledger.SetPod(podOf(p))
			return nil
		})
	}
	return nil
}

// storedPolicy is a ResourcePolicy with the part of its status that policyObject writes. The rest is not
// decoded: see appliedPolicy.
type storedPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              v1alpha1.ResourcePolicySpec `json:"spec"`
	Status            struct {
		ObservedGeneration int64                   `json:"observedGeneration"`
		Conditions         []metav1.Condition      `json:"conditions"`
		OfferedResources   []v1alpha1.ResourceName `json:"offeredResources"`
	} `json:"status"`
}

func (d *decoder) policy(stored *storedPolicy) error {
	object := &v1alpha1.ResourcePolicy{TypeMeta: stored.TypeMeta, ObjectMeta: stored.ObjectMeta, Spec: stored.Spec}
	object.Status.ObservedGeneration, object.Status.Conditions = stored.Status.ObservedGeneration, stored.Status.Conditions
	object.Status.OfferedResources = stored.Status.OfferedResources
	if err := checkObject(object); err != nil {
		return err
	}
	p := policy.Of(object, nil)
	d.w.Policies = append(d.w.Policies, p)
	if p.Parsed != nil {
		if d.versions == nil {
			d.versions = map[string]string{}
		}
		d.versions[p.Name] = p.Parsed.Version
	}
	return nil
}

// offer takes an offer. Policies come before offers.
func (d *decoder) offer(o *rest.WorldOffer) error {
	entry := d.entryFor(o)
	if o.None {
		return nil
	}
	r := &offer.Offer{
		Class: o.Class, Policy: o.Policy, Override: -1, Amounts: offer.SortedAmounts(amountsOf(o.Resources)),
		LastPolicy: o.LastPolicy, Reclaim: policy.Reclaims[o.Reclaim],
	}
	switch {
	case o.Moved != nil:
		r.Moved = o.Moved.Unix()
	case o.Policy == "": // An operator that does not write it owes zeros for ever.
		r.Moved = d.of.Time.Unix()
	}
	if !r.Withdrawn() {
		r.Version = d.versions[o.Policy]
	}
	if o.Override != nil {
		r.Override = *o.Override
	}
	if len(r.Amounts) == 0 {
		return fmt.Errorf("an offer to %q in class %q has no resources", o.ClusterID, o.Class)
	}
	entry.Offers = append(entry.Offers, r)
	return nil
}

// entryFor returns the entry that an offer is of.
func (d *decoder) entryFor(o *rest.WorldOffer) *offer.Entry {
	if o.Anyone {
		if d.anyone == nil {
			d.anyone = &offer.Entry{}
		}
		return d.anyone
	}
	if o.Departed != nil {
		gone, listed := d.departed[o.ClusterID]
		if !listed {
			gone = offer.Departed{ID: o.ClusterID, Entry: &offer.Entry{}, Since: o.Departed.Unix()}
			d.departed[o.ClusterID] = gone
		}
		return gone.Entry
	}
	if d.entries[o.ClusterID] == nil {
		d.entries[o.ClusterID] = &offer.Entry{}
	}
	return d.entries[o.ClusterID]
}

func (d *decoder) slice(s *rest.WorldSlice) error {
	g := grant.Slice{
		Key: s.Namespace + "/" + s.Name, Consumer: s.Consumer, Class: s.Class, Created: s.Created.Unix(),
		Request: amountsOf(s.Asked), Labels: s.Labels, Used: amountsOf(s.Used),
		Nodes: s.Nodes, Creator: s.Creator,
		GrantedBy: offer.JoinGranters(offer.GranterTexts{Policies: s.GrantedBy, Seats: s.Seat}),
		GrantedIn: s.GrantedIn, Reclaim: policy.Reclaims[s.Reclaim],
		Recorded: amountsOf(s.Recorded), Falling: amountsOf(s.Falling), Pinned: s.Fixed, Frozen: s.Frozen, Invalid: s.Invalid,
	}
	if s.Fixed {
		g.Key += "/" + s.UID
	}
	if s.Accepted {
		g.Granted = amountsOf(s.Granted)
	}
	d.requests = append(d.requests, table.DecidedSlice{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, Slice: g, Problem: s.Problem,
	})
	return nil
}

func (d *decoder) node(n *rest.WorldNode) error {
	parsed, err := NodeOf(n)
	if err != nil {
		return err
	}
	d.ledger.SetNode(parsed)
	return nil
}

// virtualState is the state of virtual nodes in snapshots of operators that did not offer them.
const virtualState = "Virtual"

// NodeOf parses a node of a World.
func NodeOf(n *rest.WorldNode) (capacity.Node, error) {
	out := capacity.Node{
		Name: n.Name, Labels: n.Labels, Allocatable: amountsOf(n.Allocatable), Grace: n.Grace, Deleted: n.Deleted,
	}
	known := false
	for state, word := range states {
		if word == n.State {
			out.State, known = state, true
		}
	}
	if n.State == virtualState {
		out.Virtual, out.Depth, known = true, capacity.UnknownDepth, true
	}
	if n.Peer != nil {
		out.Virtual, out.Peer, out.Depth = true, n.Peer.ClusterID, capacity.UnknownDepth
		if n.Peer.Depth != nil {
			out.Depth = *n.Peer.Depth
		}
	}
	if !known {
		return out, fmt.Errorf("node %s has the state %q", n.Name, n.State)
	}
	for _, text := range n.Taints {
		// As capacity.Taint.String writes it.
		colon := strings.LastIndexByte(text, ':')
		if colon < 0 {
			return out, fmt.Errorf("node %s has the taint %q", n.Name, text)
		}
		key, value, _ := strings.Cut(text[:colon], "=")
		out.Taints = append(out.Taints, capacity.Taint{Key: key, Value: value, Effect: text[colon+1:]})
	}
	return out, nil
}

// groupOf parses a group of nodes of a World.
func groupOf(g *rest.WorldNodeGroup) capacity.NodeGroup {
	of := capacity.NodeGroup{Key: g.Name, Nodes: g.Nodes, Peer: g.ClusterID}
	if g.Given != nil {
		of.Given = amountsOf(*g.Given)
	}
	return of
}

// podOf parses a pod of a World.
func podOf(p *rest.WorldPod) capacity.Pod {
	return capacity.Pod{
		Key: p.UID, Node: p.Node, Consumer: p.Consumer, Creator: p.Creator, Requests: amountsOf(p.Requests),
		OfClaim: p.Claim,
	}
}

// LedgerOf returns the account of the nodes and pods of a World, for these selections.
func LedgerOf(w *rest.World, selections []capacity.Selection) (*capacity.Ledger, error) {
	l := capacity.NewLedger()
	groups := make([]capacity.NodeGroup, len(w.NodeGroups))
	for i := range w.NodeGroups {
		groups[i] = groupOf(&w.NodeGroups[i])
	}
	l.SetGroups(groups)
	for i := range w.Nodes {
		n, err := NodeOf(&w.Nodes[i])
		if err != nil {
			return nil, err
		}
		l.SetNode(n)
	}
	for i := range w.Pods {
		l.SetPod(podOf(&w.Pods[i]))
	}
	l.View(selections) // From it on, virtual nodes count if one of the selections is of peers.
	return l, nil
}

// world returns what was collected.
func (d *decoder) world() *rehearse.World {
	w := &d.w
	d.ledger.SetGroups(d.groups)
	w.Now, w.Content = d.of.Time, d.ledger.Copy()
	if w.Now.IsZero() {
		w.Now = time.Unix(0, 0)
	}
	slices.SortFunc(w.Policies, func(a, b table.Policy) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(w.Consumers, func(a, b offer.Consumer) int { return strings.Compare(a.ID, b.ID) })
	if d.anyone != nil {
		d.publish(w)
	}
	if len(d.requests) > 0 {
		w.Slices = d.requests
	}
	d.answers.explain(d.problems)
	w.External = d.answers
	given := make(map[string]capacity.Amounts, len(d.levels))
	for name, amounts := range d.levels {
		given[name] = amountsOf(amounts)
	}
	w.Levels = offer.StabilizerAt(table.NewPolicyList(w.Policies).Valid, given)
	return w
}

// publish adds the offers to the world.
func (d *decoder) publish(w *rehearse.World) {
	w.Offers = offer.Offers{Entries: offer.EntriesOf(d.entries), Default: d.anyone}
	for _, gone := range d.departed {
		w.Offers.Departed = append(w.Offers.Departed, gone)
	}
	slices.SortFunc(w.Offers.Departed, func(a, b offer.Departed) int { return strings.Compare(a.ID, b.ID) })
	byClass := func(a, b *offer.Offer) int { return strings.Compare(a.Class, b.Class) }
	slices.SortFunc(d.anyone.Offers, byClass)
	for _, entry := range w.Offers.Readable().All {
		slices.SortFunc(entry.Offers, byClass)
		for _, o := range entry.Offers {
			for _, a := range o.Amounts {
				w.Resources = append(w.Resources, a.Resource)
			}
		}
	}
	slices.Sort(w.Resources)
	w.Resources = slices.Compact(w.Resources)
}
