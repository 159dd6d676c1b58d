package inventory_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"proffer.dev/proffer/internal/source/devices/inventory"
)

const worlds = 1000

// world is a cluster of a few nodes, with the slices of one pool for each, and of some pools over all nodes.
type world struct {
	classes   map[string]*resourcev1.DeviceClass
	slices    []*resourcev1.ResourceSlice
	allocated sets.Set[structured.DeviceID]
}

var nodes = []string{"n1", "n2", "n3"}

const driver = "gpu.example.com"

// randomWorld draws classes that select devices by their attribute kind, and pools with devices of these kinds.
func randomWorld(r *rand.Rand) world {
	w := world{classes: map[string]*resourcev1.DeviceClass{}, allocated: sets.New[structured.DeviceID]()}
	for i := range 1 + r.IntN(3) {
		kind := i
		if r.IntN(6) == 0 {
			kind = r.IntN(3) // It may select the devices of another class.
		}
		c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%d", i)}}
		if r.IntN(3) > 0 {
			c.Spec.ExtendedResourceName = new(fmt.Sprintf("example.com/gpu-%d", i))
		}
		c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: fmt.Sprintf("device.attributes[%q].kind == %d", driver, kind),
		}}}
		w.classes[c.Name] = c
	}
	for _, node := range nodes {
		for i := range 1 + r.IntN(2) {
			w.addPool(r, fmt.Sprintf("%s-%d", node, i), node)
		}
	}
	return w
}

// addPool adds the slices of a pool, some of an older generation, some with one missing.
func (w *world) addPool(r *rand.Rand, pool, node string) {
	generation := int64(1 + r.IntN(2))
	var added []*resourcev1.ResourceSlice
	slice := func() *resourcev1.ResourceSlice {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", pool, len(added))}}
		s.Spec.Driver, s.Spec.Pool.Name, s.Spec.Pool.Generation, s.Spec.NodeName = driver, pool, generation, &node
		added = append(added, s)
		return s
	}
	counters := r.IntN(3) == 0
	if counters {
		s := slice()
		for i := range 2 {
			s.Spec.SharedCounters = append(s.Spec.SharedCounters, resourcev1.CounterSet{
				Name: fmt.Sprintf("set-%d", i), Counters: countersOf(int64(r.IntN(6))),
			})
		}
	}
	for i := range 1 + r.IntN(2) {
		s := slice()
		for k := range r.IntN(5) {
			s.Spec.Devices = append(s.Spec.Devices, w.randomDevice(r, fmt.Sprintf("d-%d-%d", i, k), counters))
			if r.IntN(5) == 0 {
				w.allocated.Insert(structured.MakeDeviceID(driver, pool, s.Spec.Devices[k].Name))
			}
		}
	}
	count := int64(len(added))
	for _, s := range added {
		s.Spec.Pool.ResourceSliceCount = count
	}
	switch r.IntN(8) {
	case 0: // The driver has not published all of them.
		added = added[1:]
	case 1: // It has not removed one of an older generation.
		old := added[0].DeepCopy()
		old.Name, old.Spec.Pool.Generation = pool+"-old", generation-1
		added = append(added, old)
	}
	w.slices = append(w.slices, added...)
}

func countersOf(value int64) map[string]resourcev1.Counter {
	return map[string]resourcev1.Counter{"memory": {Value: *resource.NewQuantity(value, resource.BinarySI)}}
}

func (w *world) randomDevice(r *rand.Rand, name string, counters bool) resourcev1.Device {
	d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"kind": {IntValue: new(int64(r.IntN(3)))},
	}}
	if counters && r.IntN(3) > 0 {
		d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{
			CounterSet: fmt.Sprintf("set-%d", r.IntN(2)), Counters: countersOf(int64(1 + r.IntN(3))),
		}}
	}
	if r.IntN(6) == 0 {
		effect := []resourcev1.DeviceTaintEffect{
			resourcev1.DeviceTaintEffectNone, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute,
		}[r.IntN(3)]
		d.Taints = []resourcev1.DeviceTaint{{Key: "example.com/broken", Effect: effect}}
	}
	return d
}

// allocatable allocates devices for one pod after the other until the scheduler finds none, and returns how many
// pods got one.
func (w *world) allocatable(t *testing.T, node string, class string, cache *cel.Cache) int64 {
	t.Helper()
	ctx, allocated, pods := context.Background(), w.allocated.Clone(), int64(0)
	for {
		allocator, err := structured.NewAllocator(ctx, structured.Features{PartitionableDevices: true, DeviceTaints: true},
			structured.AllocatedState{AllocatedDevices: allocated}, classLister(w.classes), w.slices, cache)
		if err != nil {
			t.Fatal(err)
		}
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", pods)}}
		claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
		}}}
		results, err := allocator.Allocate(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}},
			[]*resourcev1.ResourceClaim{claim})
		if err != nil {
			t.Fatal(err)
		}
		if len(results) == 0 {
			return pods
		}
		for _, d := range results[0].Devices.Results {
			allocated.Insert(structured.MakeDeviceID(d.Driver, d.Pool, d.Device))
		}
		pods++
	}
}

type classLister map[string]*resourcev1.DeviceClass

func (l classLister) List() ([]*resourcev1.DeviceClass, error) {
	return slices.Collect(maps.Values(l)), nil
}

func (l classLister) Get(name string) (*resourcev1.DeviceClass, error) { return l[name], nil }

// TestTheAmountIsWhatTheSchedulerCanAllocate compares what is counted of 1,000 random clusters with what
// the allocator of kube-scheduler allocates, one pod at a time. A resource that is not counted must have a reason.
func TestTheAmountIsWhatTheSchedulerCanAllocate(t *testing.T) {
	compared, uncounted, positive, cache := 0, 0, 0, cel.NewCache(10, cel.Features{})
	for seed := range uint64(worlds) {
		w := randomWorld(rand.New(rand.NewPCG(seed, 1)))
		counted := w.count()
		for resource, class := range inventory.Resources(w.plainClasses()) {
			for _, node := range nodes {
				reason := counted.why(node, resource)
				if reason != "" {
					uncounted++
				}
				free, allocatable := counted.free[node][resource], w.allocatable(t, node, class.Name, cache)
				switch {
				case reason != "" && free > allocatable:
					t.Errorf("seed %d: %d of %s are free on %s though not counted (%s)", seed, free, resource, node, reason)
				case reason == "" && free != allocatable:
					t.Errorf("seed %d: %d of %s are free on %s, and the scheduler can allocate %d", seed, free, resource, node,
						allocatable)
				}
				if compared++; free > 0 {
					positive++
				}
			}
		}
	}
	if uncounted < compared/50 || positive < compared/4 {
		t.Errorf("of %d amounts, %d are not counted and %d positive: the worlds prove too little", compared, uncounted,
			positive)
	}
}
