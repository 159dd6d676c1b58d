package corewatch

import (
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresource "k8s.io/component-helpers/resource"

	"proffer.dev/proffer/internal/capacity"
)

// Labels that Liqo sets on pods, see github.com/liqotech/liqo/pkg/consts of v1 and of v0.
const (
	OriginLabel   = "offloading.liqo.io/origin"
	OriginLabelV0 = "virtualkubelet.liqo.io/origin"
	// ShadowPodLabel marks a pod of this cluster that runs elsewhere: it stands for no use of this cluster's nodes.
	ShadowPodLabel = "liqo.io/shadowPod"
)

// asScheduler has requests counted the way kube-scheduler counts them with the feature gates it has by default.
var asScheduler = podresource.PodResourcesOptions{
	UseStatusResources: true,
	InPlacePodLevelResourcesVerticalScalingEnabled: true,
}

// podMask keeps what parsePod reads, some 5 % of a usual pod. The numbers are those of k8s.io/api/core/v1/generated.proto.
var podMask = message(map[protowire.Number]*mask{
	1: metadataMask(entry.keyed(OriginLabel, OriginLabelV0, ShadowPodLabel)),
	2: message(map[protowire.Number]*mask{ // spec
		2:  containerMask, // containers
		10: whole,         // nodeName
		20: containerMask, // initContainers
		32: whole,         // overhead
		40: requestsMask,  // resources
	}),
	3: message(map[protowire.Number]*mask{ // status
		1: whole, // phase
		2: message(map[protowire.Number]*mask{ // conditions
			1: whole, // type
			2: whole, // status
			5: whole, // reason
		}).keyed(string(corev1.PodResizePending)),
		8:  containerStatusMask, // containerStatuses
		10: containerStatusMask, // initContainerStatuses
		19: whole,               // allocatedResources
		20: requestsMask,        // resources
	}),
})

var (
	requestsMask  = message(map[protowire.Number]*mask{2: whole}) // requests
	containerMask = message(map[protowire.Number]*mask{
		1:  whole,        // name
		8:  requestsMask, // resources
		24: whole,        // restartPolicy
	})
	containerStatusMask = message(map[protowire.Number]*mask{
		1:  whole,        // name
		10: whole,        // allocatedResources
		11: requestsMask, // resources
	})
)

// metadataMask keeps of an object's metadata what identifies it, and these labels. The numbers are those of
// k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.
func metadataMask(labels *mask) *mask {
	return message(map[protowire.Number]*mask{
		1:  whole,                                          // name
		3:  whole,                                          // namespace
		5:  whole,                                          // uid
		6:  whole,                                          // resourceVersion
		11: labels,                                         // labels
		12: entry.keyed(metav1.InitialEventsAnnotationKey), // annotations
	})
}

// parsePod keeps of a pod what the account needs. Tracked is false for a pod that does not count: one that is not bound to a node, is
// finished, or is the shadow of a pod that runs elsewhere.
func parsePod(p *corev1.Pod) (pod capacity.Pod, tracked bool) {
	pod = capacity.Pod{Key: string(p.UID)}
	finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if p.Spec.NodeName == "" || finished || p.Labels[ShadowPodLabel] == "true" {
		return pod, false
	}
	pod.Node = p.Spec.NodeName
	pod.Consumer = origin(p)
	pod.Requests = capacity.AmountsOf(podresource.PodRequests(p, asScheduler), capacity.Up)
	// The account counts each pod as one by itself.
	delete(pod.Requests, capacity.Pods)
	return pod, true
}

// origin is the ID of the consumer that offloaded the pod here, empty for a pod of this cluster's own.
func origin(p *corev1.Pod) string {
	if id := p.Labels[OriginLabel]; id != "" {
		return id
	}
	return p.Labels[OriginLabelV0]
}
