package peers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/test"
)

func object(namespace, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func virtual(namespace, name, secret string) *unstructured.Unstructured {
	return object(namespace, name, map[string]any{"spec": map[string]any{"kubeconfigSecretRef": map[string]any{"name": secret}}})
}

func slice(namespace, name string, resources map[string]any) *unstructured.Unstructured {
	return object(namespace, name, map[string]any{"status": map[string]any{"resources": resources}})
}

func TestWhichVirtualNodesAreOfOneResourceSlice(t *testing.T) {
	made := virtual("a", "made-by-liqo", "kubeconfig-resourceslice-s")
	made.SetLabels(map[string]string{"liqo.io/resourceslice-name": "s"})
	labelled := virtual("a", "labelled", "")
	labelled.SetLabels(map[string]string{"liqo.io/resourceslice-name": "s"})
	for _, tc := range []struct {
		of   *unstructured.Unstructured
		want string
	}{
		{made, "a/s"},
		{virtual("a", "made-by-liqoctl", "kubeconfig-resourceslice-s"), "a/s"},
		{labelled, "a/s"},
		{virtual("b", "of-another-peer", "kubeconfig-resourceslice-s"), "b/s"},
		{virtual("a", "of-an-identity", "kubeconfig-of-mine"), "a/Secret kubeconfig-of-mine"},
		{virtual("a", "without", ""), "a/VirtualNode without"},
	} {
		if got := parseVirtualNode(tc.of); got.group != tc.want || got.name != tc.of.GetName() {
			t.Errorf("%s is in group %q, want %q", tc.of.GetName(), got.group, tc.want)
		}
	}
}

func TestTheLedgerIsToldWhatNodesHaveTogether(t *testing.T) {
	ledger := capacity.NewLedger()
	g := newGroups(ledger)
	set := func(to kube.Handler, u *unstructured.Unstructured) bool { return to.Set(u) && g.update() }
	remove := func(from kube.Handler, u *unstructured.Unstructured) bool { return from.Remove(u) && g.update() }
	want := func(groups ...capacity.NodeGroup) {
		t.Helper()
		if diff := cmp.Diff(groups, ledger.Copy().Groups, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("groups: %s", diff)
		}
	}
	if !set(g.nodes, virtual("a", "n2", "kubeconfig-resourceslice-s")) || !set(g.nodes, virtual("a", "n1", "kubeconfig-resourceslice-s")) {
		t.Error("a new node is no change")
	}
	if set(g.nodes, virtual("a", "n1", "kubeconfig-resourceslice-s")) {
		t.Error("the same node is a change")
	}
	want(capacity.NodeGroup{Key: "a/s", Nodes: []string{"n1", "n2"}})
	set(g.slices, slice("a", "s", map[string]any{"cpu": "1500m", "memory": "1Ki", "pods": "many"}))
	want(capacity.NodeGroup{Key: "a/s", Nodes: []string{"n1", "n2"}, Given: capacity.Amounts{"cpu": 1500, "memory": 1024, "pods": 0}})
	if set(g.slices, slice("a", "of-no-node", map[string]any{"cpu": "1"})) {
		t.Error("a ResourceSlice without a node is a change")
	}
	remove(g.slices, slice("a", "s", nil))
	remove(g.nodes, virtual("a", "n2", ""))
	want(capacity.NodeGroup{Key: "a/s", Nodes: []string{"n1"}})
	g.nodes.RemoveAll()
	g.update()
	want()
}

// The schema of Liqo allows integers beside text, and any text as the name of a resource.
func TestAnAmountMayBeAnInteger(t *testing.T) {
	given := slice("a", "s", map[string]any{"cpu": int64(4), "memory": int64(1 << 30), "pods": int64(-1), "gpu": "2", "disk": 1.5, "x": true, "c\u0440u": "1", "\x1b[2J": "1", "a|b": int64(1), "": "1"})
	want := capacity.Amounts{"cpu": 4000, "memory": 1 << 30, "pods": 0, "gpu": 2, "disk": 0, "x": 0}
	if diff := cmp.Diff(want, parseSlice(given)); diff != "" {
		t.Errorf("what was given (-want +got):\n%s", diff)
	}
	kept, err := stripSlice(given)
	test.Must(t, err)
	delete(want, "disk") // No value at all counts as 0 too.
	delete(want, "x")
	if diff := cmp.Diff(want, parseSlice(kept.(*unstructured.Unstructured))); diff != "" {
		t.Errorf("what is kept of it (-want +got):\n%s", diff)
	}
}

// A provider writes the status of the ResourceSlices that it is asked with.
func TestAHostileAnswerCostsLittle(t *testing.T) {
	resources := map[string]any{"cpu": "1e999999999", "memory": strings.Repeat("9", 1<<20), "pods": int64(3)}
	for i := range 20_000 {
		resources[fmt.Sprint("made.up/", i)] = "1"
	}
	kept, err := stripSlice(slice("a", "s", resources))
	test.Must(t, err)
	left, _, _ := unstructured.NestedMap(kept.(*unstructured.Unstructured).Object, "status", "resources")
	if len(left) > capacity.MaxNodeResources || left["cpu"] != nil || left["memory"] != nil {
		t.Errorf("%d resources are kept, cpu %v", len(left), left["cpu"])
	}
	if got := parseSlice(kept.(*unstructured.Unstructured)); got["cpu"] != 0 || got["memory"] != 0 || len(got) > capacity.MaxNodeResources {
		t.Errorf("%d resources were given, cpu %d", len(got), got["cpu"])
	}
}

// What Liqo copies from a provider to the labels of a VirtualNode, of its node too, says nothing about
// who gives it.
func TestAProviderCannotNameAnotherAsTheGiver(t *testing.T) {
	spoofed := object("a", "n", map[string]any{"spec": map[string]any{
		"clusterID": "milan", "kubeconfigSecretRef": map[string]any{"name": "kubeconfig-resourceslice-s"},
		"labels": map[string]any{"liqo.io/remote-cluster-id": "oslo", "liqo.io/type": "worker"},
	}})
	kept, err := stripVirtualNode(spoofed)
	test.Must(t, err)
	ledger := capacity.NewLedger()
	g := newGroups(ledger)
	g.nodes.Set(kept.(*unstructured.Unstructured))
	g.update()
	for _, reported := range []capacity.Node{{Name: "n", Virtual: true, Peer: "oslo"}, {Name: "n"}} {
		ledger.SetNode(reported)
		if n := ledger.Copy().Nodes[0]; !n.Virtual || n.Peer != "milan" {
			t.Errorf("the node %+v counts as virtual %v of peer %q, not as one of milan", reported, n.Virtual, n.Peer)
		}
	}
}
