package world

import (
	"bufio"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/visible"
)

// Encode writes the world of a snapshot as a rest.World. It holds one element of a list at a time. The
// content is a copy of the ledger that the snapshot was evaluated from. The version is the operator's,
// and filters are the names of its filters in Go.
func Encode(to io.Writer, s *table.Snapshot, content *capacity.Copy, version string, filters []string) error {
	e := encoder{to: bufio.NewWriter(to)}
	e.text("{")
	e.field("version", rest.WorldVersion)
	e.field("revision", s.Revision)
	e.field("time", s.Time)
	e.field("proffer", version)
	if len(filters) > 0 {
		e.field("filters", filters)
	}
	e.list("policies", objects(pointers(s.Policies), policyObject))
	e.list("consumers", objects(pointers(s.Input.Consumers), consumerObject))
	e.list("offers", func(yield func(any) bool) { yieldAllOffers(s, yield) })
	if levels := levelsOf(s.Input.Levels); len(levels) > 0 {
		e.field("levels", levels)
	}
	e.encodeExternal(s.Input.External)
	decided := func(func(table.DecidedSlice) bool) {}
	if s.Slices != nil {
		decided = s.Slices.All
	}
	e.list("slices", objects(decided, sliceObject))
	if len(content.Groups) > 0 {
		e.list("nodeGroups", objects(pointers(content.Groups), groupObject))
	}
	byName := slices.SortedFunc(slices.Values(content.Nodes), func(a, b capacity.Node) int {
		return strings.Compare(a.Name, b.Name)
	})
	e.list("nodes", objects(pointers(byName), nodeObject))
	e.list("pods", objects(content.Pods, podObject))
	e.text("}\n")
	if e.err != nil {
		return e.err
	}
	return e.to.Flush()
}

// encoder writes the members of one object. The first error ends it.
type encoder struct {
	to     *bufio.Writer
	fields int
	err    error
}

func (e *encoder) text(s string) {
	if e.err == nil {
		_, e.err = e.to.WriteString(s)
	}
}

func (e *encoder) value(v any) {
	text, err := json.Marshal(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.text(string(visible.JSON(text)))
}

func (e *encoder) name(name string) {
	if e.fields++; e.fields > 1 {
		e.text(",")
	}
	e.value(name)
	e.text(":")
}

func (e *encoder) field(name string, value any) {
	e.name(name)
	e.value(value)
}

// list writes the elements as they come, each on a line of its own.
func (e *encoder) list(name string, elements iter.Seq[any]) {
	e.name(name)
	separator := "[\n"
	for element := range elements {
		e.text(separator)
		if e.value(element); e.err != nil {
			return
		}
		separator = ",\n"
	}
	if separator == "[\n" {
		e.text("[")
	}
	e.text("]")
}

// objects yields the object of each element.
func objects[T, O any](all iter.Seq[T], object func(T) O) iter.Seq[any] {
	return func(yield func(any) bool) {
		for element := range all {
			if !yield(object(element)) {
				return
			}
		}
	}
}

// pointers yields a pointer to each element.
func pointers[T any](all []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range all {
			if !yield(&all[i]) {
				return
			}
		}
	}
}

// policyObject returns a policy with the part of its status that matters: what it has offered, and
// whether its names were accepted before.
func policyObject(p *table.Policy) *v1alpha1.ResourcePolicy {
	object := *p.Object
	for _, name := range p.Offered {
		object.Status.OfferedResources = append(object.Status.OfferedResources, v1alpha1.ResourceName(name))
	}
	if p.Parsed != nil && !p.Parsed.DryRun {
		object.Status.ObservedGeneration = p.Generation
		object.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonOffering,
			ObservedGeneration: p.Generation,
		}}
	}
	return &object
}

func consumerObject(c *offer.Consumer) rest.WorldConsumer {
	return rest.WorldConsumer{ClusterID: c.ID, Labels: c.Labels}
}

func podObject(p capacity.Pod) rest.WorldPod {
	return rest.WorldPod{
		UID: p.Key, Node: p.Node, Consumer: p.Consumer, Creator: p.Creator, Requests: Amounts(p.Requests), Claim: p.OfClaim,
	}
}

// yieldAllOffers yields the offers of each consumer that is known or has departed, and the default offer.
func yieldAllOffers(s *table.Snapshot, yield func(any) bool) {
	for id, entry := range s.Entries.All {
		if !yieldOffers(rest.WorldOffer{ClusterID: id}, entry, yield) {
			return
		}
	}
	for _, d := range s.Departed {
		if !yieldOffers(rest.WorldOffer{ClusterID: d.ID, Departed: timeOf(d.Since)}, d.Entry, yield) {
			return
		}
	}
	yieldOffers(rest.WorldOffer{Anyone: true}, s.Default, yield)
}

