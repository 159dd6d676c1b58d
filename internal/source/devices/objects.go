package devices

import (
	"encoding/json"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"proffer.dev/proffer/internal/source/devices/inventory"
	"proffer.dev/proffer/internal/source/masked"
)

// The masks keep what is read of each kind. The field numbers come from k8s.io/api/resource/v1/generated.proto.
var (
	classMask = masked.Message(masked.Fields{
		1: masked.Metadata(nil, masked.Fields{8: masked.Whole}), // creationTimestamp
		2: masked.Message(masked.Fields{ // spec
			1: masked.Whole, // selectors
			4: masked.Whole, // extendedResourceName
		}),
	})
	sliceMask = masked.Message(masked.Fields{
		1: masked.Metadata(nil, nil),
		2: masked.Message(masked.Fields{ // spec
			1: masked.Whole, // driver
			2: masked.Whole, // pool
			3: masked.Whole, // nodeName
			6: masked.Message(masked.Fields{ // devices
				1:  masked.Whole, // name
				2:  masked.Whole, // attributes
				3:  masked.Whole, // capacity
				4:  masked.Whole, // consumesCounters
				5:  masked.Whole, // nodeName
				8:  masked.Whole, // taints
				12: masked.Whole, // allowMultipleAllocations
			}),
			7: masked.Whole, // perDeviceNodeSelection
			8: masked.Whole, // sharedCounters
		}),
	})
	claimMask = masked.Message(masked.Fields{
		1: masked.Metadata(nil, nil),
		3: masked.Message(masked.Fields{ // status
			1: masked.Message(masked.Fields{ // allocation
				1: masked.Message(masked.Fields{ // devices
					1: masked.Message(masked.Fields{ // results
						2: masked.Whole, // driver
						3: masked.Whole, // pool
						4: masked.Whole, // device
						5: masked.Whole, // adminAccess
						9: masked.Whole, // shareID
					}),
				}),
			}),
			2: masked.Message(masked.Fields{ // reservedFor
				1: masked.Whole, // apiGroup
				3: masked.Whole, // resource
				5: masked.Whole, // uid
			}),
		}),
	})
	ruleMask = masked.Message(masked.Fields{
		1: masked.Metadata(nil, nil),
		2: masked.Message(masked.Fields{ // spec
			1: masked.Whole,                                   // deviceSelector
			2: masked.Message(masked.Fields{3: masked.Whole}), // taint: effect
		}),
	})
)

// object is decoded into what is kept of a kind of the API.
type object[F any, K any] struct {
	masked.Version
	kept K
	mask *masked.Mask
	// parse returns what is kept.
	parse func(*F) K
}

// message is a kind of the API.
type message[F any] interface {
	*F
	Unmarshal([]byte) error
	GetResourceVersion() string
}

func (o *object[F, K]) take(full *F, version string) {
	o.Version, o.kept = masked.VersionOf(version), o.parse(full)
}

// decoded is an object with the methods that need the type of its pointer.
type decoded[F any, P message[F], K any] struct{ object[F, K] }

// Unmarshal decodes protobuf.
func (o *decoded[F, P, K]) Unmarshal(data []byte) error {
	var full F
	if err := o.mask.Keep(data, P(&full).Unmarshal); err != nil {
		return err
	}
	o.take(&full, P(&full).GetResourceVersion())
	return nil
}

// UnmarshalJSON is for an API server, or a proxy, that sends no protobuf.
func (o *decoded[F, P, K]) UnmarshalJSON(data []byte) error {
	var full F
	if err := json.Unmarshal(data, &full); err != nil {
		return err
	}
	o.take(&full, P(&full).GetResourceVersion())
	return nil
}

// DeepCopyObject implements runtime.Object. It is no copy: nothing in it ever changes.
func (o *decoded[F, P, K]) DeepCopyObject() runtime.Object { return o }

// The objects of each kind.
type (
	classObject = decoded[resourcev1.DeviceClass, *resourcev1.DeviceClass, inventory.Class]
	sliceObject = decoded[resourcev1.ResourceSlice, *resourcev1.ResourceSlice, inventory.Slice]
	claimObject = decoded[resourcev1.ResourceClaim, *resourcev1.ResourceClaim, claim]
	ruleObject  = decoded[resourcev1.DeviceTaintRule, *resourcev1.DeviceTaintRule, taintRule]
)

func newClass() *classObject {
	return &classObject{object[resourcev1.DeviceClass, inventory.Class]{mask: classMask, parse: inventory.ParseClass}}
}

// newSlice returns a slice that is decoded by the selectors of the present classes.
func (b *book) newSlice() *sliceObject {
	return &sliceObject{object[resourcev1.ResourceSlice, inventory.Slice]{
		mask: sliceMask, parse: func(s *resourcev1.ResourceSlice) inventory.Slice {
			return inventory.ParseSlice(s, b.presentSelectors())
		},
	}}
}

func newClaim() *claimObject {
	return &claimObject{object[resourcev1.ResourceClaim, claim]{mask: claimMask, parse: parseClaim}}
}

func newRule() *ruleObject {
	return &ruleObject{object[resourcev1.DeviceTaintRule, taintRule]{mask: ruleMask, parse: parseRule}}
}
