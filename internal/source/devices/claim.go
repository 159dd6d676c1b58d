package devices

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/source/devices/inventory"
)

// maxUID bounds the UID of a pod, in bytes.
const maxUID = 64

// deviceID identifies a device in the cluster.
type deviceID struct {
	pool inventory.PoolID
	name string
}

// claim is a ResourceClaim.
type claim struct {
	key string
	// devices are allocated to it alone, none if it is not allocated. An API server accepts at most 32.
	devices []deviceID
	// pods are the UIDs of the pods that it is reserved for, at most 256 by the API.
	pods []string
}

// parseClaim reads a ResourceClaim. Devices for administrative access, and shares of a device, stay with others.
func parseClaim(c *resourcev1.ResourceClaim) claim {
	out := claim{key: capacity.ClaimKey(c.Namespace, c.Name)}
	if c.Status.Allocation == nil {
		return out
	}
	for i := range c.Status.Allocation.Devices.Results {
		r := &c.Status.Allocation.Devices.Results[i]
		if !ptr.Deref(r.AdminAccess, false) && r.ShareID == nil {
			out.devices = append(out.devices, deviceID{inventory.PoolID{Driver: r.Driver, Name: r.Pool}, r.Device})
		}
	}
	for _, r := range c.Status.ReservedFor {
		if r.APIGroup == "" && r.Resource == "pods" && len(r.UID) <= maxUID {
			out.pods = append(out.pods, string(r.UID))
		}
	}
	return out
}

// taintRule is a DeviceTaintRule. rule is nil if it taints nothing that matters.
type taintRule struct {
	name string
	rule *inventory.TaintRule
}

func parseRule(r *resourcev1.DeviceTaintRule) taintRule {
	out := taintRule{name: r.Name}
	if rule, repelling := inventory.ParseTaintRule(r); repelling {
		out.rule = &rule
	}
	return out
}
