package nodes

import (
	"maps"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/quantity"
)

// asScheduler counts requests like kube-scheduler with its default feature gates.
var asScheduler = podresource.PodResourcesOptions{
	UseStatusResources: true,
	InPlacePodLevelResourcesVerticalScalingEnabled: true,
}

// placeMask keeps what placeOf reads of a pod, and requestsMask what requestsOf reads: together some 5
// % of a usual pod. The field numbers come from k8s.io/api/core/v1/generated.proto.
var (
	placeMask = message(map[protowire.Number]*mask{
		1: metadataMask(entry.keyed(liqo.OriginLabel, liqo.OriginLabelV0, liqo.CreatorLabel), map[protowire.Number]*mask{
			13: message(map[protowire.Number]*mask{1: whole, 4: whole}).keyed(shadowPodKind.Kind), // ownerReferences: kind, uid
		}),
		2: message(map[protowire.Number]*mask{10: whole}), // spec: nodeName
		3: message(map[protowire.Number]*mask{1: whole}),  // status: phase
	})
	requestsMask = message(map[protowire.Number]*mask{
		2: message(map[protowire.Number]*mask{ // spec
			2:  containerMask,    // containers
			20: containerMask,    // initContainers
			32: whole,            // overhead
			40: requirementsMask, // resources
		}),
		3: message(map[protowire.Number]*mask{ // status
			2: message(map[protowire.Number]*mask{ // conditions
				1: whole, // type
				2: whole, // status
				5: whole, // reason
			}).keyed(string(corev1.PodResizePending)),
			8:  containerStatusMask, // containerStatuses
			10: containerStatusMask, // initContainerStatuses
			19: whole,               // allocatedResources
			20: requirementsMask,    // resources
		}),
	})
)

var (
	requirementsMask = message(map[protowire.Number]*mask{2: whole}) // requests
	containerMask    = message(map[protowire.Number]*mask{
		1:  whole,            // name
		8:  requirementsMask, // resources
		24: whole,            // restartPolicy
	})
	containerStatusMask = message(map[protowire.Number]*mask{
		1:  whole,            // name
		10: whole,            // allocatedResources
		11: requirementsMask, // resources
	})
)

// metadataMask keeps what identifies an object, these labels, and more fields. The field
// numbers come from k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.
func metadataMask(labels *mask, more map[protowire.Number]*mask) *mask {
	kept := map[protowire.Number]*mask{
		1:  whole,  // name
		3:  whole,  // namespace
		5:  whole,  // uid
		6:  whole,  // resourceVersion
		11: labels, // labels
	}
	maps.Copy(kept, more)
	return message(kept)
}

// ParsePod returns what the ledger needs of a pod. A pod that is finished does not count, and neither
// does one of this cluster's own before it is bound to a node. Those of consumers count from the moment
// the API server has them: a consumer decides for how long its pods wait, by scheduling gates and
// volumes, and what they were accepted for must not be given to others meanwhile.
func ParsePod(p *corev1.Pod) (pod capacity.Pod, counts bool) {
	if pod, counts = placeOf(p); counts {
		pod.Requests = requestsOf(p)
	}
	return pod, counts
}

// placeOf is ParsePod without the requests. A pod that runs elsewhere is bound to a virtual node,
// which the ledger leaves out. No label decides that, because the owner of a pod may set any label.
func placeOf(p *corev1.Pod) (pod capacity.Pod, counts bool) {
	// A pod that was deleted and created again under its name is another pod.
	pod = capacity.Pod{Key: string(p.UID), From: madeFrom(p)}
	pod.Node, pod.Consumer = p.Spec.NodeName, origin(p)
	finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if finished || pod.Node == "" && pod.Consumer == "" {
		return pod, false
	}
	if creator := p.Labels[liqo.CreatorLabel]; pod.Consumer != "" && len(creator) <= capacity.MaxCreator {
		pod.Creator = creator
	}
	return pod, true
}

// requestsOf returns what the scheduler counts, without the pod itself: the ledger counts each pod
// as one.
func requestsOf(p *corev1.Pod) capacity.Amounts {
	requests := quantity.AmountsOf(podresource.PodRequests(p, asScheduler), quantity.Up)
	delete(requests, capacity.Pods)
	return requests
}

// origin returns the ID of the consumer that offloaded the pod here, empty for a local pod.
func origin(p *corev1.Pod) string {
	if id := p.Labels[liqo.OriginLabel]; id != "" {
		return id
	}
	return p.Labels[liqo.OriginLabelV0]
}
