package devices

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus/testutil"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/source/devices/inventory"
)

const (
	driver = "gpu.example.com"
	gpu    = "example.com/gpu"
)

// bookTest is a book with a sink that keeps what it gets.
type bookTest struct {
	*book
	t          *testing.T
	nodes      map[string]map[string]capacity.Amounts
	claims     map[string]capacity.Claim
	uncounted  map[string][]capacity.Uncounted
	reselected int
}

func newBookTest(t *testing.T) *bookTest {
	w := &bookTest{
		t: t, nodes: map[string]map[string]capacity.Amounts{}, claims: map[string]capacity.Claim{},
		uncounted: map[string][]capacity.Uncounted{},
	}
	w.book = newBook(Sink{
		SetDevices: func(node string, all map[string]capacity.Amounts) bool {
			if w.nodes[node] = all; len(all) == 0 {
				delete(w.nodes, node)
			}
			return true
		},
		SetClaim:    func(c capacity.Claim) bool { w.claims[c.Key] = c; return true },
		DeleteClaim: func(key string) bool { delete(w.claims, key); return true },
		SetUncounted: func(source string, all []capacity.Uncounted) {
			if w.uncounted[source] = all; len(all) == 0 {
				delete(w.uncounted, source)
			}
		},
	}, newBounds(logr.Discard()), func() { w.reselected++ })
	return w
}

func (w *bookTest) class(name, resource, expression string) {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if resource != "" {
		c.Spec.ExtendedResourceName = &resource
	}
	if expression != "" {
		c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	}
	w.change(func() bool { return w.setClass(inventory.ParseClass(c)) })
}

// pool is the slice of a pool of one node, with devices of these names.
func slice(node string, names ...string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-of-" + node}}
	s.Spec.Driver, s.Spec.NodeName = driver, &node
	s.Spec.Pool = resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}
	for _, name := range names {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: name})
	}
	return s
}

func (w *bookTest) slice(s *resourcev1.ResourceSlice) {
	w.change(func() bool { return w.setSlice(inventory.ParseSlice(s, w.presentSelectors())) })
}

// allocated is a claim of these devices of a node.
func allocated(name, node string, devices ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	c.Status.Allocation = &resourcev1.AllocationResult{}
	for _, d := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
			resourcev1.DeviceRequestAllocationResult{Driver: driver, Pool: node, Device: d})
	}
	return c
}

func (w *bookTest) claim(c *resourcev1.ResourceClaim) {
	w.change(func() bool { return w.setClaim(parseClaim(c)) })
}

func (w *bookTest) wants(when string, gpus map[string]int64) {
	w.t.Helper()
	got := map[string]int64{}
	for node, pools := range w.nodes {
		for _, amounts := range pools {
			got[node] += amounts[gpu]
		}
	}
	if diff := cmp.Diff(gpus, got, cmpopts.EquateEmpty()); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestTheDevicesOfANodeFollowItsSlicesAndClasses(t *testing.T) {
	w := newBookTest(t)
	w.class("gpu", gpu, `device.driver == "gpu.example.com"`)
	w.slice(slice("n", "a", "b"))
	w.slice(slice("m", "a"))
	w.wants("at first", map[string]int64{"n": 2, "m": 1})
	w.slice(slice("n", "a", "b", "c"))
	w.wants("one more", map[string]int64{"n": 3, "m": 1})
	partly := slice("n", "a", "b", "c")
	partly.Spec.Pool.Generation, partly.Spec.Pool.ResourceSliceCount = 2, 2
	w.slice(partly)
	w.wants("in the middle of an update", map[string]int64{"m": 1})
	if got := w.uncounted[driver+"/n"]; len(got) != 1 || got[0].Node != "n" || got[0].Resource != gpu {
		t.Errorf("not counted are %v", got)
	}
	w.slice(slice("n", "a"))
	w.change(func() bool { return w.deleteSlice("slice-of-m") })
	w.wants("without a slice", map[string]int64{"n": 1})
	if len(w.uncounted) > 0 || len(w.pools) != 1 {
		t.Errorf("%v is not counted, and %d pools are known", w.uncounted, len(w.pools))
	}
	before := w.reselected
	w.class("gpu", gpu, `device.driver == "gpu.example.com"`)
	if w.reselected != before {
		t.Error("a class that selects the same has the slices listed again")
	}
	w.class("gpu", gpu, `device.driver == "other"`)
	if w.reselected != before+1 {
		t.Error("a class that selects others does not have the slices listed again")
	}
	w.slice(slice("n", "a"))
	w.wants("of a class that selects others", nil)
	w.change(func() bool { return w.deleteClass("gpu") })
	if w.servesResources() {
		t.Error("a resource is served without a class")
	}
	w.forget()
	if len(w.pools)+len(w.poolOf)+len(w.book.nodes)+len(w.book.claims) > 0 || w.bounds.devices != 0 {
		t.Error("something is known without a class")
	}
}

func TestARuleTaintsTheDevicesThatItSelects(t *testing.T) {
	w := newBookTest(t)
	w.class("gpu", gpu, "")
	w.slice(slice("n", "a", "b"))
	w.slice(slice("m", "a"))
	rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "rule"}}
	rule.Spec.DeviceSelector = &resourcev1.DeviceTaintSelector{Pool: new("n"), Device: new("a")}
	set := func(effect resourcev1.DeviceTaintEffect) {
		rule.Spec.Taint.Effect = effect
		w.change(func() bool { return w.setRule(parseRule(rule)) })
	}
	set(resourcev1.DeviceTaintEffectNoSchedule)
	w.wants("one device tainted", map[string]int64{"n": 1, "m": 1})
	set(resourcev1.DeviceTaintEffectNone)
	w.wants("a taint without an effect", map[string]int64{"n": 2, "m": 1})
	rule.Spec.DeviceSelector = &resourcev1.DeviceTaintSelector{}
	set(resourcev1.DeviceTaintEffectNoExecute)
	w.wants("all devices tainted", nil)
	rule.Spec.DeviceSelector = nil
	set(resourcev1.DeviceTaintEffectNoExecute)
	w.wants("a rule without a selector", map[string]int64{"n": 2, "m": 1})
}

