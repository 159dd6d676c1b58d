package filters

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/plugin"
)

func TestAFilterThatEndsItsGoroutineIsAskedAboutTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, func(_ *plugin.Policy, n *plugin.Node) (bool, string) {
			if n.Name == "b" {
				runtime.Goexit()
			}
			return true, ""
		})
		c.set("a", "b", "c")
		c.expect(2, "b is left out because Custom ends its goroutine instead of answering")
		c.set("d")
		c.expect(3, "b is left out because Custom ends its goroutine instead of answering")
	})
}

// A text of a filter may be as long as its memory.
func TestTheLogHasShortTextsOfFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long, calls, longest := strings.Repeat("long ", 1<<20), 0, 0
		c := newCluster(t, func(_ *plugin.Policy, n *plugin.Node) (bool, string) {
			if calls++; n.Name == "a" {
				panic(long)
			}
			return calls%2 == 0, long
		})
		lines := 0
		c.Chain.nodes[2].filter.caller.log = funcr.New(func(_, args string) {
			lines++
			longest = max(longest, len(args))
		}, funcr.Options{})
		c.set("a", "b")
		c.pool()
		if lines != 2 || longest > 8<<10 {
			t.Errorf("%d lines of up to %d bytes, want 2 of less than 8 KiB", lines, longest)
		}
	})
}

// A filter must not change what it is given. If one does, no selector of another policy may see it.
func TestAFilterThatChangesWhatItIsGivenChangesNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		tamper := func(labels map[string]string, p *plugin.Policy) {
			seen = append(seen, p.Spec.Consumers.Selector.MatchLabels["tier"])
			labels["pool"], p.Spec.Consumers.Selector.MatchLabels["tier"] = "forged", "forged"
		}
		c := newCluster(t, func(p *plugin.Policy, n *plugin.Node) (bool, string) {
			tamper(n.Labels, p)
			n.Taints, n.Allocatable[corev1.ResourceCPU] = nil, resource.MustParse("1k")
			return true, ""
		})
		c.Chain.consumers = New(config.Filters{Consumers: []string{"Custom"}}, nil, map[string]plugin.ConsumerFilter{
			"Custom": consumerFunc(func(p *plugin.Policy, k *plugin.Consumer) (bool, string) {
				tamper(k.Labels, p)
				return true, ""
			}),
		}, nil, Late{Wake: func() {}}, logr.Discard()).consumers
		object := &v1alpha1.ResourcePolicy{}
		object.Spec.Consumers = &v1alpha1.Consumers{Selector: metav1.SetAsLabelSelector(map[string]string{"tier": "gold"})}
		parsed := &offer.Policy{Name: "gold", Version: "1", Nodes: &offer.Nodes{Percent: 100}}
		c.AddTo(object, parsed)
		c.policy = parsed
		node, rome := capacity.Node{
			Name: "a", Labels: map[string]string{"pool": "gold"}, State: capacity.Ready, Allocatable: capacity.Amounts{capacity.CPU: 8000},
		}, offer.Consumer{ID: "rome", Labels: map[string]string{"tier": "gold"}}
		c.ledger.SetNode(node)
		c.expect(1, "")
		if !parsed.Consumers.Includes(rome) {
			t.Error("rome is left out")
		}
		got := []any{node.Labels["pool"], node.Allocatable[capacity.CPU], rome.Labels["pool"], object.Spec.Consumers.Selector.MatchLabels["tier"], seen}
		want := []any{"gold", int64(8000), "", "gold", []string{"gold", "forged", "gold", "forged"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
