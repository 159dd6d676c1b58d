package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// servedByProffer is the value of the entries that the operator keeps in the list.
const servedByProffer = "proffer"

// newServedList returns the operator's list of served classes, in the namespace of a Lease of its
// own.
func newServedList(t *testing.T) (list *v1alpha1.AdmissionParams, with func(*parts)) {
	t.Helper()
	election := longLease(t)
	list = kubetest.Create(t,
		&v1alpha1.AdmissionParams{ObjectMeta: metav1.ObjectMeta{Namespace: election.Namespace, Name: "served"}})
	return list, func(o *parts) { o.LeaderElection, o.ServedClasses = election, list.Name }
}

// awaitList waits until the list has exactly these entries.
func awaitList(t *testing.T, list *v1alpha1.AdmissionParams, want map[string]string) {
	t.Helper()
	test.Eventually(t, func() string {
		var now v1alpha1.AdmissionParams
		if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(list), &now); err != nil {
			return err.Error()
		}
		return cmp.Diff(want, now.Data, cmpopts.EquateEmpty())
	})
}

func inClass(class string) func(*v1alpha1.ResourcePolicySpec) {
	return func(s *v1alpha1.ResourcePolicySpec) { s.Class = class }
}

func TestTheListFollowsThePolicies(t *testing.T) {
	list, listing := newServedList(t)
	gold := kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "1"), inClass("gold")))
	twin := kubetest.Create(t, kubetest.Policy("twin", kubetest.Fixed("cpu", "2"), inClass("gold")))
	trial := kubetest.Create(t, kubetest.Policy("trial", kubetest.Fixed("cpu", "1"), inClass("trial"),
		func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeDryRun }))
	kubetest.Create(t, kubetest.Policy("unnamed", kubetest.Fixed("cpu", "1")))
	startOperator(t, listing)
	awaitList(t, list, map[string]string{"gold": servedByProffer})

	editPolicy(t, trial, func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeActive })
	awaitList(t, list, map[string]string{"gold": servedByProffer, "trial": servedByProffer})
	kubetest.Edit(t, list, func(o client.Object) { o.(*v1alpha1.AdmissionParams).Data["default"] = "liqo" }, kubetest.WriteSpec)
	editPolicy(t, trial, inClass("silver"))
	awaitList(t, list, map[string]string{"gold": servedByProffer, "silver": servedByProffer, "default": "liqo"})

	// A class stays on the list while any policy has it.
	kubetest.Remove(t, gold)
	kubetest.Remove(t, trial)
	awaitList(t, list, map[string]string{"gold": servedByProffer, "default": "liqo"})
	kubetest.Remove(t, twin)
	awaitList(t, list, map[string]string{"default": "liqo"})
}

func TestTheListHasTheClassesOfOthersWithoutAPolicy(t *testing.T) {
	list, listing := newServedList(t)
	kubetest.Remove(t, list) // The operator creates it.
	startOperator(t, listing, func(o *parts) { o.OtherClasses = []string{"default"} })
	awaitList(t, list, map[string]string{"default": servedByProffer})
}

func TestTheListIsRestoredWhenOthersChangeIt(t *testing.T) {
	list, listing := newServedList(t)
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "1"), inClass("gold")))
	startOperator(t, listing)
	right := map[string]string{"gold": servedByProffer}
	awaitList(t, list, right)

	kubetest.Edit(t, list,
		func(o client.Object) { o.(*v1alpha1.AdmissionParams).Data = map[string]string{"lead": servedByProffer} },
		kubetest.WriteSpec)
	awaitList(t, list, right)
	kubetest.Remove(t, list)
	awaitList(t, list, right)
}

func TestOnlyTheLeaderWritesTheList(t *testing.T) {
	list, listing := newServedList(t)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LeaderElectionID}, Spec: kubetest.HeldLease()}
	if _, err := kubetest.Leases(t, list.Namespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o := startOperator(t, listing)
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "1"), inClass("gold")))
	test.Eventually(o.t, func() string { return cmp.Diff(int64(1000), o.offered("rome")["gold"]["cpu"]) })
	awaitList(t, list, nil)

	lease.Spec.HolderIdentity = new("")
	kubetest.SetLease(t, list.Namespace, LeaderElectionID, lease.Spec)
	awaitList(t, list, map[string]string{"gold": servedByProffer})
}

func TestWithoutANamespaceThereIsNoList(t *testing.T) {
	mgr, err := ctrl.NewManager(rest.CopyConfig(kubetest.Cluster(t).Config),
		ctrl.Options{Scheme: NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	test.Must(t, err)
	debouncer := debounce.New(0)
	err = setup(mgr,
		parts{Options: Options{ServedClasses: "served"}, ledger: capacity.NewLedger(), table: table.New(), debouncer: debouncer})
	if err == nil || !strings.Contains(err.Error(), "write --leader-elect and --leader-election-namespace=NAMESPACE") {
		t.Errorf("got %v", err)
	}
}
