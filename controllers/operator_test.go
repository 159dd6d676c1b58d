package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// patience is how long something may take that is waited for. It is spent only when a test fails. After an outage client-go comes back
// within a minute.
const patience = 90 * time.Second

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
func startOperator(t *testing.T, with ...func(*Options)) *operator {
	t.Helper()
	o := launchOperator(t, cluster.Config, with...)
	select {
	case <-o.table.Ready():
	case <-time.After(patience):
		t.Fatal("nothing was published")
	}
	return o
}

func launchOperator(t *testing.T, config *rest.Config, with ...func(*Options)) *operator {
	t.Helper()
	mgr, err := ctrl.NewManager(rest.CopyConfig(config), ctrl.Options{
		Scheme:  NewScheme(),
		Cache:   CacheOptions(Namespace(nil)),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	debouncer := debounce.New(5 * time.Millisecond)
	o := &operator{t: t, ledger: capacity.NewLedger(), table: table.New()}
	options := Options{Ledger: o.ledger, Table: o.table, Debouncer: debouncer}
	for _, f := range with {
		f(&options)
	}
	if err := Setup(mgr, options); err != nil {
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
		remove(t, anOfferedRecord(options.LeaderElection)) // The next test is of another cluster.
	})
	return o
}

// offered is what the consumer is offered, by class. It does not count as a read.
func (o *operator) offered(id string) map[string]capacity.Amounts {
	out := map[string]capacity.Amounts{}
	result := o.table.Current()
	entry := result.Entries.Of(id)
	if entry == nil {
		entry = result.Anyone
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

func (o *operator) eventually(diff func() string) { o.t.Helper(); eventually(o.t, diff) }

// caughtUp returns when everything that was written to the API before the call has been evaluated, as far as objects of the kinds of these
// marks go: a node, a pod and a policy are made and waited for. What is told by one watch is told in order.
func (o *operator) caughtUp() {
	o.t.Helper()
	o.marks++
	name := fmt.Sprintf("mark-%s-%d", lower(o.t.Name()[4:8]), o.marks)
	create(o.t, aNode(name, list("cpu", "1", "proffer.test/mark", "7"), nodeLabel("mark", name)))
	create(o.t, aPod(name, name, list("cpu", "250m")))
	create(o.t, aPolicy(name, selecting(matching(map[string]string{"mark": name})), func(s *v1alpha1.ResourcePolicySpec) { s.Class = name }))
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

// eventually waits until there is no difference.
func eventually(t *testing.T, diff func() string) {
	t.Helper()
	gomega.NewWithT(t).Eventually(diff).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(gomega.BeEmpty())
}

// create makes an object for the time of the test, once the API server takes it. The status goes with it where the API takes it apart.
func create[T client.Object](t *testing.T, object T) T {
	t.Helper()
	status := object.DeepCopyObject().(client.Object)
	eventually(t, func() string {
		switch err := api.Create(t.Context(), object); {
		case err == nil:
			return ""
		// So it says a little longer where a definition has been removed and installed anew: it looks at a copy that comes later.
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "custom resource definition is terminating"):
			return err.Error()
		default:
			t.Fatal(err)
			return ""
		}
	})
	t.Cleanup(func() { remove(t, object) })
	switch s := status.(type) {
	case *corev1.Node:
		// The API server taints each new node as not ready. Where there are nodes, a controller takes that off.
		edit(t, object, func(o client.Object) { o.(*corev1.Node).Spec.Taints = s.Spec.Taints }, writeSpec)
		edit(t, object, func(o client.Object) { o.(*corev1.Node).Status = s.Status }, writeStatus)
	case *corev1.Pod:
		if s.Status.Phase != "" {
			edit(t, object, func(o client.Object) { o.(*corev1.Pod).Status = s.Status }, writeStatus)
		}
	}
	return object
}

// remove deletes an object at once. One that is gone is none of its concern.
func remove(t *testing.T, object client.Object) {
	t.Helper()
	err := api.Delete(context.WithoutCancel(t.Context()), object, client.GracePeriodSeconds(0))
	if client.IgnoreNotFound(err) != nil {
		t.Errorf("delete %T %s: %v", object, object.GetName(), err)
	}
}

type write func(context.Context, client.Object) error

func writeSpec(ctx context.Context, o client.Object) error   { return api.Update(ctx, o) }
func writeStatus(ctx context.Context, o client.Object) error { return api.Status().Update(ctx, o) }

// edit changes an object as it stands in the API.
func edit[T client.Object](t *testing.T, object T, change func(client.Object), by write) {
	t.Helper()
	for {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		change(object)
		err := by(t.Context(), object)
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

func editNode(t *testing.T, n *corev1.Node, change func(*corev1.Node)) {
	t.Helper()
	edit(t, n, func(o client.Object) { change(o.(*corev1.Node)) }, writeSpec)
}

func editNodeStatus(t *testing.T, n *corev1.Node, change func(*corev1.Node)) {
	t.Helper()
	edit(t, n, func(o client.Object) { change(o.(*corev1.Node)) }, writeStatus)
}

func editPodStatus(t *testing.T, p *corev1.Pod, change func(*corev1.Pod)) {
	t.Helper()
	edit(t, p, func(o client.Object) { change(o.(*corev1.Pod)) }, writeStatus)
}

func editPolicy(t *testing.T, p *v1alpha1.ResourcePolicy, change func(*v1alpha1.ResourcePolicySpec)) {
	t.Helper()
	edit(t, p, func(o client.Object) { change(&o.(*v1alpha1.ResourcePolicy).Spec) }, writeSpec)
}

// statusOfPolicy reads what stands in the API.
func statusOfPolicy(t *testing.T, name string) v1alpha1.ResourcePolicyStatus {
	t.Helper()
	var p v1alpha1.ResourcePolicy
	if err := api.Get(t.Context(), client.ObjectKey{Name: name}, &p); err != nil {
		t.Fatal(err)
	}
	return p.Status
}

// ready waits until the policy's condition has the reason, and returns the condition.
func ready(t *testing.T, name, reason string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	eventually(t, func() string {
		c := meta.FindStatusCondition(statusOfPolicy(t, name).Conditions, v1alpha1.ConditionReady)
		if c == nil {
			return "no condition"
		}
		found = *c
		return cmp.Diff(reason, c.Reason)
	})
	return found
}

func consumerIDs(r *offer.Result) []string {
	return slices.Sorted(maps.Keys(maps.Collect(r.Entries.All)))
}
