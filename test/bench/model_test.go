package bench

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/selection"
	"proffer.dev/proffer/test/bench/population"
)

// size is the size of a cluster and the number of its consumers.
type size struct {
	nodes, pods, consumers int
	// busy is the number of consumers that have pods; a fifth of all pods are theirs.
	busy int
}

// String returns the name of a sub-benchmark.
func (s size) String() string { return fmt.Sprintf("consumers=%d/busy=%d", s.consumers, s.busy) }

const (
	gi               = 1 << 30
	zones            = 4
	tiers            = 4
	policiesPerClass = 5
)

var (
	classes   = []string{"", "bronze", "gold", "silver"}
	nodePools = []string{"general", "compute", "memory", "gpu", "edge"}
	// selectors are those of the policies. They match all nodes, a fifth, two fifths, a quarter and
	// four fifths. All but the second and third overlap.
	selectors = []string{
		"", "pool=general", "pool in (compute, memory)", "topology.kubernetes.io/zone=zone-1", "pool!=gpu",
	}
)

func newNode(i int) capacity.Node {
	pool := nodePools[i%len(nodePools)]
	n := capacity.Node{
		Name: fmt.Sprintf("node-%05d", i),
		Labels: map[string]string{
			"kubernetes.io/hostname":           fmt.Sprintf("node-%05d", i),
			"kubernetes.io/os":                 "linux",
			"kubernetes.io/arch":               "amd64",
			"node.kubernetes.io/instance-type": "large",
			"topology.kubernetes.io/region":    "region-1",
			"topology.kubernetes.io/zone":      fmt.Sprintf("zone-%d", i%zones),
			"pool":                             pool,
		},
		State: capacity.Ready,
		Allocatable: capacity.Amounts{
			capacity.CPU: 32_000, capacity.Memory: 128 * gi, capacity.Pods: 110,
			"ephemeral-storage": 500 * gi, "hugepages-2Mi": 0,
		},
	}
	if pool == "gpu" {
		n.Allocatable["nvidia.com/gpu"] = 8
	}
	return n
}

// newPod returns the i-th pod. A fifth of the pods belong to the busy consumers, in turn.
func newPod(i int, s size) capacity.Pod {
	p := capacity.Pod{
		Key:      podKey(i),
		Node:     fmt.Sprintf("node-%05d", i%s.nodes),
		Requests: capacity.Amounts{capacity.CPU: 250, capacity.Memory: gi / 2},
	}
	if i%5 == 4 && s.busy > 0 {
		p.Consumer = population.Consumer(i / 5 % s.busy * (s.consumers / s.busy))
	}
	return p
}

func podKey(i int) string { return fmt.Sprintf("6f1c2d3e-0000-4000-8000-%012d", i) }

func newConsumers(n int) []offer.Consumer {
	consumers := make([]offer.Consumer, n)
	for i := range consumers {
		consumers[i] = offer.Consumer{ID: population.Consumer(i), Labels: map[string]string{
			"liqo.io/remote-cluster-id": population.Consumer(i),
			"tier":                      fmt.Sprintf("tier-%d", i%tiers),
			"country":                   fmt.Sprintf("country-%d", i%30),
		}}
	}
	return consumers
}

// newPolicies returns five policies for each class: one for some consumers by ID, three by label,
// one of which offers fixed amounts, and one for all other consumers.
func newPolicies(consumers int) []offer.Policy {
	var policies []offer.Policy
	for c, class := range classes {
		for i := range policiesPerClass {
			p := offer.Policy{
				Name:             fmt.Sprintf("policy-%s-%d", class, i),
				Version:          "1",
				Class:            class,
				Priority:         int32(10 - i),
				ThresholdPercent: 5,
			}
			switch i {
			case 0:
				p.Consumers.IDs = map[string]struct{}{}
				for k := range 50 {
					p.Consumers.IDs[population.Consumer((c*50+k)%consumers)] = struct{}{}
				}
			case 1, 2, 3:
				p.Consumers.Selector = selector(fmt.Sprintf("tier=tier-%d", i-1))
			}
			if i == 3 {
				p.Fixed = capacity.Amounts{capacity.CPU: 2000, capacity.Memory: 4 * gi, capacity.Pods: 20}
			} else {
				p.Nodes = &offer.Nodes{
					Selection: capacity.Selection{Selector: selector(selectors[(c+i)%len(selectors)])},
					Percent:   50,
					Reserve:   capacity.Amounts{capacity.CPU: 4000},
				}
				p.Max = capacity.Amounts{capacity.CPU: 64_000}
			}
			if i == 4 {
				p.Overrides = []offer.Override{{
					Consumers: offer.Scope{Selector: selector("country in (country-1, country-2)")},
					Max:       capacity.Amounts{capacity.CPU: 16_000},
				}}
			}
			policies = append(policies, p)
		}
	}
	return policies
}

func selector(text string) capacity.Selector {
	s, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	return selection.Of(s)
}

// newLedger returns a ledger with all nodes and pods.
func newLedger(s size) *capacity.Ledger {
	l := capacity.NewLedger()
	for i := range s.nodes {
		l.SetNode(newNode(i))
	}
	for i := range s.pods {
		l.SetPod(newPod(i, s))
	}
	return l
}
