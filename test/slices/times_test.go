package slices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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

// TestTimesFromCreateToUse prints when each step was seen after the consumer's create, which shows
// Liqo's share of the wait. If PROFFER_TIMES is set, it measures more slices and writes their times
// to that file for the benchmark.
func TestTimesFromCreateToUse(t *testing.T) {
	rounds, file := 8, os.Getenv("PROFFER_TIMES")
	if file != "" {
		rounds = 100
	}
	newPolicy(t, "timed", `{class: gold, offer: {fixed: {cpu: "64", memory: 64Gi, pods: "200"}}}`)
	taken := make([][]time.Duration, len(steps))
	for i := range rounds {
		// The watches of a slice end with its subtest.
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			for step, at := range timeOne(t, fmt.Sprintf("timed-%d", i)) {
				taken[step] = append(taken[step], at)
			}
		})
	}
	if file != "" {
		writeTimes(t, file, taken)
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

// writeTimes writes the times in nanoseconds: one list for each step, with one time for each slice.
func writeTimes(t *testing.T, file string, taken [][]time.Duration) {
	t.Helper()
	data, err := json.Marshal(taken)
	lab.Must(t, err)
	lab.Must(t, os.WriteFile(file, data, 0o600))
}

// timeOne creates a slice and returns when each step was first seen.
func timeOne(t *testing.T, name string) []time.Duration {
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
	accepted := func(o client.Object, condition authv1beta1.ResourceSliceConditionType) bool {
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
	follow(t, provider, &authv1beta1.ResourceSliceList{}, there, func(o client.Object) {
		mark(0, true)
		mark(1, accepted(o, authv1beta1.ResourceSliceConditionTypeAuthentication))
		mark(2, accepted(o, authv1beta1.ResourceSliceConditionTypeResources))
	})
	follow(t, provider, &offloadingv1beta1.QuotaList{}, s.emptyQuota(), func(client.Object) { mark(3, true) })
	follow(t, rome, &authv1beta1.ResourceSliceList{}, here, func(o client.Object) {
		mark(4, accepted(o, authv1beta1.ResourceSliceConditionTypeResources))
	})
	follow(t, rome, &offloadingv1beta1.VirtualNodeList{}, s.emptyVirtualNode(), func(client.Object) { mark(5, true) })

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

// follow calls handle with each state of an object until the end of the test.
func follow(t *testing.T, c *lab.Cluster, list client.ObjectList, object client.Object, handle func(client.Object)) {
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
	t.Cleanup(func() {
		events.Stop()
		group.Wait()
	})
}
