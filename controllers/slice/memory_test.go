package slice

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/kubetest"
)

// How many slices TestSlicesOfAnySizeTakeLittleMemory makes, and of what: for measurements.
var (
	largeSlices = flag.Int("large-slices", 8, "slices")
	largeNames  = flag.Int("large-names", 10_000, "resource names of each slice")
	largeCSR    = flag.Int("large-csr", 0, "bytes of the certificate request of each slice")
)

// TestSlicesOfAnySizeTakeLittleMemory is C2 of issue 11: 15 slices of 1.2 MB, of more names than anybody answers, took 350 MiB.
func TestSlicesOfAnySizeTakeLittleMemory(t *testing.T) {
	kubetest.Install(t, controlplane.LiqoCRD(t, sliceCRD))
	asked := map[string]any{}
	for i := range *largeNames {
		asked[fmt.Sprintf("r%05d", i)] = "1"
	}
	for i := range *largeSlices {
		u := kubetest.Unstructured(t, kubetest.Slice(fmt.Sprint("s", i), func(s *authv1beta1.ResourceSlice) { s.UID, s.ResourceVersion, s.ManagedFields = "", "", nil }))
		u.Object["spec"].(map[string]any)["resources"] = asked
		if *largeCSR > 0 {
			u.Object["spec"].(map[string]any)["csr"] = strings.Repeat("AAAA", *largeCSR/4)
		}
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		kubetest.Create(t, u)
		u.SetManagedFields(nil) // The clean-up needs the name only.
		unstructured.RemoveNestedField(u.Object, "spec")
	}
	before := heapInUse()
	clearPeak()
	f := follow(t)
	peak := peakOfProcess()
	if got := len(f.cache.list()); got != *largeSlices {
		t.Fatalf("%d slices are known", got)
	}
	after := heapInUse()
	t.Logf("%d slices: the heap went from %.1f to %.1f MiB, the process to %s at its peak", *largeSlices, mib(before), mib(after), peak)
	if most := uint64(4<<20 + *largeSlices*64<<10); after > before+most {
		t.Errorf("the heap grew by %.1f MiB, which is more than %.1f", mib(after-before), mib(most))
	}
	listed := 0
	if err := f.client.slices.each(t.Context(), func(slice) { listed++ }); err != nil || listed != *largeSlices {
		t.Errorf("%d slices are listed: %v", listed, err)
	}
	runtime.KeepAlive(f)
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func heapInUse() uint64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// clearPeak begins another measurement of peakOfProcess.
func clearPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakOfProcess is the largest part of the process that was in memory, where the kernel says so.
func peakOfProcess() string {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range bytes.Lines(status) {
		if after, found := bytes.CutPrefix(line, []byte("VmHWM:")); found {
			return string(bytes.TrimSpace(after))
		}
	}
	return "?"
}
