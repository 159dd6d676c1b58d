package controllers

import (
	corev1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"

	"proffer.dev/proffer/internal/capacity"
)

// Labels that Liqo sets on pods, see github.com/liqotech/liqo/pkg/consts of v1 and of v0.
const (
	originLabel   = "offloading.liqo.io/origin"
	originLabelV0 = "virtualkubelet.liqo.io/origin"
	// shadowPodLabel marks a pod of this cluster that runs elsewhere: it stands for no use of this cluster's nodes.
	shadowPodLabel = "liqo.io/shadowPod"
)

// asScheduler has requests counted the way kube-scheduler counts them with the feature gates it has by default.
var asScheduler = podresource.PodResourcesOptions{
	UseStatusResources: true,
	InPlacePodLevelResourcesVerticalScalingEnabled: true,
}

// parsePod keeps of a pod what the account needs. Tracked is false for a pod that does not count: one that is not bound to a node, is
// finished, or is the shadow of a pod that runs elsewhere.
func parsePod(p *corev1.Pod) (pod capacity.Pod, tracked bool) {
	pod = capacity.Pod{Key: podKey(p)}
	finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if p.Spec.NodeName == "" || finished || p.Labels[shadowPodLabel] == "true" {
		return pod, false
	}
	pod.Node = p.Spec.NodeName
	pod.Consumer = origin(p)
	pod.Requests = capacity.AmountsOf(podresource.PodRequests(p, asScheduler), capacity.Up)
	// The account counts each pod as one by itself.
	delete(pod.Requests, capacity.Pods)
	return pod, true
}

// podKey is the UID: a pod that was deleted and made anew under its name is another pod.
func podKey(p *corev1.Pod) string { return string(p.UID) }

// origin is the ID of the consumer that offloaded the pod here, empty for a pod of this cluster's own.
func origin(p *corev1.Pod) string {
	if id := p.Labels[originLabel]; id != "" {
		return id
	}
	return p.Labels[originLabelV0]
}

// stripPod keeps in the cache only what parsePod reads, some 5 % of a usual pod.
func stripPod(obj any) (any, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	stripMeta(&p.ObjectMeta)
	labels := map[string]string{}
	for _, key := range []string{originLabel, originLabelV0, shadowPodLabel} {
		if v, ok := p.Labels[key]; ok {
			labels[key] = v
		}
	}
	p.Labels = labels
	p.Spec = corev1.PodSpec{
		NodeName:       p.Spec.NodeName,
		Containers:     stripContainers(p.Spec.Containers),
		InitContainers: stripContainers(p.Spec.InitContainers),
		Overhead:       p.Spec.Overhead,
		Resources:      p.Spec.Resources,
	}
	var conditions []corev1.PodCondition
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodResizePending {
			conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status, Reason: c.Reason}}
		}
	}
	p.Status = corev1.PodStatus{
		Phase:                 p.Status.Phase,
		Conditions:            conditions,
		ContainerStatuses:     stripStatuses(p.Status.ContainerStatuses),
		InitContainerStatuses: stripStatuses(p.Status.InitContainerStatuses),
		Resources:             p.Status.Resources,
		AllocatedResources:    p.Status.AllocatedResources,
	}
	return p, nil
}

func stripContainers(in []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, 0, len(in))
	for _, c := range in {
		out = append(out, corev1.Container{
			Name:          c.Name,
			Resources:     corev1.ResourceRequirements{Requests: c.Resources.Requests},
			RestartPolicy: c.RestartPolicy,
		})
	}
	return out
}

// stripStatuses leaves out containers whose status says nothing of resources: the request of the spec counts for these.
func stripStatuses(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, c := range in {
		if c.AllocatedResources == nil && c.Resources == nil {
			continue
		}
		s := corev1.ContainerStatus{Name: c.Name, AllocatedResources: c.AllocatedResources}
		if c.Resources != nil {
			s.Resources = &corev1.ResourceRequirements{Requests: c.Resources.Requests}
		}
		out = append(out, s)
	}
	return out
}
