package inventory_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"

	"proffer.dev/proffer/internal/source/devices/inventory"
)

const (
	gpu   = "example.com/gpu"
	part  = "example.com/part"
	alias = resourcev1.ResourceDeviceClassPrefix + "gpu"
)

func device(name string, with ...func(*inventory.Device)) inventory.Device {
	d := inventory.Device{Name: name, Node: "n", Resources: []string{gpu}}
	for _, f := range with {
		f(&d)
	}
	return d
}

func of(resources ...string) func(*inventory.Device) {
	return func(d *inventory.Device) { d.Resources = resources }
}
func on(node string) func(*inventory.Device) { return func(d *inventory.Device) { d.Node = node } }
func shareable(d *inventory.Device)          { d.Shareable = true }
func failing(d *inventory.Device)            { d.Resources, d.Failed = nil, []string{gpu} }
func consuming(set string, amount int64) func(*inventory.Device) {
	return func(d *inventory.Device) {
		d.Consumes = append(d.Consumes, inventory.CounterSet{Name: set, Values: inventory.Counters{"memory": amount}})
	}
}

// poolOf is a pool with these devices, in one slice, and with the counters of some sets in another.
func poolOf(counters map[string]int64, devices ...inventory.Device) []inventory.Slice {
	id := inventory.PoolID{Driver: "driver", Name: "pool"}
	all := []inventory.Slice{{Name: "a", Pool: id, Slices: 2}, {Name: "b", Pool: id, Slices: 2, Devices: devices}}
	for name, amount := range counters {
		all[0].Counters = append(all[0].Counters, inventory.CounterSet{
			Name: name, Values: inventory.Counters{"memory": amount},
		})
	}
	return all
}

func none(string) bool { return false }

func TestWhatIsNotCountedHasAReason(t *testing.T) {
	for name, tc := range map[string]struct {
		slices []inventory.Slice
		want   map[string]int64
		why    string
	}{
		"two resources select one device": {
			poolOf(nil, device("a"), device("b", of(gpu, part))), nil,
			"n example.com/gpu: it has devices in common with example.com/part; " +
				"n example.com/part: it has devices in common with example.com/gpu",
		},
		"a class without a name of its own gives way": {
			poolOf(nil, device("a"), device("b", of(alias, gpu))), map[string]int64{gpu: 2},
			"n " + alias + ": it has devices in common with example.com/gpu",
		},
		"two resources share counters": {
			poolOf(map[string]int64{"set": 4}, device("a", consuming("set", 2)), device("b", of(part), consuming("set", 1))), nil,
			"n example.com/gpu: its devices share counters with those of example.com/part; " +
				"n example.com/part: its devices share counters with those of example.com/gpu",
		},
		"two nodes share counters": {
			poolOf(map[string]int64{"set": 4}, device("a", consuming("set", 2)), device("b", on("m"), consuming("set", 1))), nil,
			"m example.com/gpu: its devices share counters with those of other nodes; " +
				"n example.com/gpu: its devices share counters with those of other nodes",
		},
		"a device of several nodes": {
			poolOf(nil, device("a", on(""))), nil, " example.com/gpu: its devices are not of one node",
		},
		"a device that several claims share": {
			poolOf(nil, device("a"), device("b", shareable)), map[string]int64{gpu: 1},
			"n example.com/gpu: it has devices that several claims can share",
		},
		"a selector fails": {
			poolOf(nil, device("a"), device("b", failing)), nil,
			`n example.com/gpu: the selector of its class fails on the device "b"`,
		},
		"two devices of one name": {
			poolOf(nil, device("a"), device("a")), nil,
			`n example.com/gpu: its pool driver/pool cannot be used: it has two devices "a"`,
		},
		"counters that are not there": {
			poolOf(nil, device("a", consuming("set", 1))), nil,
			`n example.com/gpu: its pool driver/pool cannot be used: its device "a" consumes the counter "memory" of "set", ` +
				`which it does not have`,
		},
		"a slice is missing": {
			poolOf(nil, device("a"))[1:], nil,
			"n example.com/gpu: its pool driver/pool cannot be used: its generation 0 has 1 of 2 slices",
		},
		"counters that no int64 can sum up": {
			poolOf(map[string]int64{"set": 1}, device("a", consuming("set", math.MaxInt64), consuming("set", math.MaxInt64)),
				device("b", consuming("set", 1))), map[string]int64{gpu: 1}, "",
		},
	} {
		p := inventory.Count(tc.slices, inventory.State{Allocated: none})
		var why []string
		for _, u := range p.Uncounted {
			why = append(why, fmt.Sprintf("%s %s: %s", u.Node, u.Resource, u.Why))
		}
		if got := strings.Join(why, "; "); got != tc.why {
			t.Errorf("%s: not counted are\n%s\nwant\n%s", name, got, tc.why)
		}
		got := inventory.OnNode(map[string]inventory.Node{"pool": p.Nodes["n"]})["pool"]
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTaintsDoNotTakeADeviceThatIsAllocated(t *testing.T) {
	p := inventory.Count(poolOf(nil, device("a"), device("b"), device("c")), inventory.State{
		Allocated: func(d string) bool { return d == "a" }, Tainted: func(d string) bool { return d != "c" },
	})
	if got := p.Nodes["n"].Amounts[gpu]; got != 2 {
		t.Errorf("%d devices count, want the allocated one and the one without a taint", got)
	}
}

func TestAResourceOnWhichAPoolFailsCountsInNoPoolOfTheNode(t *testing.T) {
	got := inventory.OnNode(map[string]inventory.Node{
		"a": {Amounts: map[string]int64{gpu: 4, part: 2}}, "b": {Failed: []string{gpu}}, "c": {Amounts: map[string]int64{gpu: 1}},
	})
	if diff := cmp.Diff(map[string]map[string]int64{"a": {part: 2}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestANodeCountsABoundedNumberOfPools(t *testing.T) {
	pools := map[string]inventory.Node{}
	for i := range 2 * inventory.MaxNodePools {
		pools[fmt.Sprintf("pool-%03d", i)] = inventory.Node{Amounts: map[string]int64{gpu: 1}}
	}
	got := inventory.OnNode(pools)
	if _, first := got["pool-000"]; len(got) != inventory.MaxNodePools || !first {
		t.Errorf("%d pools count, the first one among them: %v", len(got), first)
	}
}

func TestOfClassesForOneResourceTheNewestServesIt(t *testing.T) {
	class := func(name, resource string, created int64) inventory.Class {
		return inventory.Class{Name: name, Resource: resource, Created: time.Unix(created, 0)}
	}
	got := map[string]string{}
	for resource, c := range inventory.Resources([]inventory.Class{
		class("old", gpu, 1), class("new-b", gpu, 2), class("new-a", gpu, 2), class("plain", "", 3),
	}) {
		got[resource] = c.Name
	}
	want := map[string]string{gpu: "new-a", resourcev1.ResourceDeviceClassPrefix + "plain": "plain"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var many []inventory.Class
	for i := range 2 * inventory.MaxClasses {
		many = append(many, class(fmt.Sprint("class-", i), "", int64(i)))
	}
	all := inventory.Resources(many)
	if _, oldest := all[resourcev1.ResourceDeviceClassPrefix+"class-0"]; len(all) != inventory.MaxClasses || !oldest {
		t.Errorf("%d classes count, the oldest among them: %v", len(all), oldest)
	}
}
