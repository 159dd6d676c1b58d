package nodes

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/source/masked"
	"proffer.dev/proffer/test"
)

// graceTest is a ledger with the store of nodes, whose graces run in the time of a synctest bubble.
type graceTest struct {
	*graceful
	t      *testing.T
	store  *masked.Store[*node]
	ledger *capacity.Ledger
}

func startGraceful(t *testing.T) *graceTest {
	ledger := capacity.NewLedger()
	g := newGraceful(ledger, grace, func() {})
	nodes, _ := newStores(ledger, g, func() {})
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go g.run(ctx)
	return &graceTest{g, t, nodes, ledger}
}

// wants checks the free cpu, the nodes in their grace and those that are remembered.
func (g *graceTest) wants(what string, milli int64, inGrace, remembered int) {
	g.t.Helper()
	synctest.Wait()
	if got := free(g.ledger); got != milli {
		g.t.Errorf("%s: %d free cpu, want %d", what, got, milli)
	}
	if got := testutil.ToFloat64(g.metric()); got != float64(inGrace) || len(g.ledger.InGrace()) != inGrace {
		g.t.Errorf("%s: the metric counts %v nodes in their grace, and the ledger has %v; want %d",
			what, got, g.ledger.InGrace(), inGrace)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.nodes) != remembered {
		g.t.Errorf("%s: %d nodes are remembered, want %d", what, len(g.nodes), remembered)
	}
}

func unready(since time.Time) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(since),
		}}
	}
}

func created(at time.Time) func(*corev1.Node) {
	return func(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(at) }
}

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the clock of the bubble
}

func TestANodeThatIsNotReadyCountsUntilItsGraceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := startGraceful(t)
		a, b := nodeOf(aNode("a", list("cpu", "4"))), nodeOf(aNode("b", list("cpu", "2")))
		down := func(name, cpu string) *node { return nodeOf(aNode(name, list("cpu", cpu), unready(time.Now()))) }
		test.Must(g.t, g.store.Replace([]any{a, b}, "1"))
		g.wants("at first", 6000, 0, 0)
		test.Must(g.t, g.store.Update(down("a", "4")))
		pass(time.Minute)
		test.Must(g.t, g.store.Update(down("b", "2")))
		g.wants("after a minute", 6000, 2, 2)
		// A list that the watch begins with again is no start.
		test.Must(g.t, g.store.Replace([]any{down("a", "4"), down("b", "2")}, "2"))
		pass(time.Minute - 1)
		g.wants("before the first grace ends", 6000, 2, 2)
		pass(1)
		g.wants("after the first grace", 2000, 1, 2)
		test.Must(g.t, g.store.Update(b))
		test.Must(g.t, g.store.Update(a))
		g.wants("Ready again", 6000, 0, 2)
		pass(grace * recovery)
		g.wants("long afterwards", 6000, 0, 0)
	})
}

func TestANodeThatIsGoneHasNoGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := startGraceful(t)
		down := nodeOf(aNode("a", list("cpu", "4"), unready(time.Now())))
		test.Must(g.t, g.store.Replace(nil, "1"))
		for what, remove := range map[string]func() error{
			"deleted":     func() error { return g.store.Delete(down) },
			"not in list": func() error { return g.store.Replace(nil, "2") },
		} {
			test.Must(g.t, g.store.Add(nodeOf(aNode("a", list("cpu", "4")))))
			test.Must(g.t, g.store.Update(down))
			g.wants("in its grace", 4000, 1, 1)
			test.Must(g.t, remove())
			g.wants(what, 0, 0, 0)
			test.Must(g.t, g.store.Add(down))
			g.wants("created again", 0, 0, 0)
			test.Must(g.t, g.store.Delete(down))
		}
	})
}

func TestAStartFindsNodesInTheirGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := startGraceful(t)
		now := time.Now()
		old := created(now.Add(-time.Hour))
		test.Must(g.t, g.store.Replace([]any{
			nodeOf(aNode("lately", list("cpu", "1"), old, unready(now.Add(-time.Minute)))),
			nodeOf(aNode("with-a-fast-clock", list("cpu", "2"), old, unready(now.Add(time.Hour)))),
			nodeOf(aNode("long-ago", list("cpu", "4"), old, unready(now.Add(-grace)))),
			nodeOf(aNode("never", list("cpu", "8"), created(now.Add(-time.Minute)), unready(now.Add(-time.Minute)))),
			nodeOf(aNode("cordoned", list("cpu", "16"), old, unready(now), func(n *corev1.Node) { n.Spec.Unschedulable = true })),
			nodeOf(aNode("without-condition", list("cpu", "32"), func(n *corev1.Node) { n.Status.Conditions = nil })),
		}, "1"))
		g.wants("at the start", 3000, 2, 3)
		test.Must(g.t, g.store.Add(nodeOf(aNode("joins", list("cpu", "64"), unready(now)))))
		g.wants("a node that joins later", 3000, 2, 3)
		pass(time.Minute)
		g.wants("after a minute", 2000, 1, 3)
		pass(time.Minute)
		g.wants("after two minutes", 0, 0, 3)
	})
}
