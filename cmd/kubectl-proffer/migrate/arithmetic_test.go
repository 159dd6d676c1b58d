package migrate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/test"
)

// A world is a small cluster whose nodes have room for the pods that are bound to them.
type world struct {
	nodes []capacity.Node
	pods  []capacity.Pod
}

const gpu = "nvidia.com/gpu"

func drawWorld(t *rapid.T) world {
	var w world
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		n := capacity.Node{
			Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{},
			State:       rapid.SampledFrom([]capacity.NodeState{capacity.Ready, capacity.Ready, capacity.NotReady, capacity.Cordoned}).Draw(t, "state"),
			Virtual:     rapid.IntRange(0, 4).Draw(t, "virtual") == 0,
			Allocatable: capacity.Amounts{capacity.CPU: 8000, capacity.Memory: 1000, capacity.Pods: 10},
		}
		for _, key := range []string{"dedicated", "zone"} {
			if value := rapid.SampledFrom([]string{"", "liqo", "a"}).Draw(t, key); value != "" {
				n.Labels[key] = value
			}
		}
		if rapid.Bool().Draw(t, "taint") {
			n.Taints = []capacity.Taint{{Key: "dedicated", Value: "liqo", Effect: string(corev1.TaintEffectNoSchedule)}}
		}
		if rapid.Bool().Draw(t, "gpus") {
			n.Allocatable[gpu] = 4
		}
		w.nodes = append(w.nodes, n)
		for j := range rapid.IntRange(0, 3).Draw(t, "pods") {
			p := capacity.Pod{
				Key: fmt.Sprintf("%s/%d", n.Name, j), Node: n.Name,
				Consumer: rapid.SampledFrom([]string{"", "rome", "oslo"}).Draw(t, "consumer"),
				Requests: capacity.Amounts{
					capacity.CPU: rapid.Int64Range(1, 2000).Draw(t, "cpu"), capacity.Memory: rapid.Int64Range(1, 300).Draw(t, "memory"),
				},
			}
			if n.Allocatable[gpu] > 0 {
				p.Requests[gpu] = rapid.Int64Range(0, 1).Draw(t, "gpu")
			}
			w.pods = append(w.pods, p)
		}
	}
	return w
}

// snapshot is the world as the operator serves it.
func (w world) snapshot() *rest.World {
	states := map[capacity.NodeState]string{capacity.Ready: "Ready", capacity.NotReady: "NotReady", capacity.Cordoned: "Cordoned"}
	s := &rest.World{}
	for _, n := range w.nodes {
		out := rest.WorldNode{Name: n.Name, Labels: n.Labels, State: states[n.State], Allocatable: quantities(n.Allocatable)}
		if n.Virtual {
			out.Peer = &rest.WorldPeer{ClusterID: n.Peer}
		}
		s.Nodes = append(s.Nodes, out)
	}
	for _, p := range w.pods {
		s.Pods = append(s.Pods, rest.WorldPod{UID: p.Key, Node: p.Node, Consumer: p.Consumer, Requests: quantities(p.Requests)})
	}
	return s
}

func quantities(amounts capacity.Amounts) rest.Amounts {
	all := rest.Amounts{}
	for name, value := range amounts {
		all[name] = resource.MustParse(capacity.Canonical(name, value))
	}
	return all
}

// amountsOf is the inverse of quantities.
func amountsOf(all rest.Amounts) capacity.Amounts {
	amounts := capacity.Amounts{}
	for name, q := range all {
		if amounts[name] = q.Value(); name == capacity.CPU {
			amounts[name] = q.MilliValue()
		}
	}
	return amounts
}

// counted returns the nodes that the plugin counts: those with all labels that are ready, not
// cordoned and not virtual.
func (w world) counted(labels map[string]string) map[string]capacity.Node {
	all := map[string]capacity.Node{}
	for _, n := range w.nodes {
		matches := n.State == capacity.Ready && !n.Virtual
		for key, value := range labels {
			matches = matches && n.Labels[key] == value
		}
		if matches {
			all[n.Name] = n
		}
	}
	return all
}

// nodeLabelsAnswer is what node-labels-resources answers for every consumer, by its documented
// arithmetic: the allocatable amounts of the nodes minus the requests of all
// pods on them. A pod does not count as 1 of pods.
func (w world) nodeLabelsAnswer(labels map[string]string) capacity.Amounts {
	total, nodes := capacity.Amounts{}, w.counted(labels)
	for _, n := range nodes {
		for name, amount := range n.Allocatable {
			total[name] += amount
		}
	}
	for _, p := range w.pods {
		if _, here := nodes[p.Node]; !here {
			continue
		}
		for name, amount := range p.Requests {
			total[name] -= amount
		}
	}
	return total
}

// used is what the pods of a consumer use of the nodes, themselves included, and all is what the
// pods of everybody use.
func (w world) used(labels map[string]string, consumer string) (own, all capacity.Amounts) {
	own, all = capacity.Amounts{}, capacity.Amounts{}
	nodes := w.counted(labels)
	for _, p := range w.pods {
		if _, here := nodes[p.Node]; !here {
			continue
		}
		all[capacity.Pods]++
		if p.Consumer != consumer {
			continue
		}
		own[capacity.Pods]++
		for name, amount := range p.Requests {
			own[name] += amount
		}
	}
	return own, all
}

