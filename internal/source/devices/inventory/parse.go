package inventory

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/quantity"
)

// ParseClass reads a DeviceClass.
func ParseClass(c *resourcev1.DeviceClass) Class {
	out := Class{Name: c.Name, Resource: ptr.Deref(c.Spec.ExtendedResourceName, ""), Created: c.CreationTimestamp.Time}
	for _, s := range c.Spec.Selectors {
		if s.CEL != nil {
			out.Selectors = append(out.Selectors, s.CEL.Expression)
		}
	}
	return out
}

// ParseSlice reads a ResourceSlice.
func ParseSlice(s *resourcev1.ResourceSlice, classes *Selectors) Slice {
	spec := &s.Spec
	out := Slice{
		Name: s.Name, Pool: PoolID{spec.Driver, spec.Pool.Name}, Generation: spec.Pool.Generation,
		Slices: spec.Pool.ResourceSliceCount, Node: ptr.Deref(spec.NodeName, ""),
	}
	for i := range spec.SharedCounters {
		set := &spec.SharedCounters[i]
		out.Counters = append(out.Counters, CounterSet{set.Name, countersOf(set.Counters, quantity.Down)})
	}
	for i := range spec.Devices {
		d := &spec.Devices[i]
		device := Device{Name: d.Name, Node: out.Node}
		if ptr.Deref(spec.PerDeviceNodeSelection, false) {
			device.Node = ptr.Deref(d.NodeName, "")
		}
		device.Resources, device.Failed = classes.selecting(spec.Driver, d)
		device.Shareable = ptr.Deref(d.AllowMultipleAllocations, false)
		device.Tainted = slices.ContainsFunc(d.Taints, repels)
		for k := range d.ConsumesCounters {
			set := &d.ConsumesCounters[k]
			out.Grouped = out.Grouped || len(set.CompatibilityGroups) > 0
			device.Consumes = append(device.Consumes, CounterSet{set.CounterSet, countersOf(set.Counters, quantity.Up)})
		}
		out.Devices = append(out.Devices, device)
	}
	return out
}

// countersOf reads counters in thousandths: of a part of a thousandth, nothing is there and all is consumed.
func countersOf(all map[string]resourcev1.Counter, r quantity.Rounding) Counters {
	out := make(Counters, len(all))
	for name, c := range all {
		out[name] = quantity.AmountOf(capacity.CPU, c.Value, r)
	}
	return out
}

// repels reports whether a taint keeps pods away that ask for an extended resource: they tolerate none.
func repels(t resourcev1.DeviceTaint) bool {
	return t.Effect == resourcev1.DeviceTaintEffectNoSchedule || t.Effect == resourcev1.DeviceTaintEffectNoExecute
}

// TaintRule is a DeviceTaintRule whose taint repels pods.
type TaintRule struct{ driver, pool, device *string }

// ParseTaintRule reads a DeviceTaintRule, and reports whether it matters.
func ParseTaintRule(r *resourcev1.DeviceTaintRule) (rule TaintRule, repelling bool) {
	s := r.Spec.DeviceSelector
	if s == nil || !repels(r.Spec.Taint) {
		return rule, false // Without a selector it selects no device.
	}
	return TaintRule{s.Driver, s.Pool, s.Device}, true
}

// Taints reports whether the rule taints a device.
func (r TaintRule) Taints(pool PoolID, device string) bool {
	is := func(want *string, value string) bool { return want == nil || *want == value }
	return is(r.driver, pool.Driver) && is(r.pool, pool.Name) && is(r.device, device)
}
