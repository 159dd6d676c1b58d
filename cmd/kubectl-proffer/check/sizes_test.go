package check

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

func TestMoreThanTheClusterHasIsProbablyASlip(t *testing.T) {
	nodes := known[corev1.ResourceList]{value: nodestest.List("cpu", "96", "memory", "512Gi")}
	ofSizes := known[corev1.ResourceList]{value: nodestest.List(
		"cpu", "96", "nvidia.com/gpu.shared", "1", "nvidia.com/mig-1g.10gb", "1", "hugepages-2Mi", "1Gi")}
	withGPUs := known[corev1.ResourceList]{value: nodestest.List("cpu", "96", "memory", "512Gi", "nvidia.com/gpu", "0")}
	for name, tc := range map[string]struct {
		spec  string
		nodes known[corev1.ResourceList]
		want  string
	}{
		"as much":             {"{offer: {fixed: {cpu: 96, memory: 512Gi, nvidia.com/gpu: 8}}}", nodes, ""},
		"more":                {"{offer: {fixed: {cpu: 400, memory: 512Gi}}}", nodes, "These amounts are more than the cluster has: spec.offer.fixed of gold has 400 cpu, and all nodes 96."},
		"an override":         {"{offer: {nodes: {}}, overrides: [{consumers: {clusterIDs: [rome]}, offer: {fixed: {memory: 600Gi}}}]}", nodes, "These amounts are more than the cluster has: spec.overrides[0].offer.fixed of gold has 600Gi memory, and all nodes 512Gi."},
		"an override of both": {"{offer: {fixed: {cpu: 1}}, overrides: [{consumers: {clusterIDs: [rome]}, offer: {fixed: {cpu: 97, memory: 600Gi}}}]}", nodes, "These amounts are more than the cluster has: spec.overrides[0].offer.fixed of gold has 97 cpu, and all nodes 96, spec.overrides[0].offer.fixed of gold has 600Gi memory, and all nodes 512Gi."},
		"a reserve":           {"{offer: {nodes: {}, reserve: {cpu: 97}}}", nodes, "These amounts are more than the cluster has: spec.offer.reserve of gold has 97 cpu, and all nodes 96."},
		"a reserve of peers":  {"{offer: {peers: {}, reserve: {cpu: 97}}}", nodes, ""},
		"a misspelt name":     {"{offer: {fixed: {cpu: 1, nvidia.com/gqu: 1}}}", withGPUs, "No node has resources of these names: spec.offer.fixed of gold has nvidia.com/gqu, and nodes have nvidia.com/gpu."},
		"a name cut short":    {"{offer: {fixed: {cpu: 1, nvidia.com/gp: 1}}}", withGPUs, "No node has resources of these names: spec.offer.fixed of gold has nvidia.com/gp, and nodes have nvidia.com/gpu."},
		"a name of later":     {"{offer: {fixed: {cpu: 1, amd.com/gpu: 1}}}", withGPUs, ""},
		"names of sizes":      {"{offer: {fixed: {nvidia.com/gpu: 1, nvidia.com/mig-1g.5gb: 1, hugepages-1Gi: 1Gi}}}", ofSizes, ""},
		"an invalid policy":   {"{offer: {fixed: {cpu: 400}, percent: 50}}", nodes, ""},
		"no right":            {"{offer: {fixed: {cpu: 400}}}", known[corev1.ResourceList]{err: apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var p v1alpha1.ResourcePolicy
			p.Name = "gold"
			test.Must(t, yaml.UnmarshalStrict([]byte("spec: "+tc.spec), &p))
			got := ""
			for _, f := range findSizes(writtenAmounts([]v1alpha1.ResourcePolicy{p}), tc.nodes) {
				if got += f.Message; f.Status != Warning || f.Do == "" {
					t.Errorf("%+v", f)
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	got := findSizes(nil, known[corev1.ResourceList]{err: errors.New("too late")})
	if len(got) != 1 || got[0].Status != Skipped || got[0].Message != "Cannot list nodes: too late" {
		t.Errorf("without an answer: %+v", got)
	}
}

func TestVirtualNodesAreNotOfTheCluster(t *testing.T) {
	for _, n := range []*corev1.Node{
		nodestest.Node("a", nodestest.List("cpu", "3500m", "memory", "16Gi")), nodestest.Node("b", nodestest.List("cpu", "8", "memory", "16Gi")),
		nodestest.Node("milan", nodestest.List("cpu", "99"), nodestest.NodeLabel("liqo.io/type", "virtual-node")),
	} {
		kubetest.Create(t, n)
	}
	config, err := caller(kubeconfig(t), "").RESTConfig()
	test.Must(t, err)
	c, err := newCluster(config)
	test.Must(t, err)
	all := c.allocatable(t.Context())
	test.Must(t, all.err)
	if cpu, memory := all.value["cpu"], all.value["memory"]; cpu.String() != "11500m" || memory.String() != "32Gi" {
		t.Errorf("%v", all.value)
	}
}
