package population

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	zones      = 4
	nodeImages = 30
)

var pools = []string{"general", "compute", "memory", "gpu", "edge"}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

func virtualNodeName(i int) string { return fmt.Sprintf("liqo-%05d", i) }

// node returns the i-th node with its status.
func node(i int) *corev1.Node {
	pool, zone := pools[i%len(pools)], fmt.Sprintf("zone-%d", i%zones)
	subnet := fmt.Sprintf("10.%d.%d.0/24", 16+i>>8, i&255)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: nodeName(i),
			Labels: map[string]string{
				"beta.kubernetes.io/arch":                    "amd64",
				"beta.kubernetes.io/os":                      "linux",
				"beta.kubernetes.io/instance-type":           "m6i.8xlarge",
				"failure-domain.beta.kubernetes.io/region":   "region-1",
				"failure-domain.beta.kubernetes.io/zone":     zone,
				"kubernetes.io/arch":                         "amd64",
				"kubernetes.io/hostname":                     nodeName(i),
				"kubernetes.io/os":                           "linux",
				"node-role.kubernetes.io/worker":             "",
				"node.kubernetes.io/instance-type":           "m6i.8xlarge",
				"pool":                                       pool,
				"topology.ebs.csi.example.com/zone":          zone,
				"topology.kubernetes.io/region":              "region-1",
				"topology.kubernetes.io/zone":                zone,
				"feature.node.kubernetes.io/cpu-model.id":    "106",
				"feature.node.kubernetes.io/kernel-version":  "6.8.0",
				"feature.node.kubernetes.io/system-os_id":    "ubuntu",
				"feature.node.kubernetes.io/cpu-cpuid.AVX2":  "true",
				"feature.node.kubernetes.io/cpu-cpuid.VAES":  "true",
				"feature.node.kubernetes.io/storage-nonrot":  "true",
				"feature.node.kubernetes.io/network-sriov":   "false",
				"cluster.example.com/machine-deployment":     "workers-" + pool,
				"cluster.example.com/machine-template-hash":  digest("machine", i%7)[:10],
				"cluster.example.com/maintenance-group-name": fmt.Sprintf("group-%d", i%12),
			},
			Annotations: map[string]string{
				"csi.volume.kubernetes.io/nodeid": fmt.Sprintf(`{"ebs.csi.example.com":"i-%s","nfs.csi.k8s.io":"%s"}`,
					digest("instance", i)[:17], nodeName(i)),
				"kubeadm.alpha.kubernetes.io/cri-socket": "unix:///var/run/containerd/containerd.sock",
				"node.alpha.kubernetes.io/ttl":           "15",
				"network.example.com/ipv4-pod-cidr":      subnet,
				"cluster.example.com/machine": fmt.Sprintf("fleet-system/workers-%s-%s",
					pool, digest("machine", i)[:5]),
				"volumes.kubernetes.io/controller-managed-attach-detach": "true",
			},
		},
		Spec: corev1.NodeSpec{
			PodCIDR: subnet, PodCIDRs: []string{subnet},
			ProviderID: fmt.Sprintf("cloud:///%s/i-%s", zone, digest("instance", i)[:17]),
		},
		Status: nodeStatus(i),
	}
	if pool == "gpu" {
		n.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}
		n.Status.Capacity["nvidia.com/gpu"] = resource.MustParse("8")
		n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("8")
	}
	return n
}

// virtualNode returns the i-th node that stands for another cluster.
func virtualNode(i int) *corev1.Node {
	n := node(i)
	n.Name = virtualNodeName(i)
	n.Labels["kubernetes.io/hostname"] = n.Name
	n.Labels["liqo.io/type"], n.Labels["liqo.io/remote-cluster-id"] = "virtual-node", Consumer(i)
	n.Spec.Taints = []corev1.Taint{
		{Key: "virtual-node.liqo.io/not-allowed", Value: "true", Effect: corev1.TaintEffectNoExecute},
	}
	return n
}

func nodeStatus(i int) corev1.NodeStatus {
	allocatable := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("31850m"), corev1.ResourceMemory: resource.MustParse("127432196Ki"),
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("483183820800"),
		"hugepages-1Gi": resource.MustParse("0"), "hugepages-2Mi": resource.MustParse("0"),
	}
	capacity := allocatable.DeepCopy()
	capacity[corev1.ResourceCPU] = resource.MustParse("32")
	capacity[corev1.ResourceMemory] = resource.MustParse("130578948Ki")
	capacity[corev1.ResourceEphemeralStorage] = resource.MustParse("524274668Ki")
	features := &corev1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: new(true), UserNamespaces: new(true)}
	return corev1.NodeStatus{
		Capacity: capacity, Allocatable: allocatable,
		Conditions: nodeConditions(),
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: hostIP(i)},
			{Type: corev1.NodeHostName, Address: nodeName(i)},
			{Type: corev1.NodeInternalDNS, Address: nodeName(i) + ".region-1.compute.internal"},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: digest("machine-id", i)[:32], SystemUUID: digest("uuid", i)[:32], BootID: digest("boot", i)[:32],
			KernelVersion: "6.8.0-1021-cloud", OSImage: "Ubuntu 24.04.2 LTS", ContainerRuntimeVersion: "containerd://2.1.3",
			KubeletVersion: "v1.37.2", OperatingSystem: "linux", Architecture: "amd64",
		},
		Images: images(i),
		RuntimeHandlers: []corev1.NodeRuntimeHandler{
			{Name: "", Features: features}, {Name: "runc", Features: features},
		},
	}
}

func hostIP(i int) string { return fmt.Sprintf("172.16.%d.%d", i>>8, i&255) }

// nodeConditions returns the conditions of the kubelet and of the node problem detector.
func nodeConditions() []corev1.NodeCondition {
	var all []corev1.NodeCondition
	add := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) {
		all = append(all, corev1.NodeCondition{
			Type: kind, Status: status, LastHeartbeatTime: after(80 * time.Hour), LastTransitionTime: since,
			Reason: reason, Message: message,
		})
	}
	add("KernelDeadlock", corev1.ConditionFalse, "KernelHasNoDeadlock", "kernel has no deadlock")
	add("ReadonlyFilesystem", corev1.ConditionFalse, "FilesystemIsNotReadOnly", "Filesystem is not read-only")
	add("FrequentKubeletRestart", corev1.ConditionFalse, "NoFrequentKubeletRestart", "kubelet is functioning properly")
	add("NetworkUnavailable", corev1.ConditionFalse, "CalicoIsUp", "Calico is running on this node")
	add(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory",
		"kubelet has sufficient memory available")
	add(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
	add(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available")
	add(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	return all
}

func images(node int) []corev1.ContainerImage {
	all := make([]corev1.ContainerImage, nodeImages)
	for i := range all {
		name, which := fmt.Sprintf("registry.example.com/team-%02d/service-%03d", i%20, i), node%50+i
		all[i] = corev1.ContainerImage{
			Names:     []string{name + "@sha256:" + digest("image", which), fmt.Sprintf("%s:v1.%d.%d", name, which%30, i)},
			SizeBytes: int64(40+i) << 20,
		}
	}
	return all
}
