package top

import (
	"fmt"
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
	policy    string
	selection capacity.Selection
}

// poolsOf returns the pools of the policies that are valid.
func poolsOf(world *rest.World) []pool {
	var pools []pool
	for i := range world.Policies {
		parsed, _, errs := policy.Parse(&world.Policies[i])
		if len(errs) > 0 || parsed.Nodes == nil {
			continue
		}
		pools = append(pools, pool{parsed.Name, offer.Selections([]offer.Policy{*parsed})[0]})
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
		of.sumsFor(p.Node).add(p.Requests)
		of.sumsFor(p.Node).addOne(capacity.Pods, one)
	}
	return u
}

// nodesTables returns a table with a row for each node and resource, and one with the sums over the
// nodes that are in some pool.
func nodesTables(offers *rest.Offers, snapshot *rest.World) (nodes, total *output.Table, err error) {
	nodes = &output.Table{Header: []string{"NODE", "STATE", "RESOURCE", "ALLOCATABLE", "LOCAL", "USED", "POOLS"}}
	total = &output.Table{Header: []string{"RESOURCE", "ALLOCATABLE", "LOCAL", "USED", "OFFERED", "OFFERED%"}}
	pools, use := poolsOf(snapshot), useOf(snapshot.Pods)
	allocatable, local, used := sums{}, sums{}, sums{}
	for i := range snapshot.Nodes {
		n := &snapshot.Nodes[i]
		parsed, err := world.NodeOf(n)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the operator's snapshot: %w", err)
		}
		in := poolsWith(pools, &parsed)
		a, l, u := sums(n.Allocatable), use.local[n.Name], use.used[n.Name]
		for _, name := range resources(a) {
			if positive(name, a, l, u) {
				nodes.Add(n.Name, stateOf(n), name, a.text(name), l.text(name), u.text(name), strings.Join(in, ","))
			}
		}
		if len(in) > 0 {
			allocatable.add(n.Allocatable)
			local.add(rest.Amounts(l))
			used.add(rest.Amounts(u))
		}
	}
	offered := sums{}
	for i := range offers.Consumers {
		for _, o := range offers.Consumers[i].Offers {
			offered.add(o.Resources)
		}
	}
	for _, name := range resources(allocatable, offered) {
		if positive(name, allocatable, offered) {
			total.Add(name, allocatable.text(name), local.text(name), used.text(name), offered.text(name),
				percent(offered, allocatable, name))
		}
	}
	return nodes, total, nil
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
		if p.selection.Matches(node) {
			in = append(in, p.policy)
		}
	}
	return in
}
