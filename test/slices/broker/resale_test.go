package broker

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication/forge"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

const (
	// rounds are the changes of an hour with one in a minute.
	rounds = 60
	// lag is how long what was given before may still be granted: in that time news of it comes from
	// the provider, through Liqo's replicator and virtual kubelet, to the operator.
	lag = 15 * time.Second
)

// TestNoMoreIsResoldThanPeersGive changes what the providers grant, and what rome requests, as often as in
// an hour. At no revision of its API server does milan grant rome more than the providers grant milan or
// granted a moment ago, and after each change it grants exactly what it should.
func TestNoMoreIsResoldThanPeersGive(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	lab.Cleanup(t, func(ctx context.Context) error {
		request(t, 10)
		return errors.Join(Apply(ctx, clusters.Oslo, "provider"), Apply(ctx, clusters.Paris, "provider"))
	})
	offered := map[string]int64{"oslo": 8, "paris": 8}
	requested := int64(10)
	followSums(t)
	for round := range rounds {
		switch who := random.IntN(3); who {
		case 2:
			requested = 1 + random.Int64N(20)
			request(t, requested)
		default:
			provider := clusters.Providers()[who]
			offered[provider.ID] = random.Int64N(11)
			offer(t, provider, offered[provider.ID])
		}
		// Milan requests 10 of each, and resells 90 %.
		want := min(requested*1000, (offered["oslo"]+offered["paris"])*900)
		what := fmt.Sprintf("round %d: of %v, rome is granted %dm of %d", round, offered, want, requested)
		lab.Eventually(t, what, func(ctx context.Context) error { return granted(ctx, want) })
	}
}

// followSums fails the test if milan grants more than it may at any revision, until the test ends.
func followSums(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var list authv1beta1.ResourceSliceList
	if err := clusters.Milan.Client.List(ctx, &list); err != nil {
		cancel()
		t.Fatal(err)
	}
	all, seen := map[types.UID]authv1beta1.ResourceSlice{}, []sums{sumUp(slices.Values(list.Items))}
	for _, slice := range list.Items {
		all[slice.UID] = slice
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	events, err := clusters.Milan.Client.Watch(ctx, &authv1beta1.ResourceSliceList{}, from)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for event := range events.ResultChan() {
			slice, ok := event.Object.(*authv1beta1.ResourceSlice)
			if !ok {
				if ctx.Err() == nil {
					t.Errorf("the watch sent %+v", event.Object)
				}
				return
			}
			if all[slice.UID] = *slice; event.Type == watch.Deleted {
				delete(all, slice.UID)
			}
			seen = append(seen, sumUp(maps.Values(all)))
			checkLast(t, seen)
		}
		if ctx.Err() == nil {
			t.Error("the watch has ended before the test")
		}
	})
	t.Cleanup(func() {
		cancel()
		events.Stop()
		group.Wait()
		t.Logf("saw %d revisions", len(seen))
	})
}

// checkLast fails the test if the last sums grant more than was given at some time within the lag.
func checkLast(t *testing.T, seen []sums) {
	t.Helper()
	now, given := seen[len(seen)-1], int64(0)
	for _, before := range slices.Backward(seen) {
		given = max(given, before.given)
		if now.at.Sub(before.at) >= lag {
			break // Its amounts were in force until the lag began.
		}
	}
	if now.granted*10 > given*9 {
		t.Errorf("milan grants %dm, and was given at most %dm in the last %s", now.granted, given, lag)
	}
}

// request has rome request so many CPUs of milan.
func request(t *testing.T, cpus int64) {
	t.Helper()
	merge(t, clusters.Rome, forge.ResourceSlice("from-milan", lab.TenantNamespace("milan")), map[string]any{
		"spec": map[string]any{"resources": map[string]any{"cpu": strconv.FormatInt(cpus, 10)}},
	})
}

// sums are what milan is granted and grants at a revision of its API server, in thousandths of a CPU.
type sums struct {
	at             time.Time
	given, granted int64
}

func look(ctx context.Context) (sums, error) {
	var list authv1beta1.ResourceSliceList
	err := clusters.Milan.Client.List(ctx, &list)
	return sumUp(slices.Values(list.Items)), err
}

func sumUp(all iter.Seq[authv1beta1.ResourceSlice]) sums {
	s := sums{at: time.Now()}
	for slice := range all {
		cpu := slice.Status.Resources[corev1.ResourceCPU]
		switch {
		case ptr.Deref(slice.Spec.ConsumerClusterID, "") == "rome":
			s.granted += cpu.MilliValue()
		case ptr.Deref(slice.Spec.ProviderClusterID, "") != "rome":
			s.given += cpu.MilliValue()
		}
	}
	return s
}
