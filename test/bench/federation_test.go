package bench

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/bench/population"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/process"
	"proffer.dev/proffer/test/providertest"
)

var providers = flag.Int("providers", 100, "number of providers of BenchmarkFederation")

// BenchmarkFederation measures what an operator needs to read providers of which each twentieth hangs, and each
// twentieth answers 10 MB and announces changes all the time: memory beyond that of an operator without the
// component, and the part of a core, over two minutes.
func BenchmarkFederation(b *testing.B) {
	n, lasts := *providers, 2*time.Minute
	if testing.Short() {
		n, lasts = 20, time.Second
	}
	c := startFilled(b, population.Size{Consumers: 1})
	var files []string
	for _, file := range providertest.CRDs {
		files = append(files, controlplane.LiqoCRD(b, file))
	}
	_, err := envtest.InstallCRDs(c.Config, envtest.CRDInstallOptions{Paths: files})
	test.Must(b, err)
	for i := range n {
		newProvider(b, i).Peer(b, c.api, fmt.Sprintf("p%03d", i))
	}
	measure := func(flags ...string) (memory, cpu float64) {
		o := &operator{process.StartTest(b, c.operator, append([]string{
			"--kubeconfig=" + c.kubeconfig, "--grpc-bind-address=", "--metrics-bind-address=", "--health-probe-bind-address=",
			"--pprof-bind-address=",
		}, flags...)), b}
		o.await()
		before := usedBy(b, o)
		timer := time.NewTimer(lasts)
		<-timer.C
		cpu = (usedBy(b, o) - before) / float64(lasts)
		memory = memoryOf(b, o).peak
		o.end()
		return memory, cpu
	}
	b.Run(fmt.Sprintf("providers=%d", n), func(b *testing.B) {
		memory, cpu := measure()
		withMemory, withCPU := measure("--federation")
		b.ReportMetric(0, "ns/op") // reports nothing
		b.ReportMetric((withMemory-memory)/mib, "MiB-more")
		b.ReportMetric(100*(withCPU-cpu), "percent-of-a-core-more")
	})
}

// newProvider returns the i-th provider. Each has ten Offers.
func newProvider(b testing.TB, i int) *providertest.Provider {
	b.Helper()
	now := metav1.Now()
	var offers []v1alpha1.Offer
	for class := range 10 {
		o := v1alpha1.Offer{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%d", class)}}
		amounts := kubetest.Quantities("cpu", "40", "memory", "160Gi", "pods", "110", "nvidia.com/gpu", "4")
		o.Status = v1alpha1.OfferStatus{
			ClusterID: "rome", Class: o.Name, Available: amounts, Held: amounts, Ceiling: amounts, LargestPod: amounts,
			Reason: v1alpha1.CatalogAvailable, ObservedTime: now, ValidUntil: metav1.NewTime(now.Add(time.Hour)),
		}
		offers = append(offers, o)
	}
	switch i % 20 {
	case 0:
		return providertest.New(b, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	case 1:
		long := `{"metadata":{"resourceVersion":"1"},"items":[{"a":"` + strings.Repeat("x", 10<<20)
		return providertest.New(b, func(w http.ResponseWriter, r *http.Request) {
			if providertest.Watches(r) {
				_, _ = io.WriteString(w, `{"type":"MODIFIED"}`)
				return
			}
			_, _ = io.WriteString(w, long)
		})
	}
	return providertest.New(b, nil, offers...)
}
