package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/rehearse/world"
)

// pool is the selection of a policy of nodes.
type pool struct {
	policy string
	capacity.ShapeQuery
}

// poolsOf returns the pools of the policies that are valid.
func poolsOf(world *rest.World) []pool {
	var pools []pool
	for i := range world.Policies {
		parsed, _, errs := policy.Parse(&world.Policies[i])
		if len(errs) > 0 || parsed.Nodes == nil {
			continue
		}
		selection := offer.Selections([]offer.Policy{*parsed})[0]
		pools = append(pools, pool{parsed.Name, capacity.ShapeQuery{Selection: selection, Admits: parsed.Admits}})
	}
	return pools
}

// nodeUse holds the requests of pods on each node: of this cluster's own pods, and of consumers' pods.
type nodeUse struct{ local, used perKey[string] }

func useOf(pods []rest.WorldPod) nodeUse {
	u := nodeUse{perKey[string]{}, perKey[string]{}}
	one := resource.MustParse("1")
	for i := range pods {
		p := &pods[i]
		of := u.local
		if p.Consumer != "" {
			of = u.used
		}
		add(of.sumsFor(p.Node), p.Requests)
		if !p.Claim {
			add(of.sumsFor(p.Node), rest.Amounts{capacity.Pods: one})
		}
	}
	return u
}

// nodeRow is one resource of a node.
type nodeRow struct {
	Node        string             `json:"node"`
	State       string             `json:"state"`
	Resource    string             `json:"resource"`
	Allocatable *resource.Quantity `json:"allocatable"`
	Local       *resource.Quantity `json:"local"`
	Used        *resource.Quantity `json:"used"`
	// Pools are the policies that offer the node.
	Pools []string `json:"pools,omitempty"`
}

// totalRow is the sum of one resource over the nodes that are in some pool.
type totalRow struct {
	Resource    string             `json:"resource"`
	Allocatable *resource.Quantity `json:"allocatable"`
	Local       *resource.Quantity `json:"local"`
	Used        *resource.Quantity `json:"used"`
	Offered     *resource.Quantity `json:"offered"`
	// OfferedPercent is the part that is offered, absent if no node has the resource.
	OfferedPercent *int `json:"offeredPercent,omitempty"`
}

// shapeRow counts nodes of a policy by what is free on each for one more pod.
type shapeRow struct {
	Policy string       `json:"policy"`
	Nodes  int          `json:"nodes"`
	Free   rest.Amounts `json:"free"`
}

// shapeRows returns the shapes of each policy, the largest first.
func shapeRows(snapshot *rest.World) ([]shapeRow, error) {
	pools, rows := poolsOf(snapshot), []shapeRow{}
	queries, selections := make([]capacity.ShapeQuery, len(pools)), make([]capacity.Selection, len(pools))
	for i, p := range pools {
		queries[i], selections[i] = p.ShapeQuery, p.Selection
	}
	ledger, err := world.LedgerOf(snapshot, selections)
	if err != nil {
		return nil, fmt.Errorf("reading the operator's snapshot: %w", err)
	}
	for i, shapes := range ledger.Shapes(queries) {
		for _, shape := range shapes.List[:min(len(shapes.List), capacity.MaxShapes)] {
			rows = append(rows, shapeRow{pools[i].policy, shape.Nodes, world.Amounts(shape.Free)})
		}
	}
	return rows, nil
}

func shapesTable(rows []shapeRow, format string) *output.Table {
	t := &output.Table{Header: []string{"POLICY", "NODES", "FREE-ON-EACH"}}
	for _, r := range rows {
		t.Add(r.Policy, strconv.Itoa(r.Nodes), output.Pairs(output.Notation(format, "").Lists(r.Free)[0]))
	}
	return t
}

// nodeRows returns a row for each node and resource, and the sums.
func nodeRows(offers *rest.Offers, snapshot *rest.World) (nodes []nodeRow, total []totalRow, err error) {
	nodes, total = []nodeRow{}, []totalRow{}
	pools, use := poolsOf(snapshot), useOf(snapshot.Pods)
	allocatable, local, used := rest.Amounts{}, rest.Amounts{}, rest.Amounts{}
	for i := range snapshot.Nodes {
		n := &snapshot.Nodes[i]
		parsed, err := world.NodeOf(n)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the operator's snapshot: %w", err)
		}
		in := poolsWith(pools, &parsed)
		for _, name := range resources(n.Allocatable) {
			row := nodeRow{
				Node: n.Name, State: stateOf(n), Resource: name, Allocatable: n.Allocatable.Of(name),
				Local: use.local[n.Name].OrZero(name), Used: use.used[n.Name].OrZero(name), Pools: in,
			}
			if slices.ContainsFunc([]*resource.Quantity{row.Allocatable, row.Local, row.Used}, positive) {
				nodes = append(nodes, row)
			}
		}
		if len(in) > 0 {
			add(allocatable, n.Allocatable)
			add(local, use.local[n.Name])
			add(used, use.used[n.Name])
		}
	}
	offered := rest.Amounts{}
	for i := range offers.Consumers {
		for _, o := range offers.Consumers[i].Offers {
			add(offered, o.Resources)
		}
	}
	for _, name := range resources(allocatable, offered) {
		row := totalRow{
			Resource: name, Allocatable: allocatable.OrZero(name), Local: local.OrZero(name),
			Used: used.OrZero(name), Offered: offered.OrZero(name),
		}
		row.OfferedPercent = percent(row.Offered, row.Allocatable)
		if positive(row.Allocatable) || positive(row.Offered) {
			total = append(total, row)
		}
	}
	return nodes, total, nil
}

func nodesTable(rows []nodeRow, format string) *output.Table {
	t := &output.Table{Header: []string{"NODE", "STATE", "RESOURCE", "ALLOCATABLE", "LOCAL", "USED", "POOLS"}}
	for i := range rows {
		r := &rows[i]
		amounts := output.Notation(format, "")(r.Resource, r.Allocatable, r.Local, r.Used)
		t.Add(append(append([]string{r.Node, r.State, r.Resource}, amounts...), strings.Join(r.Pools, ","))...)
	}
	return t
}

func totalTable(rows []totalRow, format string) *output.Table {
	t := &output.Table{Header: []string{"RESOURCE", "ALLOCATABLE", "LOCAL", "USED", "OFFERED", "OFFERED%"}}
	for i := range rows {
		r := &rows[i]
		amounts := output.Notation(format, "")(r.Resource, r.Allocatable, r.Local, r.Used, r.Offered)
		t.Add(append(append([]string{r.Resource}, amounts...), percentText(r.OfferedPercent))...)
	}
	return t
}

// stateOf returns the state in which a node counts, whether it is in its grace, and the cluster that a
// virtual node stands for.
func stateOf(n *rest.WorldNode) string {
	state := n.State
	if n.Grace != "" {
		state += ", in its grace"
	}
	if n.Peer != nil && n.Peer.ClusterID != "" {
		state += ", of " + n.Peer.ClusterID
	}
	return state
}

// poolsWith returns the policies whose pools have the node.
func poolsWith(pools []pool, node *capacity.Node) []string {
	var in []string
	for _, p := range pools {
		if p.Selection.Matches(node) {
			in = append(in, p.policy)
		}
	}
	return in
}
