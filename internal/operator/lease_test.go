package operator

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// shortLease expires, and is taken over, as fast as the API allows: its duration is in whole
// seconds.
func shortLease(t *testing.T) *kube.LeaderElection {
	t.Helper()
	return &kube.LeaderElection{
		Namespace: kubetest.LeaseNamespace(t), LeaseDuration: 2 * time.Second, RenewDeadline: time.Second,
		RetryPeriod: 100 * time.Millisecond,
	}
}

// longLease does not expire during a test, however slow.
func longLease(t *testing.T) *kube.LeaderElection {
	t.Helper()
	return &kube.LeaderElection{
		Namespace: kubetest.LeaseNamespace(t), LeaseDuration: 2 * time.Hour, RenewDeadline: time.Hour,
		RetryPeriod: 100 * time.Millisecond,
	}
}

func withElection(election *kube.LeaderElection) func(*parts) {
	return func(o *parts) { o.LeaderElection = election }
}

func resourceVersion(t *testing.T, policy string) string {
	t.Helper()
	var p v1alpha1.ResourcePolicy
	test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKey{Name: policy}, &p))
	return p.ResourceVersion
}
