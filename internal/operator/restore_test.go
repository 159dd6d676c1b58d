package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/internal/controllers/podsecurity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// restoresOf returns how often objects of a kind were restored.
func restoresOf(t *testing.T, metrics *prometheus.Registry, kind string) int {
	t.Helper()
	all, err := metrics.Gather()
	test.Must(t, err)
	for _, family := range all {
		for _, m := range family.GetMetric() {
			of := family.GetName() == "proffer_restores_total" && m.GetLabel()[0].GetValue() == kind ||
				family.GetName() == "proffer_slice_restores_total" && kind == "ResourceSlice"
			if of {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	t.Fatalf("there is no metric of the restores of %s", kind)
	return 0
}

// eachChange reads an object and calls do, at first and after each change of the object, for some time, and on until
// enough: a machine that is busy takes longer for the same. The watch costs no processor time between the changes. A
// conflict in do is followed by the next change.
func eachChange(
	ctx context.Context, api client.WithWatch, object client.Object, during time.Duration, do func() error, enough func() bool,
) error {
	kind, err := api.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	watching, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	one := &metav1.PartialObjectMetadataList{}
	one.SetGroupVersionKind(kind)
	changes, err := api.Watch(watching, one, client.InNamespace(object.GetNamespace()),
		client.MatchingFields{"metadata.name": object.GetName()})
	if err != nil {
		return err
	}
	defer changes.Stop()
	ending, stop := context.WithTimeout(ctx, during)
	defer stop()
	for over := ending.Done(); over != nil || !enough(); {
		select {
		case <-over:
			over = nil
			continue
		case _, open := <-changes.ResultChan():
			if !open {
				return errors.New("the watch has ended before there were enough changes")
			}
		}
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if err := do(); err != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

func TestARivalOfTheLevelOfANamespaceIsRestoredLessAndLessOften(t *testing.T) {
	metrics := prometheus.NewPedanticRegistry()
	const enforce = "pod-security.kubernetes.io/enforce"
	namespace := kubetest.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "contested-", Labels: map[string]string{"liqo.io/remote-cluster-id": "rome"},
		Annotations: map[string]string{"liqo.io/managed-by-namespace-map": "liqo-tenant-rome/milan"},
	}})
	startOperator(t, withElection(longLease(t)), func(o *parts) { o.metrics, o.OffloadedPodSecurity = metrics, podsecurity.Level("baseline") })
	rival := contest{
		object: namespace, least: 4, restored: func() bool { return namespace.Labels[enforce] == "baseline" },
		change: func() { namespace.Labels[enforce] = "privileged" },
	}
	n, err := rival.fight(t.Context(), rbac(t), 4*time.Second)
	test.Must(t, err)
	// Without a delay, it would be restored some 40 times a second.
	if restores := restoresOf(t, metrics, "Namespace"); restores < 3 || n > 8 || restores > n {
		t.Errorf("changed %d times, restored %d times; want at most 8 in 4 s", n, restores)
	}
}

func TestARivalOfAGrantIsRestoredLessAndLessOften(t *testing.T) {
	installSliceCRDs(t)
	goldNode(t, "gold-1", "cpu", "8")
	kubetest.Create(t, classGold())
	metrics := prometheus.NewPedanticRegistry()
	o := startOperator(t, func(o *parts) { o.metrics = metrics })
	slice := newTenancy(t, "rome").ask("s", nodestest.List("cpu", "2"))
	awaitAnswer(t, slice, "Accepted Incomplete cpu=2")
	grant := grantOf(t, namespaceOf(nil), slice)
	rival := contest{
		object: grant, least: 4, restored: func() bool { return grant.Spec.Resources.Cpu().Value() == 2 },
		change: func() {
			grant.Spec.Resources = nodestest.List("cpu", "1")
			if left := o.offered("oslo")["gold"]["cpu"]; left > 6000 {
				t.Errorf("oslo is offered %dm while the Grant says less than was granted, want 6000m", left)
			}
		},
	}
	n, err := rival.fight(t.Context(), rbac(t), 4*time.Second)
	test.Must(t, err)
	if restores := restoresOf(t, metrics, "Grant"); restores < 3 || n > 9 || restores > n {
		t.Errorf("changed %d times, restored %d times; want at most 9 in 4 s", n, restores)
	}
	if got := summarize(answerOf(t, slice)); got != "Accepted Incomplete cpu=2" {
		t.Errorf("the answer is now %q", got)
	}
	// The other kinds are at peace.
	err = testutil.GatherAndCompare(metrics, strings.NewReader(fmt.Sprintf(`
# HELP proffer_restores_total Objects of the operator that other clients changed and the operator restored, by kind.
# TYPE proffer_restores_total counter
proffer_restores_total{kind="Grant"} %d
proffer_restores_total{kind="ResourcePolicy"} 0
`, restoresOf(t, metrics, "Grant"))), "proffer_restores_total")
	if err != nil {
		t.Error(err)
	}
}
