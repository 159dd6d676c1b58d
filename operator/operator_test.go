package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

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
	"proffer.dev/proffer/internal/kubetest"
	"proffer.dev/proffer/internal/source/nodes/nodestest"
	"proffer.dev/proffer/internal/table"
)

// operator is all of this package, run against the API server as the binary runs it.
type operator struct {
	t      *testing.T
	table  *table.Table
	ledger *capacity.Ledger
	stop   func()
	// marks counts what caughtUp has made.
	marks int
}

// startOperator runs an operator until the test ends, and returns when it has published its first offers.
func startOperator(t *testing.T, with ...func(*parts)) *operator {
	t.Helper()
	o := launchOperator(t, kubetest.Cluster(t).Config, with...)
	select {
	case <-o.table.Ready():
	case <-time.After(kubetest.WaitTimeout):
		t.Fatal("nothing was published")
	}
	return o
}

func launchOperator(t *testing.T, config *rest.Config, with ...func(*parts)) *operator {
	t.Helper()
	mgr, err := ctrl.NewManager(rest.CopyConfig(config), ctrl.Options{
		Scheme:  NewScheme(),
		Cache:   cacheOptions(namespaceOf(nil)),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	debouncer := debounce.New(5 * time.Millisecond)
	o := &operator{t: t, ledger: capacity.NewLedger(), table: table.New()}
	options := parts{ledger: o.ledger, table: o.table, debouncer: debouncer}
	for _, f := range with {
		f(&options)
	}
	if err := setup(mgr, options); err != nil {
		t.Fatal(err)
	}
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
		kubetest.Remove(t, anOfferedRecord(options.election)) // The next test is of another kubetest.Cluster(t).
	})
	return o
}

// offered is what the consumer is offered, by class. It does not count as a read.
func (o *operator) offered(id string) map[string]capacity.Amounts {
	out := map[string]capacity.Amounts{}
	result := o.table.Current()
	entry := result.Entries.Of(id)
	if entry == nil {
		entry = result.Default
	}
	for _, of := range entry.Offers {
		amounts := capacity.Amounts{}
		for _, a := range of.Amounts {
			amounts[a.Resource] = a.Value
		}
		out[of.Class] = amounts
	}
	return out
}

// offers waits until the consumer is offered exactly this in the unnamed class.
func (o *operator) offers(id string, want capacity.Amounts) {
	o.t.Helper()
	o.eventually(func() string { return cmp.Diff(want, o.offered(id)[""]) })
}

// offersOf waits until the consumer is offered so much of one resource in the unnamed class.
func (o *operator) offersOf(id, resource string, want int64) {
	o.t.Helper()
	o.eventually(func() string { return cmp.Diff(want, o.offered(id)[""][resource]) })
}

// offersNothing waits until no class offers anything to the consumer but what is 0.
func (o *operator) offersNothing(id string) {
	o.t.Helper()
	o.eventually(func() string {
		left := o.offered(id)
		for _, amounts := range left {
			maps.DeleteFunc(amounts, func(_ string, v int64) bool { return v == 0 })
		}
		maps.DeleteFunc(left, func(_ string, amounts capacity.Amounts) bool { return len(amounts) == 0 })
		return cmp.Diff(map[string]capacity.Amounts{}, left)
	})
}

func (o *operator) eventually(diff func() string) { o.t.Helper(); kubetest.Eventually(o.t, diff) }

// caughtUp returns when everything that was written to the API before the call has been evaluated, as far as objects of the kinds of these
// marks go: a node, a pod and a policy are made and waited for. What is told by one watch is told in order.
func (o *operator) caughtUp() {
	o.t.Helper()
	o.marks++
	name := fmt.Sprintf("mark-%s-%d", lower(o.t.Name()[4:8]), o.marks)
	kubetest.Create(o.t, nodestest.Node(name, nodestest.List("cpu", "1", "proffer.test/mark", "7"), nodestest.NodeLabel("mark", name)))
	kubetest.Create(o.t, nodestest.Pod(name, name, nodestest.List("cpu", "250m")))
	kubetest.Create(o.t, kubetest.Policy(name, kubetest.Selecting(kubetest.Matching(map[string]string{"mark": name})), func(s *v1alpha1.ResourcePolicySpec) { s.Class = name }))
	o.eventually(func() string { return cmp.Diff(int64(750), o.offered("nobody")[name]["cpu"]) })
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

// statusOfPolicy reads what stands in the API.
func statusOfPolicy(t *testing.T, name string) v1alpha1.ResourcePolicyStatus {
	t.Helper()
	var p v1alpha1.ResourcePolicy
	if err := kubetest.API(t).Get(t.Context(), client.ObjectKey{Name: name}, &p); err != nil {
		t.Fatal(err)
	}
	return p.Status
}

// ready waits until the policy's condition has the reason, and returns the condition.
func ready(t *testing.T, name, reason string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	kubetest.Eventually(t, func() string {
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
