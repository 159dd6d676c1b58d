package operator

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// The operator has only the rights of the default manifests and of the component.
func TestTheOperatorSendsPodsOnWithTheComponent(t *testing.T) {
	config := newBroker(t)
	kubetest.Create(t, &v1alpha1.Orchestration{ObjectMeta: metav1.ObjectMeta{Name: "all"}})
	launchOperator(t, config, orchestrating(t))
	awaitSelected(t, "team-rome", "milan paris")
	u := newOffloading()
	test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKey{Namespace: "team-rome", Name: "offloading"}, u))
	if owner := u.GetAnnotations()["proffer.dev/orchestration"]; owner != "all" {
		t.Errorf("it is of %q", owner)
	}
}
