package population

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podStatus returns the kubelet's status of a running pod.
func podStatus(i int, s Size, spec *corev1.PodSpec) corev1.PodStatus {
	// Only the first 250 pods of a node have an address of their own. Nothing here depends on it.
	ip := fmt.Sprintf("10.%d.%d.%d", 16+i%s.Nodes>>8, i%s.Nodes&255, 2+i/s.Nodes%250)
	started := after(time.Hour)
	status := corev1.PodStatus{
		ObservedGeneration: 1,
		Phase:              corev1.PodRunning,
		HostIP:             hostIP(i % s.Nodes), HostIPs: []corev1.HostIP{{IP: hostIP(i % s.Nodes)}},
		PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		StartTime:         &started,
		QOSClass:          corev1.PodQOSBurstable,
		ContainerStatuses: containerStatuses(i, spec.Containers),
	}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: started, ObservedGeneration: 1,
		})
	}
	status.InitContainerStatuses = containerStatuses(i, spec.InitContainers)
	for k := range status.InitContainerStatuses {
		c := &status.InitContainerStatuses[k]
		if spec.InitContainers[k].RestartPolicy == nil {
			c.Started = new(false)
			c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "Completed", StartedAt: started, FinishedAt: started, ContainerID: c.ContainerID,
			}}
		}
	}
	return status
}

func containerStatuses(pod int, containers []corev1.Container) []corev1.ContainerStatus {
	all := make([]corev1.ContainerStatus, 0, len(containers))
	for k, c := range containers {
		status := corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: "registry.example.com/images@sha256:" + digest("image "+c.Image, k),
			ContainerID:  "containerd://" + digest(c.Name, pod),
			State:        corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: after(time.Hour)}},
			Ready:        true,
			Started:      new(true),
			RestartCount: int32(pod % 3),
			// Kubelets report both since pods can be resized in place.
			AllocatedResources: c.Resources.Requests,
			Resources:          c.Resources.DeepCopy(),
		}
		all = append(all, status)
	}
	return all
}
