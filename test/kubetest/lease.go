package kubetest

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"proffer.dev/proffer/test"
)

// LeaseNamespace creates a namespace for the Lease of one test.
func LeaseNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "lease-"}}
	test.Must(t, API(t).Create(t.Context(), namespace))
	return namespace.Name
}

// Leases returns a client for the Leases of a namespace.
func Leases(t *testing.T, namespace string) coordinationv1client.LeaseInterface {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(Cluster(t).Config)
	test.Must(t, err)
	return clientset.CoordinationV1().Leases(namespace)
}

// HeldLease returns the state of a Lease that another program holds and never gives up.
func HeldLease() coordinationv1.LeaseSpec {
	now := metav1.NowMicro()
	return coordinationv1.LeaseSpec{
		HolderIdentity:       new("somebody"),
		LeaseDurationSeconds: new(int32(3600)),
		AcquireTime:          &now,
		RenewTime:            &now,
	}
}

// SetLease overwrites the state of a Lease, whoever holds it.
func SetLease(t *testing.T, namespace, name string, spec coordinationv1.LeaseSpec) {
	t.Helper()
	leases := Leases(t, namespace)
	test.Eventually(t, func() string {
		lease, err := leases.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			lease.Spec = spec
			_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}
