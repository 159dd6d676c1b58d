package accounting

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
	"proffer.dev/proffer/test/externaltest"
	"proffer.dev/proffer/test/kubetest"
)

const (
	// churning consumers have their offers changed once a second.
	churning = 10_000
	// perPolicy is how many consumers a policy may name.
	perPolicy = 250
)

// BenchmarkPush measures the time from an edit of a policy to the notification of a subscriber, while
// the offers of 10,000 other consumers change each second: without books, and with books whose rows
// need not stay, so that all of these changes wait for the database.
//
//	go test -run '^$' -bench Push -benchtime 100x ./test/accounting
func BenchmarkPush(b *testing.B) {
	servers := map[string]*dbtest.Server{
		"PostgreSQL": dbtest.Shared(b, dbtest.PostgreSQL), "MariaDB": dbtest.Shared(b, dbtest.MySQL),
	}
	for _, books := range []string{"none", "PostgreSQL", "MariaDB", "none again"} {
		b.Run("books="+books, func(b *testing.B) {
			server, kept := servers[books]
			if !kept {
				server = servers["PostgreSQL"]
			}
			w := newWorld(b, server)
			if !kept {
				w.write("config.yaml", "apiVersion: config.proffer.dev/v1alpha1\nkind: OperatorConfiguration\n")
			}
			benchmarkPush(b, w)
			if kept {
				b.ReportMetric(float64(w.count("SELECT COUNT(*) FROM proffer_offer_interval")), "rows")
			}
		})
	}
}

func benchmarkPush(b *testing.B, w *world) {
	policies := make([]*v1alpha1.ResourcePolicy, 0, churning/perPolicy)
	for i := range churning / perPolicy {
		ids := make([]v1alpha1.ClusterID, perPolicy)
		for k := range ids {
			ids[k] = v1alpha1.ClusterID(fmt.Sprintf("consumer-%d-%d", i, k))
		}
		policies = append(policies, createFixed(b, fmt.Sprint("many-", i), ids...))
	}
	edited := createFixed(b, "edited", "rome")
	o := w.start()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	test.Must(b, o.Ready(ctx))
	liqo := externaltest.Dial(b, o.Address("grpc"))
	if _, err := liqo.ReadResources(ctx, &wire.ClusterIdentity{ClusterID: "rome"}, grpc.WaitForReady(true)); err != nil {
		b.Fatal(err)
	}
	stream, err := liqo.Subscribe(ctx, &wire.Empty{})
	test.Must(b, err)
	notified := func(id string) {
		for {
			n, err := stream.Recv()
			test.Must(b, err)
			if n.GetClusterID() == id {
				return
			}
		}
	}
	notified("")
	churned := churn(ctx, b, policies)
	var times []time.Duration
	for b.Loop() {
		<-time.After(rand.N(200 * time.Millisecond)) //nolint:forbidigo // at any moment of the batch period and of the churn
		start := time.Now()
		setCPU(ctx, b, edited, int64(len(times))+10)
		notified("rome")
		times = append(times, time.Since(start))
	}
	cancel()
	if err := <-churned; err != nil && !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "context canceled") {
		b.Error(err)
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Milliseconds()), "p99-ms")
}

// churn changes all policies once a second until the context ends.
func churn(ctx context.Context, b *testing.B, policies []*v1alpha1.ResourcePolicy) <-chan error {
	done := make(chan error, 1)
	go func() {
		tick := time.NewTicker(time.Second / time.Duration(len(policies)))
		defer tick.Stop()
		for n := int64(0); ; n++ {
			select {
			case <-ctx.Done():
				done <- ctx.Err()
				return
			case <-tick.C:
			}
			if err := patchCPU(ctx, b, policies[n%int64(len(policies))], 100+n); err != nil {
				done <- err
				return
			}
		}
	}()
	return done
}

func createFixed(b *testing.B, name string, ids ...v1alpha1.ClusterID) *v1alpha1.ResourcePolicy {
	b.Helper()
	return kubetest.Create(b, &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ResourcePolicySpec{
		Consumers: &v1alpha1.Consumers{ClusterIDs: ids},
		Offer: v1alpha1.PolicyOffer{Fixed: v1alpha1.Quantities{
			"cpu": {Quantity: resource.MustParse("1")}, "memory": {Quantity: resource.MustParse("1Gi")}, "pods": {Quantity: resource.MustParse("10")},
		}},
	}})
}

func setCPU(ctx context.Context, b *testing.B, policy *v1alpha1.ResourcePolicy, cpu int64) {
	b.Helper()
	test.Must(b, patchCPU(ctx, b, policy, cpu))
}

func patchCPU(ctx context.Context, b *testing.B, policy *v1alpha1.ResourcePolicy, cpu int64) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"offer":{"fixed":{"cpu":"%d"}}}}`, cpu))
	return kubetest.API(b).Patch(ctx, &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}, patch)
}
