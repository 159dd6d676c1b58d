package operator

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kubetest"
)

// shortLease is lost, and taken over, as soon as the API allows: a Lease lasts for whole seconds.
func shortLease(t *testing.T) *kube.LeaderElection {
	t.Helper()
	return &kube.LeaderElection{Namespace: aNamespace(t), LeaseDuration: 2 * time.Second, RenewDeadline: time.Second, RetryPeriod: 100 * time.Millisecond}
}

// longLease is not lost by time that passes, not even in a slow test.
func longLease(t *testing.T) *kube.LeaderElection {
	t.Helper()
	return &kube.LeaderElection{Namespace: aNamespace(t), LeaseDuration: 2 * time.Hour, RenewDeadline: time.Hour, RetryPeriod: 100 * time.Millisecond}
}

func aNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "lease-"}}
	if err := kubetest.API(t).Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

func electing(election *kube.LeaderElection) func(*parts) {
	return func(o *parts) { o.election = election }
}

func leases(t *testing.T, namespace string) coordinationv1client.LeaseInterface {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(kubetest.Cluster(t).Config)
	if err != nil {
		t.Fatal(err)
	}
	return clientset.CoordinationV1().Leases(namespace)
}

// somebody's Lease is never given up.
func somebodys() coordinationv1.LeaseSpec {
	now := metav1.NowMicro()
	return coordinationv1.LeaseSpec{HolderIdentity: new("somebody"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now}
}

func resourceVersion(t *testing.T, policy string) string {
	t.Helper()
	var p v1alpha1.ResourcePolicy
	if err := kubetest.API(t).Get(t.Context(), client.ObjectKey{Name: policy}, &p); err != nil {
		t.Fatal(err)
	}
	return p.ResourceVersion
}
func setHolder(t *testing.T, namespace string, spec coordinationv1.LeaseSpec) {
	t.Helper()
	kubetest.Eventually(t, func() string {
		lease, err := leases(t, namespace).Get(t.Context(), LeaderElectionID, metav1.GetOptions{})
		if err == nil {
			lease.Spec = spec
			_, err = leases(t, namespace).Update(t.Context(), lease, metav1.UpdateOptions{})
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}
