package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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
	"proffer.dev/proffer/test/nodestest"
)

// operator is a running operator: everything in this package, against the API server.
type operator struct {
	t      *testing.T
	table  *table.Table
	ledger *capacity.Ledger
	stop   func()
	// marks counts the marks that awaitCaughtUp has created.
	marks int
}

// startOperator runs an operator until the test ends, and returns once its first offers are
// published.
func startOperator(t *testing.T, with ...func(*parts)) *operator {
	t.Helper()
	o := launchOperator(t, kubetest.Cluster(t).Config, with...)
	select {
	case <-o.table.Ready():
	case <-time.After(test.Timeout):
		t.Fatal("no offers were published in time")
	}
	return o
}

func launchOperator(t *testing.T, config *rest.Config, with ...func(*parts)) *operator {
	t.Helper()
	return launchLoggingOperator(t, config, logr.Logger{}, with...)
}

// launchLoggingOperator launches an operator with this log.
func launchLoggingOperator(t *testing.T, config *rest.Config, log logr.Logger, with ...func(*parts)) *operator {
	t.Helper()
	debouncer := debounce.New(5 * time.Millisecond)
	o := &operator{t: t, ledger: capacity.NewLedger(), table: table.New()}
	options := parts{ledger: o.ledger, table: o.table, debouncer: debouncer, replaceGrace: time.Second}
	for _, f := range with {
		f(&options)
	}
	mgr, err := ctrl.NewManager(rest.CopyConfig(config), ctrl.Options{
		Scheme:  NewScheme(),
		Cache:   cacheOptions(namespaceOf(options.LeaderElection)), // As in run.
		Metrics: metricsserver.Options{BindAddress: "0"},
		Logger:  log,
	})
	test.Must(t, err)
	if options.Federation {
		options.providers, err = newFederation(mgr) // As in assemble.
		test.Must(t, err)
	}
	test.Must(t, setup(mgr, options))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("the operator ended: %v", err)
		}
	})
	o.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(func() {
		o.stop()
		kubetest.Remove(t, offeredRecord(options.LeaderElection)) // The next test expects a new cluster.
	})
	return o
}

// offered returns what the consumer is offered, by class. It does not count as a read.
func (o *operator) offered(id string) map[string]capacity.Amounts {
	out := map[string]capacity.Amounts{}
	result := o.table.Current()
	for _, of := range result.Of(id).Offers {
		amounts := capacity.Amounts{}
		for _, a := range of.Amounts {
			amounts[a.Resource] = a.Value
		}
		out[of.Class] = amounts
	}
	return out
}

// awaitOffers waits until the consumer is offered exactly this in the unnamed class.
func (o *operator) awaitOffers(id string, want capacity.Amounts) {
	o.t.Helper()
	test.Eventually(o.t, func() string { return cmp.Diff(want, o.offered(id)[""]) })
}

// awaitOfferOf waits until the consumer is offered this amount of one resource in the unnamed
// class.
func (o *operator) awaitOfferOf(id, resource string, want int64) {
	o.t.Helper()
	test.Eventually(o.t, func() string { return cmp.Diff(want, o.offered(id)[""][resource]) })
}

// awaitNoOffers waits until every amount that the consumer is offered, in any class, is 0.
func (o *operator) awaitNoOffers(id string) {
	o.t.Helper()
	test.Eventually(o.t, func() string {
		left := o.offered(id)
		for _, amounts := range left {
			maps.DeleteFunc(amounts, func(_ string, v int64) bool { return v == 0 })
		}
		maps.DeleteFunc(left, func(_ string, amounts capacity.Amounts) bool { return len(amounts) == 0 })
		return cmp.Diff(map[string]capacity.Amounts{}, left)
	})
}

// awaitCaughtUp waits until every node, pod and policy that was written before the call has been
// evaluated. It creates a mark of each kind and waits for their effect: one watch delivers its
// events in order.
func (o *operator) awaitCaughtUp() {
	o.t.Helper()
	o.marks++
	name := fmt.Sprintf("mark-%s-%d", lower(o.t.Name()[4:8]), o.marks)
	kubetest.Create(o.t,
		nodestest.Node(name, nodestest.List("cpu", "1", "proffer.test/mark", "7"), nodestest.NodeLabel("mark", name)))
	kubetest.Create(o.t, nodestest.Pod(name, name, nodestest.List("cpu", "250m")))
	kubetest.Create(o.t, kubetest.Policy(name, kubetest.Selecting(kubetest.Matching(map[string]string{"mark": name})),
		func(s *v1alpha1.ResourcePolicySpec) { s.Class = name }))
	test.Eventually(o.t, func() string { return cmp.Diff(int64(750), o.offered("nobody")[name]["cpu"]) })
}

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func editNode(t *testing.T, n *corev1.Node, change func(*corev1.Node)) {
	t.Helper()
	kubetest.Edit(t, n, func(o client.Object) { change(o.(*corev1.Node)) }, kubetest.WriteSpec)
}

func editNodeStatus(t *testing.T, n *corev1.Node, change func(*corev1.Node)) {
	t.Helper()
	kubetest.Edit(t, n, func(o client.Object) { change(o.(*corev1.Node)) }, kubetest.WriteStatus)
}

func editPodStatus(t *testing.T, p *corev1.Pod, change func(*corev1.Pod)) {
	t.Helper()
	kubetest.Edit(t, p, func(o client.Object) { change(o.(*corev1.Pod)) }, kubetest.WriteStatus)
}

func editPolicy(t *testing.T, p *v1alpha1.ResourcePolicy, change func(*v1alpha1.ResourcePolicySpec)) {
	t.Helper()
	kubetest.Edit(t, p, func(o client.Object) { change(&o.(*v1alpha1.ResourcePolicy).Spec) }, kubetest.WriteSpec)
}

// statusOfPolicy reads the status from the API server.
func statusOfPolicy(t *testing.T, name string) v1alpha1.ResourcePolicyStatus {
	t.Helper()
	var p v1alpha1.ResourcePolicy
	test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKey{Name: name}, &p))
	return p.Status
}

// awaitReason waits until the policy's condition Ready has the reason, and returns the condition.
func awaitReason(t *testing.T, name, reason string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	test.Eventually(t, func() string {
		c := meta.FindStatusCondition(statusOfPolicy(t, name).Conditions, v1alpha1.ConditionReady)
		if c == nil {
			return "no condition"
		}
		found = *c
		return cmp.Diff(reason, c.Reason)
	})
	return found
}

func consumerIDs(r *table.Snapshot) []string {
	return slices.Sorted(maps.Keys(maps.Collect(r.Entries.All)))
}
