package nodes

import (
	corev1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/source/masked"
)

// asScheduler counts requests like kube-scheduler with its default feature gates.
var asScheduler = podresource.PodResourcesOptions{
	UseStatusResources: true,
	InPlacePodLevelResourcesVerticalScalingEnabled: true,
}

// placeMask keeps what placeOf reads of a pod, and requestsMask what requestsOf reads: together some 5
// % of a usual pod. The field numbers come from k8s.io/api/core/v1/generated.proto.
var (
	placeMask = masked.Message(masked.Fields{
		1: masked.Metadata(masked.Entry.Keyed(liqo.OriginLabel, liqo.OriginLabelV0, liqo.CreatorLabel), masked.Fields{
			// ownerReferences: kind, uid
			13: masked.Message(masked.Fields{1: masked.Whole, 4: masked.Whole}).Keyed(shadowPodKind.Kind),
		}),
		2: masked.Message(masked.Fields{10: masked.Whole}), // spec: nodeName
		3: masked.Message(masked.Fields{ // status
			1:  masked.Whole,                                   // phase
			18: masked.Message(masked.Fields{2: masked.Whole}), // extendedResourceClaimStatus: resourceClaimName
		}),
	})
	requestsMask = masked.Message(masked.Fields{
		2: masked.Message(masked.Fields{ // spec
			2:  containerMask,    // containers
			20: containerMask,    // initContainers
			32: masked.Whole,     // overhead
			40: requirementsMask, // resources
		}),
		3: masked.Message(masked.Fields{ // status
			2: masked.Message(masked.Fields{ // conditions
				1: masked.Whole, // type
				2: masked.Whole, // status
				5: masked.Whole, // reason
			}).Keyed(string(corev1.PodResizePending)),
			8:  containerStatusMask, // containerStatuses
			10: containerStatusMask, // initContainerStatuses
			19: masked.Whole,        // allocatedResources
			20: requirementsMask,    // resources
		}),
	})
)

var (
	requirementsMask = masked.Message(masked.Fields{2: masked.Whole}) // requests
	containerMask    = masked.Message(masked.Fields{
		1:  masked.Whole,     // name
		8:  requirementsMask, // resources
		24: masked.Whole,     // restartPolicy
	})
	containerStatusMask = masked.Message(masked.Fields{
		1:  masked.Whole,     // name
		10: masked.Whole,     // allocatedResources
		11: requirementsMask, // resources
	})
)

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
	if c := p.Status.ExtendedResourceClaimStatus; c != nil {
		pod.Claim = capacity.ClaimKey(p.Namespace, c.ResourceClaimName)
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
