package devices

import (
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"proffer.dev/proffer/internal/source/devices/inventory"
)

// The bounds of what is kept. What is beyond one is ignored: a slice leaves its pool incomplete, so that nothing of
// the pool counts, and a class serves no resource.
const (
	// maxClasses is the number of DeviceClasses.
	maxClasses = 1024
	// maxNodeSlices is the number of slices of a node, maxOtherSlices that of slices that are not of one node.
	maxNodeSlices, maxOtherSlices = 256, 4096
	// maxDevices is the number of devices.
	maxDevices = 1 << 18
	// maxName is the length of the name of a device, pool, driver or node, in bytes.
	maxName = 253
	// maxClaims is the number of allocated ResourceClaims.
	maxClaims = 1 << 17
	// maxRules is the number of DeviceTaintRules whose taints keep pods away.
	maxRules = 1000
	// maxUncounted is the number of reasons for which resources of one pool are not counted.
	maxUncounted = 64
)

// bounds reports what is beyond a bound: all of it in a metric, and the first object of each kind in the log.
type bounds struct {
	refused *prometheus.CounterVec
	log     logr.Logger
	logged  map[string]struct{}
	// devices counts those of all slices, slices the slices of each node, those of no node under "".
	devices int
	slices  map[string]int
}

func newBounds(log logr.Logger) *bounds {
	b := &bounds{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proffer_device_objects_ignored_total",
			Help: "Number of reads of a DeviceClass, ResourceSlice, allocated ResourceClaim or DeviceTaintRule beyond a " +
				"bound, which does not count.",
		}, []string{"kind"}),
		log: log, logged: map[string]struct{}{}, slices: map[string]int{},
	}
	for _, kind := range []string{"class", "slice", "claim", "rule"} {
		b.refused.WithLabelValues(kind)
	}
	return b
}

// admit counts a slice, or refuses it.
func (b *bounds) admit(of *book, s *inventory.Slice) bool {
	most := maxNodeSlices
	if s.Node == "" {
		most = maxOtherSlices
	}
	p := of.pools[s.Pool]
	if b.slices[s.Node] >= most || b.devices+len(s.Devices) > maxDevices || tooLong(s) ||
		p != nil && len(p.slices) >= inventory.MaxSlices {
		b.refuse("slice", s.Name)
		return false
	}
	b.slices[s.Node]++
	b.devices += len(s.Devices)
	return true
}

// release undoes admit.
func (b *bounds) release(s *inventory.Slice) {
	if b.slices[s.Node]--; b.slices[s.Node] == 0 {
		delete(b.slices, s.Node)
	}
	b.devices -= len(s.Devices)
}

// tooLong reports whether a name of a slice is longer than an API server accepts.
func tooLong(s *inventory.Slice) bool {
	long := max(len(s.Pool.Driver), len(s.Pool.Name), len(s.Node)) > maxName
	for i := range s.Devices {
		long = long || max(len(s.Devices[i].Name), len(s.Devices[i].Node)) > maxName
	}
	return long
}

func (b *bounds) admitClaim(of *book) bool {
	if len(of.claims) < maxClaims {
		return true
	}
	b.refuse("claim", "")
	return false
}

func (b *bounds) admitRule(of *book) bool {
	if len(of.rules) < maxRules {
		return true
	}
	b.refuse("rule", "")
	return false
}

func (b *bounds) refuse(kind, name string) {
	b.refused.WithLabelValues(kind).Inc()
	if _, logged := b.logged[kind]; !logged {
		b.logged[kind] = struct{}{}
		b.log.Info("An object of dynamic resource allocation is beyond a bound and does not count. "+
			"Further objects of this kind are not logged", "kind", kind, "name", name)
	}
}