// reclaim has the policy evict, or raises the amounts to what the consumer's pods use of all nodes.
func (w world) reclaim(t *rapid.T, c *Converted, consumer string, amounts capacity.Amounts) {
	if rapid.Bool().Draw(t, "evict") {
		c.Policy.Spec.Reclaim = v1alpha1.ReclaimEvict
		return
	}
	everywhere := world{pods: w.pods}
	for _, n := range w.nodes {
		if !n.Virtual {
			n.State = capacity.Ready
			everywhere.nodes = append(everywhere.nodes, n)
		}
	}
	used, _ := everywhere.used(nil, consumer)
	for name, amount := range amounts {
		amounts[name] = max(amount, used[name])
	}
}

// offers evaluates the policy as the operator does, and returns what it offers to a consumer.
func (w world) offers(t *rapid.T, c *Converted, consumer string) capacity.Amounts {
	parsed, misspelt, errs := policy.Parse(c.Policy)
	if len(errs)+len(misspelt) > 0 {
		t.Fatal(errs, misspelt)
	}
	ledger, policies := capacity.NewLedger(), []offer.Policy{*parsed}
	for _, n := range w.nodes {
		ledger.SetNode(n)
	}
	for _, p := range w.pods {
		ledger.SetPod(p)
	}
	r := offer.Evaluate(offer.Input{
		Policies: policies, Consumers: []offer.Consumer{{ID: "rome"}, {ID: "oslo"}, {ID: "new"}},
		View: ledger.View(offer.Selections(policies), offer.ResourceNames(policies)...),
	})
	amounts := capacity.Amounts{}
	for _, o := range r.Entries.Of(consumer).Offers {
		for _, a := range o.Amounts {
			amounts[a.Resource] = a.Value
		}
	}
	return amounts
}

// TestThePolicyOffersWhatNodeLabelsResourcesAnswers holds what the comments of the manifest say. A
// consumer is offered the plugin's answer and what its own pods use of the nodes. If its pods
// request more than that anywhere, it is offered what they request, unless the policy evicts. Pods
// that run are subtracted from pods too.
func TestThePolicyOffersWhatNodeLabelsResourcesAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, labels, args := drawWorld(t), map[string]string{}, []string(nil)
		for _, pair := range rapid.SampledFrom([][]string{{"dedicated=liqo"}, {"zone=a"}, {"dedicated=liqo", "zone=a"}}).Draw(t, "labels") {
			key, value, _ := strings.Cut(pair, "=")
			labels[key], args = value, append(args, "--node-label="+pair)
		}
		c, err := Convert(of(corev1.Container{Args: args}), Options{})
		test.Must(t, err)
		consumer := rapid.SampledFrom([]string{"rome", "oslo", "new"}).Draw(t, "asks")
		want := w.nodeLabelsAnswer(labels)
		if diff := cmp.Diff(want, amountsOf(c.answer(w.snapshot()))); diff != "" {
			t.Errorf("the plugin's answer (-want +got):\n%s", diff)
		}
		own, all := w.used(labels, consumer)
		for name := range want {
			want[name] += own[name]
		}
		if _, some := want[capacity.Pods]; some {
			want[capacity.Pods] -= all[capacity.Pods]
		}
		if rapid.Bool().Draw(t, "a build that subtracts no pods") {
			c.Policy.Spec.Offer.Nodes.Count = v1alpha1.NodeCountAllocatable
			want = world{nodes: w.nodes}.nodeLabelsAnswer(labels)
		}
		w.reclaim(t, c, consumer, want)
		got := w.offers(t, c, consumer)
		for name := range got {
			if _, listed := want[name]; !listed && got[name] == 0 {
				delete(got, name) // No node lists it: the plugin answers nothing, the policy 0.
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("offered to %s (-the plugin's answer and the consumer's own use, +the policy's offer):\n%s", consumer, diff)
		}
	})
}

// TestThePolicyOffersWhatFixedResourcesAnswers holds what the comments of the manifest say. A
// consumer is offered the plugin's amounts or, if that is more and the policy does not evict, what
// its pods request.
func TestThePolicyOffersWhatFixedResourcesAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, want, args := drawWorld(t), capacity.Amounts{}, []string(nil)
		for _, name := range []string{capacity.CPU, capacity.Memory, capacity.Pods, gpu} {
			amount := rapid.Int64Range(1, 100_000).Draw(t, name)
			want[name] = amount
			args = append(args, fmt.Sprintf("--resource=%s=%s", name, capacity.Canonical(name, amount)))
		}
		c, err := Convert(deployment(args...), Options{})
		test.Must(t, err)
		if diff := cmp.Diff(want, amountsOf(c.answer(w.snapshot()))); diff != "" {
			t.Errorf("the plugin's answer (-want +got):\n%s", diff)
		}
		consumer := rapid.SampledFrom([]string{"rome", "oslo", "new"}).Draw(t, "asks")
		w.reclaim(t, c, consumer, want)
		if diff := cmp.Diff(want, w.offers(t, c, consumer)); diff != "" {
			t.Errorf("offered to %s (-the plugin's answer or the consumer's use, +the policy's offer):\n%s", consumer, diff)
		}
	})
}
