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
	"proffer.dev/proffer/test/kubetest"
)

// These flags set the number and the content of the slices that TestSlicesOfAnySizeTakeLittleMemory
// creates. They are for measurements.
var (
	largeSlices = flag.Int("large-slices", 8, "slices")
	largeNames  = flag.Int("large-names", 10_000, "resource names of each slice")
	largeCSR    = flag.Int("large-csr", 0, "bytes of the certificate request of each slice")
)

// A slice may have far more resource names than an answer can list. Decoding slices completely
// would take many times their size.
func TestSlicesOfAnySizeTakeLittleMemory(t *testing.T) {
	kubetest.Keep(t, controlplane.LiqoCRD(t, sliceCRD))
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
		u.SetManagedFields(nil) // The cleanup needs only the name.
		unstructured.RemoveNestedField(u.Object, "spec")
	}
	before := heapInUse()
	clearPeak()
	f := follow(t)
	peak := peakOfProcess()
	if got := len(f.cache.list()); got != *largeSlices {
		t.Fatalf("%d slices are known, want %d", got, *largeSlices)
	}
	after := heapInUse()
	t.Logf("%d slices: the heap went from %.1f to %.1f MiB, the process to %s at its peak", *largeSlices, mib(before), mib(after), peak)
	if most := uint64(4<<20 + *largeSlices*64<<10); after > before+most {
		t.Errorf("the heap grew by %.1f MiB, want at most %.1f", mib(after-before), mib(most))
	}
	listed := 0
	if err := f.client.slices.each(t.Context(), func(slice) { listed++ }); err != nil || listed != *largeSlices {
		t.Errorf("%d slices listed, want %d: %v", listed, *largeSlices, err)
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

// clearPeak resets the value that peakOfProcess returns.
func clearPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// peakOfProcess returns the peak resident memory of the process, or "?" if the kernel does not
// report it.
func peakOfProcess() string {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range bytes.Lines(status) {
		if after, found := bytes.CutPrefix(line, []byte("VmHWM:")); found {
			return string(bytes.TrimSpace(after))
		}
	}
	return "?"
}
