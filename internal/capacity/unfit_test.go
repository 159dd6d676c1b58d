package capacity

import "testing"

// TestNodesThatNoPodOfAConsumerCanUse in a pool whose policy tolerates every taint.
func TestNodesThatNoPodOfAConsumerCanUse(t *testing.T) {
	on := func(key, value string) func(*Node) { return labelled(map[string]string{key: value}) }
	byTaint := func(key, value string) func(*Node) { return tainted(Taint{Key: key, Value: value, Effect: NoSchedule}) }
	for name, c := range map[string]struct {
		node     func(*Node)
		selector Selector
		why      string
	}{
		"linux":             {node: on(OSLabel, "linux")},
		"windows":           {node: on(OSLabel, "windows"), why: "not of linux, by its label kubernetes.io/os=windows"},
		"windows, selected": {node: on(OSLabel, "windows"), selector: having(OSLabel, "windows")},
		"windows, selected by something else": {
			node: on(OSLabel, "windows"), selector: without("zone"), why: "not of linux, by its label kubernetes.io/os=windows",
		},
		"another virtual kubelet": {
			node: on("type", "virtual-kubelet"), why: "a virtual node, but not of Liqo, by its label type=virtual-kubelet",
		},
		"the same, selected": {node: on("type", "virtual-kubelet"), selector: having("type")},
		"the same, by its taint": {
			node: byTaint("virtual-kubelet.io/provider", "azure"),
			why:  "a virtual node, but not of Liqo, by its taint virtual-kubelet.io/provider",
		},
		"another type": {node: on("type", "kwok")},
		"Fargate": {
			node: on("eks.amazonaws.com/compute-type", "fargate"),
			why:  "for one pod of Fargate, by its label eks.amazonaws.com/compute-type=fargate",
		},
		"EC2": {node: on("eks.amazonaws.com/compute-type", "ec2")},
		"cluster-autoscaler deletes it": {
			node: byTaint("ToBeDeletedByClusterAutoscaler", "1700000000"),
			why:  "about to be deleted, by its taint ToBeDeletedByClusterAutoscaler",
		},
		"cluster-autoscaler may delete it": {node: tainted(
			Taint{Key: "DeletionCandidateOfClusterAutoscaler", Effect: "PreferNoSchedule"},
		)},
		"karpenter deletes it": {
			node: byTaint("karpenter.sh/disrupted", ""), why: "about to be deleted, by its taint karpenter.sh/disrupted",
		},
		"an older karpenter deletes it": {
			node: byTaint("karpenter.sh/disruption", "disrupting"), why: "about to be deleted, by its taint karpenter.sh/disruption",
		},
		"deleted":            {node: func(n *Node) { n.Deleted = true }, why: "being deleted"},
		"deleted and down":   {node: func(n *Node) { n.Deleted, n.State = true, NotReady }, why: "being deleted"},
		"any taint, but one": {node: byTaint("dedicated", "gpu")},
	} {
		s := Selection{Selector: c.selector, Tolerations: []Toleration{tolerates("")}}
		l := NewLedger()
		l.SetNode(node("n1", c.node))
		p := l.View([]Selection{s}).Pools[0]
		why := ""
		if len(p.Unusable.First) > 0 {
			why = p.Unusable.First[0].Why
		}
		if out := c.why != ""; why != c.why || out == (p.Nodes == 1) {
			t.Errorf("%s: left out because %q, want %q; %d nodes in the pool", name, why, c.why, p.Nodes)
		}
	}
}

func TestAVirtualNodeIsLeftOutOnlyIfItIsAboutToGo(t *testing.T) {
	l := NewLedger()
	virtual := func(n *Node) { n.Virtual, n.Peer = true, "milan" }
	l.SetNode(node("stays", virtual, labelled(map[string]string{OSLabel: "windows", "type": "virtual-kubelet"})))
	l.SetNode(node("goes", virtual, func(n *Node) { n.Deleted = true }))
	p := l.View([]Selection{{Peers: &Peers{Depth: 1}}}).Pools[0]
	if got := p.Unusable.String(); p.Nodes != 1 || got != "goes is being deleted" {
		t.Errorf("%d nodes, and %s", p.Nodes, got)
	}
}

// TestANodeThatIsDeletedTakesItsPodsOutOfThePool and its pods count for their consumer until they are gone.
func TestANodeThatIsDeletedTakesItsPodsOutOfThePool(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("n1"))
	l.SetPod(pod("a", "n1", "rome", 1000))
	if !l.SetNode(node("n1", func(n *Node) { n.Deleted = true })) {
		t.Error("the deletion of a node is no change")
	}
	v, p := everyNode(l)
	if used := amounts(v, v.Used.Of("rome").Everywhere)[CPU]; p.Nodes != 0 || p.InUse.At(0) != 0 || used != 1000 {
		t.Errorf("%d nodes with %d in use; rome uses %d", p.Nodes, p.InUse.At(0), used)
	}
}

func TestShareableResources(t *testing.T) {
	for name, want := range map[string]bool{
		CPU: true, Memory: true, Pods: true, "ephemeral-storage": true, "hugepages-2Mi": true, "nvidia.com/gpu": true,
		"vpc.amazonaws.com/efa": true, "rdma/hca": true, "example.com/attachable-volumes-": true, "aliyun/gpu-mem": true,
		"attachable-volumes-aws-ebs": false, "vpc.amazonaws.com/pod-eni": false,
		"vpc.amazonaws.com/PrivateIPv4Address": false, "devices.kubevirt.io/kvm": false, "devices.kubevirt.io/tun": false,
		"devices.kubevirt.io/vhost-net": false, "smarter-devices/snd": false, "bridge.network.kubevirt.io/br0": false,
	} {
		if got := Shareable(name); got != want {
			t.Errorf("Shareable(%s) = %v, want %v", name, got, want)
		}
	}
}
