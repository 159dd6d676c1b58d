package slices

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// steps are the steps of a slice from its creation until its consumer can use it, in Liqo's order.
var steps = []string{
	"the provider has the replica", "Liqo has authenticated it", "the operator has accepted it",
	"the provider has the quota",
	"the consumer sees that it is accepted", "the consumer has the virtual node",
}

// The indexes of two steps.
const (
	authenticated = 1
	accepted      = 2
)

// timedPolicy offers enough for all slices whose times are measured.
const timedPolicy = `{class: gold, offer: {fixed: {cpu: "64", memory: 64Gi, pods: "200"}}}`

// BenchmarkSlice measures one slice after the other: when each step was seen after the consumer's create,
// and the operator's part of the wait until the consumer has the virtual node.
func BenchmarkSlice(b *testing.B) {
	newPolicy(b, "timed", timedPolicy)
	timeOne(b, "timed-first") // a warm-up
	taken, shares := make([][]float64, len(steps)+1), []float64(nil)
	for b.Loop() {
		after := timeOne(b, fmt.Sprintf("timed-%d", len(shares)))
		for step, at := range after {
			taken[step] = append(taken[step], float64(at.Milliseconds()))
		}
		ours := after[accepted] - after[authenticated]
		taken[len(steps)] = append(taken[len(steps)], float64(ours.Milliseconds()))
		shares = append(shares, float64(ours)/float64(after[len(steps)-1]))
	}
	b.ReportMetric(0, "ns/op") // reports nothing
	for step, unit := range []string{"replica", "authenticated", "accepted", "quota", "seen", "node", "ours"} {
		slices.Sort(taken[step])
		b.ReportMetric(taken[step][len(shares)/2], unit+"-p50-ms")
		b.ReportMetric(taken[step][len(shares)*99/100], unit+"-p99-ms")
	}
	slices.Sort(shares)
	b.ReportMetric(shares[len(shares)/2], "x-node")
}

// TestTimesFromCreateToUse prints when each step was seen after the consumer's create, which shows
// Liqo's share of the wait.
func TestTimesFromCreateToUse(t *testing.T) {
	const rounds = 8
	newPolicy(t, "timed", timedPolicy)
	taken := make([][]time.Duration, len(steps))
	for i := range rounds {
		for step, at := range timeOne(t, fmt.Sprintf("timed-%d", i)) {
			taken[step] = append(taken[step], at)
		}
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "after the consumer's create\tmedian\tmost")
	for step, all := range taken {
		slices.Sort(all)
		_, _ = fmt.Fprintf(w, "%s\t%v\t%v\n", steps[step], all[len(all)/2].Round(time.Millisecond),
			all[len(all)-1].Round(time.Millisecond))
	}
	_ = w.Flush()
	t.Logf("of %d slices, one after the other:\n%s", rounds, &table)
}

// timeOne creates a slice and returns when each step was first seen.
func timeOne(t testing.TB, name string) []time.Duration {
	t.Helper()
	var mu sync.Mutex
	seen := make([]time.Time, len(steps))
	mark := func(step int, when bool) {
		mu.Lock()
		defer mu.Unlock()
		if when && seen[step].IsZero() {
			seen[step] = time.Now()
		}
	}
	isAccepted := func(o client.Object, condition authv1beta1.ResourceSliceConditionType) bool {
		rs, ok := o.(*authv1beta1.ResourceSlice)
		if !ok {
			return false
		}
		c := authentication.GetCondition(rs, condition)
		return c != nil && c.Status == authv1beta1.ResourceSliceConditionAccepted
	}
	s := slice{rome, name}
	there := &authv1beta1.ResourceSlice{}
	there.Name, there.Namespace = name, lab.TenantNamespace(rome.ID)
	here := &authv1beta1.ResourceSlice{}
	here.Name, here.Namespace = name, lab.TenantNamespace(provider.ID)
	defer follow(t, provider, &authv1beta1.ResourceSliceList{}, there, func(o client.Object) {
		mark(0, true)
		mark(authenticated, isAccepted(o, authv1beta1.ResourceSliceConditionTypeAuthentication))
		mark(accepted, isAccepted(o, authv1beta1.ResourceSliceConditionTypeResources))
	})()
	defer follow(t, provider, &offloadingv1beta1.QuotaList{}, s.emptyQuota(), func(client.Object) { mark(3, true) })()
	defer follow(t, rome, &authv1beta1.ResourceSliceList{}, here, func(o client.Object) {
		mark(4, isAccepted(o, authv1beta1.ResourceSliceConditionTypeResources))
	})()
	defer follow(t, rome, &offloadingv1beta1.VirtualNodeList{}, s.emptyVirtualNode(), func(client.Object) { mark(5, true) })()

	created := time.Now()
	newSlice(t, rome, name, "gold", amounts{"cpu": "1", "memory": "1Gi", "pods": "5"})
	var after []time.Duration
	lab.Eventually(t, "all steps are seen", func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		after = nil
		for _, at := range seen {
			if at.IsZero() {
				return errors.New("not yet")
			}
			after = append(after, at.Sub(created))
		}
		return nil
	})
	s.remove(t)
	return after
}

// follow calls handle with each state of an object until the returned function is called.
func follow(
	t testing.TB, c *lab.Cluster, list client.ObjectList, object client.Object, handle func(client.Object),
) (stop func()) {
	t.Helper()
	events, err := c.Client.Watch(t.Context(), list, client.InNamespace(object.GetNamespace()),
		client.MatchingFields{"metadata.name": object.GetName()})
	lab.Must(t, err)
	var group sync.WaitGroup
	group.Go(func() {
		for event := range events.ResultChan() {
			if o, ok := event.Object.(client.Object); ok {
				handle(o)
			}
		}
	})
	return func() {
		events.Stop()
		group.Wait()
	}
}
