package controllers

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
)

// retryPeriod has a follower notice soon that the leader is gone.
const retryPeriod = 200 * time.Millisecond

// hold takes a Lease for somebody who never gives it up.
func hold(t *testing.T, name string) {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("somebody"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now,
		},
	}
	if _, err := clientset.CoordinationV1().Leases(metav1.NamespaceDefault).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func resourceVersion(t *testing.T, policy string) string {
	t.Helper()
	var p v1alpha1.ResourcePolicy
	if err := api.Get(t.Context(), client.ObjectKey{Name: policy}, &p); err != nil {
		t.Fatal(err)
	}
	return p.ResourceVersion
}
