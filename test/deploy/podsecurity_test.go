package deploy

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"proffer.dev/proffer/test"
)

// podOf returns a pod like those of the ReplicaSet controller.
func podOf(t *testing.T, components ...string) *corev1.Pod {
	t.Helper()
	template := deployment(t, render(t, components...)).Spec.Template
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, GenerateName: "proffer-", Labels: template.Labels, Annotations: template.Annotations,
		},
		Spec: template.Spec,
	}
}

func TestPodsOfTheDeploymentAreAdmitted(t *testing.T) {
	for _, set := range [][]string{nil, {"flat"}, {"tls"}, {"accounting", "tls", "catalog-http"}} {
		t.Run(strings.Join(set, "+"), func(t *testing.T) {
			pod := podOf(t, set...)
			test.Must(t, cluster.client.Create(t.Context(), pod))
			remove(t, pod)
			if got := ptr.Deref(pod.Spec.Priority, 0); got != 1_000_000 {
				t.Errorf("priority = %d, want that of the class proffer", got)
			}
			// Any pod may use the class, so it must not preempt others.
			if got := ptr.Deref(pod.Spec.PreemptionPolicy, ""); got != corev1.PreemptNever {
				t.Errorf("preemption policy = %q, want %q", got, corev1.PreemptNever)
			}
		})
	}
}

// Each pod differs in one field from the admitted one. So each case shows that the namespace
// enforces the restricted standard, and that the manifests need the field.
func TestPodsBelowTheRestrictedStandardAreRejected(t *testing.T) {
	for name, weaken := range map[string]func(*corev1.Pod){
		"as root":            func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsUser = ptr.To[int64](0) },
		"possibly as root":   func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsNonRoot = nil },
		"any system call":    func(p *corev1.Pod) { p.Spec.SecurityContext.SeccompProfile = nil },
		"more privileges":    func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil },
		"capabilities":       func(p *corev1.Pod) { p.Spec.Containers[0].SecurityContext.Capabilities = nil },
		"the host's network": func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"the host's files": func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
				Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf(t)
			weaken(pod)
			err := cluster.client.Create(t.Context(), pod)
			if err == nil {
				remove(t, pod)
			}
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `violates PodSecurity "restricted:latest"`) {
				t.Errorf("the API server answers %v, want a violation of the restricted standard", err)
			}
		})
	}
}

// The restricted standard does not require these settings.
func TestTheContainerIsReadOnlyAndHasRequestsAndAMemoryLimit(t *testing.T) {
	for _, set := range append([][]string{nil}, components(t)) {
		d := deployment(t, render(t, set...))
		c := container(t, d)
		if !ptr.Deref(c.SecurityContext.ReadOnlyRootFilesystem, false) {
			t.Error("the root filesystem is writable")
		}
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Secret == nil && v.ConfigMap == nil {
				t.Errorf("volume %+v: want only Secrets and ConfigMaps", v)
			}
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
			t.Errorf("requests = %v, want cpu and memory", c.Resources.Requests)
		}
		if c.Resources.Limits.Memory().IsZero() {
			t.Error("memory has no limit")
		}
	}
	var account corev1.ServiceAccount
	get(t, "proffer", &account)
	if ptr.Deref(account.AutomountServiceAccountToken, true) {
		t.Error("every pod with the account gets its token mounted")
	}
}
