package broker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication/forge"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

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
// an hour. Whenever milan is looked at, it grants rome no more than the providers grant milan or granted a
// moment ago, and after each change it grants exactly what it should.
func TestNoMoreIsResoldThanPeersGive(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stepTimeout)
		defer cancel()
		request(t, 10)
		for _, provider := range clusters.Providers() {
			if err := Apply(ctx, provider, "provider"); err != nil {
				t.Error(err)
			}
		}
	})
	offered := map[string]int64{"oslo": 8, "paris": 8}
	requested := int64(10)
	var seen []sums
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
		eventually(t, what, func(ctx context.Context) error {
			now, err := look(ctx)
			if err != nil {
				return err
			}
			seen = append(seen, now)
			given := now.given
			for i := len(seen) - 1; i >= 0 && now.at.Sub(seen[i].at) < lag; i-- {
				given = max(given, seen[i].given)
			}
			if now.granted*10 > given*9 {
				t.Fatalf("milan grants %dm, and was given at most %dm in the last %s", now.granted, given, lag)
			}
			if now.granted != want {
				return fmt.Errorf("it is granted %dm of %dm", now.granted, now.given)
			}
			return nil
		})
	}
	t.Logf("looked %d times", len(seen))
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

func look(ctx context.Context) (s sums, err error) {
	s.at = time.Now()
	var list authv1beta1.ResourceSliceList
	if err := clusters.Milan.Client.List(ctx, &list); err != nil {
		return s, err
	}
	for _, slice := range list.Items {
		cpu := slice.Status.Resources[corev1.ResourceCPU]
		switch {
		case ptr.Deref(slice.Spec.ConsumerClusterID, "") == "rome":
			s.granted += cpu.MilliValue()
		case ptr.Deref(slice.Spec.ProviderClusterID, "") != "rome":
			s.given += cpu.MilliValue()
		}
	}
	return s, nil
}
