package nodes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/internal/capacity"
)

func TestWhichPodsCount(t *testing.T) {
	none := func(*corev1.Pod) {}
	for _, tc := range []struct {
		name     string
		with     func(*corev1.Pod)
		counts   bool
		consumer string
	}{
		{"running", phase(corev1.PodRunning), true, ""},
		{"bound, not yet running", phase(corev1.PodPending), true, ""},
		{"without a phase", none, true, ""},
		{"of unknown state", phase(corev1.PodUnknown), true, ""},
		{"being deleted, of unknown state", deleted(phase(corev1.PodUnknown)), true, ""},
		{"offloaded by Liqo v1, being deleted", deleted(podLabel("offloading.liqo.io/origin", "rome")), true, "rome"},
		{"being deleted, failed", deleted(phase(corev1.PodFailed)), false, ""},
		{"succeeded", phase(corev1.PodSucceeded), false, ""},
		{"failed", phase(corev1.PodFailed), false, ""},
		{"not bound", unbound(none), false, ""},
		{"offloaded by Liqo v1, not bound", unbound(podLabel("offloading.liqo.io/origin", "rome")), true, "rome"},
		{"offloaded by Liqo v0, not bound", unbound(podLabel("virtualkubelet.liqo.io/origin", "rome")), true, "rome"},
		{"offloaded, not bound, succeeded", unbound(podLabel("offloading.liqo.io/origin", "rome"), phase(corev1.PodSucceeded)), false, "rome"},
		{"offloaded by Liqo v1", podLabel("offloading.liqo.io/origin", "rome"), true, "rome"},
		{"offloaded by Liqo v0", podLabel("virtualkubelet.liqo.io/origin", "rome"), true, "rome"},
		{"labelled as a shadow pod", podLabel("liqo.io/shadowPod", "true"), true, ""},
	} {
		got, counts := placeOf(aPod("p", "n", nil, tc.with))
		if counts != tc.counts || got.Consumer != tc.consumer || got.Key != "uid-of-p" {
			t.Errorf("%s: counts %v, consumer %q, key %q", tc.name, counts, got.Consumer, got.Key)
		}
	}
}

// deleted is for a pod that has been deleted and still exists: the scheduler counts it until it is gone or finished.
func deleted(with func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		with(p)
		p.DeletionTimestamp = new(metav1.Unix(1000, 0))
	}
}

func unbound(with ...func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, f := range with {
			f(p)
		}
		p.Spec.NodeName = ""
	}
}

// podsOfEveryKind returns pods whose requests are not just the sum over their containers.
func podsOfEveryKind() map[string]*corev1.Pod {
	requests := func(pairs ...string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: list(pairs...)}
	}
	always := corev1.ContainerRestartPolicyAlways
	return map[string]*corev1.Pod{
		"init containers count by the largest": aPod("p", "n", list("cpu", "1"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{
				{Name: "a", Resources: requests("cpu", "3")},
				{Name: "b", Resources: requests("cpu", "2", "memory", "1Gi")},
			}
		}),
		"sidecars count with the containers": aPod("p", "n", list("cpu", "1"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "a", RestartPolicy: &always, Resources: requests("cpu", "500m")}}
		}),
		"overhead is added": aPod("p", "n", list("cpu", "1"), func(p *corev1.Pod) {
			p.Spec.Overhead = list("cpu", "250m", "memory", "120Mi")
		}),
		"pod-level requests replace the sum": aPod("p", "n", list("cpu", "100m"), func(p *corev1.Pod) {
			r := requests("cpu", "3")
			p.Spec.Resources = &r
		}),
		"a resize in progress counts the larger amount": aPod("p", "n", list("cpu", "2"), func(p *corev1.Pod) {
			r := requests("cpu", "1")
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "main", AllocatedResources: list("cpu", "1"), Resources: &r},
			}
		}),
		"a resize down counts when it is done": aPod("p", "n", list("cpu", "1"), func(p *corev1.Pod) {
			r := requests("cpu", "2")
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "main", AllocatedResources: list("cpu", "2"), Resources: &r},
			}
		}),
		"an infeasible resize does not count": aPod("p", "n", list("cpu", "64"), func(p *corev1.Pod) {
			r := requests("cpu", "1")
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "main", AllocatedResources: list("cpu", "1"), Resources: &r},
			}
			p.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible},
			}
		}),
		"extended resources": aPod("p", "n", list("nvidia.com/gpu", "2")),
		"no requests":        aPod("p", "n", nil),
	}
}

func TestRequestsAreWhatTheSchedulerCounts(t *testing.T) {
	want := map[string]capacity.Amounts{
		"init containers count by the largest":          {"cpu": 3000, "memory": 1 << 30},
		"sidecars count with the containers":            {"cpu": 1500},
		"overhead is added":                             {"cpu": 1250, "memory": 120 << 20},
		"pod-level requests replace the sum":            {"cpu": 3000},
		"a resize in progress counts the larger amount": {"cpu": 2000},
		"a resize down counts when it is done":          {"cpu": 2000},
		"an infeasible resize does not count":           {"cpu": 1000},
		"extended resources":                            {"nvidia.com/gpu": 2},
		"no requests":                                   {},
	}
	for name, p := range podsOfEveryKind() {
		if diff := cmp.Diff(want[name], requestsOf(p)); diff != "" {
			t.Errorf("%s (-want +got): %s", name, diff)
		}
	}
}