// yieldOffers yields the offers of an entry, and reports whether to go on.
func yieldOffers(to rest.WorldOffer, entry *offer.Entry, yield func(any) bool) bool {
	if len(entry.Offers) == 0 {
		to.None = true
		return yield(to)
	}
	for _, o := range entry.Offers {
		x := to
		x.Class, x.Policy, x.Resources = o.Class, o.Policy, Amounts(o.ByResource())
		x.LastPolicy, x.Reclaim = o.LastPolicy, reclaimText(o.Reclaim)
		if o.Override >= 0 {
			x.Override = &o.Override
		}
		if o.Withdrawn() {
			x.Moved = timeOf(o.Moved)
		}
		if !yield(x) {
			return false
		}
	}
	return true
}

func timeOf(seconds int64) *time.Time { return new(time.Unix(seconds, 0).UTC()) }

func levelsOf(levels map[string]capacity.Amounts) map[string]rest.Amounts {
	out := make(map[string]rest.Amounts, len(levels))
	for policy, amounts := range levels {
		out[policy] = Amounts(amounts)
	}
	maps.DeleteFunc(out, func(_ string, amounts rest.Amounts) bool { return amounts == nil })
	return out
}

func sliceObject(s table.DecidedSlice) rest.WorldSlice {
	by := offer.SplitGranters(offer.WithoutNodes(s.GrantedBy))
	return rest.WorldSlice{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, Consumer: s.Consumer, Class: s.Class,
		Created: time.Unix(s.Created, 0).UTC(), Asked: Amounts(s.Request), Labels: s.Labels, Accepted: s.Slice.Granted != nil,
		Granted: Amounts(s.Slice.Granted), Used: Amounts(s.Used), GrantedIn: s.GrantedIn,
		Nodes: s.Slice.Nodes, Creator: s.Slice.Creator, GrantedBy: by.Policies, Seat: by.Seats,
		Recorded: Amounts(s.Recorded), Falling: Amounts(s.Falling),
		Reclaim: reclaimText(s.Reclaim), Fixed: s.Pinned || s.Unwritable, Frozen: s.Frozen, Invalid: s.Invalid,
		Problem: s.Problem,
	}
}

// states are the words for the states of nodes.
var states = map[capacity.NodeState]string{
	capacity.NotReady: "NotReady", capacity.Ready: "Ready", capacity.Cordoned: "Cordoned",
}

func nodeObject(n *capacity.Node) rest.WorldNode {
	out := rest.WorldNode{
		Name: n.Name, Labels: n.Labels, State: states[n.State], Allocatable: Amounts(n.Allocatable), Grace: n.Grace,
		Deleted: n.Deleted,
	}
	if n.Virtual {
		out.Peer = &rest.WorldPeer{ClusterID: n.Peer}
		if n.Depth != capacity.UnknownDepth {
			out.Peer.Depth = &n.Depth
		}
	}
	for _, t := range n.Taints {
		out.Taints = append(out.Taints, t.String())
	}
	return out
}

func groupObject(g *capacity.NodeGroup) rest.WorldNodeGroup {
	out := rest.WorldNodeGroup{Name: g.Key, Nodes: g.Nodes, ClusterID: g.Peer}
	if g.Given != nil {
		given := rest.Amounts{}
		maps.Copy(given, Amounts(g.Given))
		out.Given = &given
	}
	return out
}

// Unknown lists what a World does not hold, for Simulation.Unknown.
var Unknown = []string{
	"grants that the operator was writing, and records of what slices held before",
	"the Tenants of consumers: a slice that waited for one is not answered",
	"for how long a pool has been below or above its level",
	"whether nodes in their grace get back what they have lost: they count as before",
}

// UnknownOfCluster lists what the objects of a cluster do not hold, for Simulation.Unknown.
var UnknownOfCluster = []string{
	"amounts that a running operator keeps within a threshold, and for how long a pool has been below or above its level",
	"grants that a running operator is writing",
	"filters in Go, of an operator with plugins",
	"devices that drivers publish in ResourceSlices",
}

// UnknownFilters says that a world does not hold the answers of these filters, for Simulation.Unknown.
func UnknownFilters(names []string) []string {
	var unknown []string
	for _, name := range names {
		unknown = append(unknown, "the filter "+name+", which is part of the operator: what it leaves out counts here")
	}
	return unknown
}