func TestTheDevicesOfAClaimAreThoseOfItsResource(t *testing.T) {
	w := newBookTest(t)
	w.class("gpu", gpu, "")
	w.slice(slice("n", "a", "b"))
	c := allocated("c", "n", "a", "b", "unknown")
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{
		{Resource: "pods", Name: "p", UID: types.UID("uid-1")}, {APIGroup: "example.com", Resource: "pods", UID: "uid-2"},
		{Resource: "pods", UID: types.UID(strings.Repeat("x", maxUID+1))},
	}
	c.Status.Allocation.Devices.Results[1].AdminAccess = new(true)
	w.claim(c)
	key := capacity.ClaimKey("ns", "c")
	want := capacity.Claim{Key: key, Node: "n", Pods: []string{"uid-1"}, Devices: capacity.Amounts{gpu: 1}}
	if diff := cmp.Diff(want, w.claims[key]); diff != "" {
		t.Error(diff)
	}
	w.change(func() bool { return w.deleteSlice("slice-of-n") })
	w.claim(c)
	if diff := cmp.Diff(want, w.claims[key]); diff != "" {
		t.Errorf("after the slice is gone: %s", diff)
	}
	w.slice(slice("n", "a", "b"))
	c.Status.Allocation = nil
	w.claim(c)
	if len(w.claims) > 0 || len(w.book.claims) > 0 {
		t.Error("a claim that is not allocated counts")
	}
	w.claim(allocated("early", "m", "a"))
	w.slice(slice("m", "a"))
	if got := w.claims[capacity.ClaimKey("ns", "early")]; got.Node != "m" || got.Devices[gpu] != 1 {
		t.Errorf("a claim that was seen before its device counts as %v", got)
	}
}

func TestAListReplacesWhatIsKnown(t *testing.T) {
	w := newBookTest(t)
	w.class("gpu", gpu, "")
	w.slice(slice("gone", "a"))
	stays := inventory.ParseSlice(slice("stays", "a"), w.presentSelectors())
	w.change(func() bool {
		return capacity.Replace(w.poolOf, slices.Values([]inventory.Slice{stays}),
			func(s inventory.Slice) string { return s.Name }, w.setSlice, w.deleteSlice)
	})
	w.wants("after a list", map[string]int64{"stays": 1})
}

func TestWhatIsBeyondABoundHarmsItsSenderOnly(t *testing.T) {
	w := newBookTest(t)
	w.class("gpu", gpu, "")
	w.slice(slice("good", "a"))
	for i := range 2 * maxNodeSlices {
		s := slice("greedy", "a")
		s.Name, s.Spec.Pool.Name = fmt.Sprint("slice-", i), fmt.Sprint("pool-", i)
		w.slice(s)
	}
	long := slice("long", strings.Repeat("x", maxName+1))
	w.slice(long)
	w.slice(slice("late", "a"))
	w.wants("after too many slices", map[string]int64{"good": 1, "late": 1, "greedy": inventory.MaxNodePools})
	if n := len(w.poolOf); n != maxNodeSlices+2 {
		t.Errorf("%d slices are kept", n)
	}
	if n := testutil.ToFloat64(w.bounds.refused.WithLabelValues("slice")); n != maxNodeSlices+1 {
		t.Errorf("%v slices were refused", n)
	}
	for i := range maxClasses + 10 {
		w.classes[fmt.Sprint("class-", i)] = inventory.Class{}
		if len(w.classes) == maxClasses {
			break
		}
	}
	w.class("one-more", "example.com/more", "")
	if _, known := w.resources["example.com/more"]; known || len(w.classes) > maxClasses {
		t.Errorf("%d classes are kept", len(w.classes))
	}
	for i := range maxRules + 10 {
		rule := taintRule{fmt.Sprint("rule-", i), &inventory.TaintRule{}}
		w.setRule(rule)
	}
	if len(w.rules) != maxRules {
		t.Errorf("%d rules are kept", len(w.rules))
	}
}
