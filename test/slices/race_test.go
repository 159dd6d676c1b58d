package slices

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"proffer.dev/proffer/test/slices/lab"
)

// Slices of 6 cpu each are created at the same time for a pool of 10. Each race has a pool of its
// own: what a deleted slice held counts for another ten seconds.
func TestSlicesRaceForTheLastOfAPool(t *testing.T) {
	awaitNoGrants(t)
	for name, consumers := range map[string][]*lab.Cluster{
		"one-consumer":    {rome, rome},
		"three-consumers": {rome, oslo, bern},
	} {
		newNode(t, name, amounts{"cpu": "10", "memory": "32Gi", "pods": "100"})
		newPolicy(t, name, fmt.Sprintf("{class: %s, offer: {nodes: {selector: {matchLabels: {pool: %[1]s}}}}}", name))
		t.Run(name, func(t *testing.T) {
			watchSum(t, name, resource.MustParse("10"))
			var all []slice
			var group errgroup.Group
			for i, c := range consumers {
				s := slice{c, fmt.Sprintf("%s-%d", name, i)}
				all = append(all, s)
				t.Cleanup(func() { s.remove(t) })
				group.Go(func() error { return s.create(t.Context(), name, amounts{"cpu": "6", "memory": "1Gi", "pods": "5"}) })
			}
			lab.Must(t, group.Wait())
			// The first slice gets its request, the second the rest, and a third nothing.
			want := []answer{raced(name, "6"), raced(name, "4"), raced(name, "0")}[:len(all)]
			order := awaitAnswers(t, all, want)
			for i, s := range order {
				if want[i].Status == authv1beta1.ResourceSliceConditionAccepted {
					s.awaitUse(t, want[i].Granted)
				}
			}
			// What is freed goes to the waiting slices, the oldest first.
			order[0].remove(t)
			for i, s := range awaitAnswers(t, order[1:], want[:len(want)-1]) {
				s.awaitUse(t, want[i].Granted)
			}
		})
	}
}

// raced returns the answer of a policy to a slice that gets this much of 6 cpu.
func raced(policy, cpu string) answer {
	all := amounts{"cpu": cpu, "memory": "1Gi", "pods": "5"}
	switch cpu {
	case "6":
		return granted(policy, all)
	case "0":
		return denied("denied: 6 cpu asked, but policy " + policy + " leaves 0 for this cluster")
	}
	return capped(fmt.Sprintf("granted %s of 6 cpu: policy %s leaves %s for this cluster", cpu, policy, cpu), all)
}

// awaitAnswers waits until the slices have these answers in any order, and returns the slices in
// the order of the answers.
func awaitAnswers(t *testing.T, all []slice, want []answer) []slice {
	t.Helper()
	order := make([]slice, len(all))
	lab.Eventually(t, "all are answered", func(ctx context.Context) error {
		got := make([]answer, len(all))
		var seen strings.Builder
		for _, s := range all {
			rs, err := s.seen(ctx)
			if err != nil {
				return err
			}
			a := answerOf(rs)
			fmt.Fprintf(&seen, "%s %s: %+v\n", s.consumer.ID, s.name, a)
			i := slices.IndexFunc(want, func(w answer) bool { return w.Status == a.Status && w.Reason == a.Reason })
			if i < 0 {
				return fmt.Errorf("%s %s has the answer %+v", s.consumer.ID, s.name, a)
			}
			got[i], order[i] = a, s
		}
		if err := differ("all the answers", want, got); err != nil {
			return fmt.Errorf("%w\nThe answers are\n%s", err, &seen)
		}
		return nil
	})
	return order
}

// watchSum fails the test if the accepted slices of a class ever exceed this much cpu.
func watchSum(t *testing.T, class string, most resource.Quantity) {
	t.Helper()
	seen, granted := 0, map[types.UID]resource.Quantity{}
	t.Cleanup(func() { // runs after the watch has ended
		if seen == 0 {
			t.Error("the watch saw no grant")
		}
	})
	watchSlices(t.Context(), t, func(event watch.EventType, rs *authv1beta1.ResourceSlice) error {
		delete(granted, rs.UID)
		a := answerOf(rs)
		if event != watch.Deleted && string(rs.Spec.Class) == class &&
			a.Status == authv1beta1.ResourceSliceConditionAccepted {
			granted[rs.UID] = *rs.Status.Resources.Cpu()
			seen++
		}
		var sum resource.Quantity
		for _, cpu := range granted {
			sum.Add(cpu)
		}
		if sum.Cmp(most) > 0 {
			return fmt.Errorf("%s cpu are granted, but there are %s: %v", &sum, &most, granted)
		}
		return nil
	})
}

// watchSlices calls handle with each event of the provider's slices, until the context or the test
// ends or handle returns an error, which fails the test.
func watchSlices(ctx context.Context, t *testing.T, handle func(watch.EventType, *authv1beta1.ResourceSlice) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	events, err := provider.Client.Watch(ctx, &authv1beta1.ResourceSliceList{})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var group errgroup.Group
	group.Go(func() error {
		for event := range events.ResultChan() {
			rs, ok := event.Object.(*authv1beta1.ResourceSlice)
			if !ok && ctx.Err() == nil {
				return fmt.Errorf("the watch sent %+v", event.Object)
			} else if !ok {
				continue // the end of ctx causes an error event
			}
			if err := handle(event.Type, rs); err != nil {
				return err
			}
		}
		return nil
	})
	t.Cleanup(func() {
		cancel()
		events.Stop()
		lab.Check(t, group.Wait())
	})
}
