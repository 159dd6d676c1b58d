package operator

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

func TestANewLeaderWritesNothingToASliceThatMovedToLiqosClass(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8", "memory", "16Gi", "pods", "10")
	kubetest.Create(t, classGold())
	rome := newTenancy(t, "rome")
	first := startOperator(t)
	for _, class := range []string{"default", ""} {
		slice := rome.ask("slice-"+class+"x", nodestest.List("cpu", "8", "memory", "4Gi"))
		awaitAnswer(t, slice, "Accepted Incomplete cpu=8,memory=4Gi")
		first.stop()
		kubetest.Edit(t, slice, func(o client.Object) { kubetest.SetField(o, class, "spec", "class") },
			kubetest.WriteSpec)
		kubetest.Edit(t, slice, func(o client.Object) {
			overwrite(o, "Accepted", "ResourceSliceResourcesAccepted", map[string]any{"cpu": "8", "memory": "4Gi"})
		}, kubetest.WriteStatus)

		first = startOperator(t)
		// The slice holds no capacity any more, and the operator writes nothing to it.
		next := rome.ask("next-"+class+"x", nodestest.List("cpu", "8"))
		awaitAnswer(t, next, "Accepted Incomplete cpu=8")
		if got := summarize(answerOf(t, slice)); got != "Accepted ResourceSliceResourcesAccepted cpu=8,memory=4Gi" {
			t.Errorf("class %q: the answer of the slice is %s", class, got)
		}
		kubetest.Remove(t, slice)
		kubetest.Remove(t, next)
	}
}
