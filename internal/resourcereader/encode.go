package resourcereader

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/proto/resourcereader/flat"
)

// encodePools returns the answer in the form of pools: one for each class, the class as prefix of the virtual node's name.
func encodePools(offers []*offer.Offer) []byte {
	pools := &wire.PoolResourceList{}
	for _, o := range offers {
		pools.ResourceLists = append(pools.ResourceLists, &wire.ResourceList{Resources: quantities(o), PoolPrefix: o.Class})
	}
	return encode(pools)
}

// encodeFlat returns the answer in the flat form; the offers must be fit for it.
func encodeFlat(offers []*offer.Offer) []byte {
	list := &flat.ResourceList{}
	if len(offers) > 0 {
		list.Resources = quantities(offers[0])
	}
	return encode(list)
}

// fitsFlat reports whether the flat form, which knows no classes, can say what is offered: the offer of the unnamed class, which
// sorts first, or the only one.
func fitsFlat(offers []*offer.Offer) bool {
	return len(offers) <= 1 || offers[0].Class == ""
}

// encode gives equal messages equal bytes.
func encode(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("resourcereader: %v", err)) // only for names that are not UTF-8, which the API server lets nobody write
	}
	return b
}

func quantities(o *offer.Offer) map[string]*wire.Quantity {
	m := make(map[string]*wire.Quantity, len(o.Amounts))
	for _, a := range o.Amounts {
		m[a.Resource] = &wire.Quantity{String_: new(quantity(a))}
	}
	return m
}

// quantity returns the amount in the canonical form of Kubernetes, which parses back to exactly the same amount. Where bytes
// are counted there are two, 2G and 1953125Ki, or 2Gi and 2147483648: it is the shorter one, as a person would write it.
func quantity(a offer.Amount) string {
	if a.Resource == capacity.CPU {
		return resource.NewMilliQuantity(a.Value, resource.DecimalSI).String()
	}
	text := resource.NewQuantity(a.Value, resource.DecimalSI).String()
	if countsBytes(a.Resource) {
		if binary := resource.NewQuantity(a.Value, resource.BinarySI).String(); len(binary) < len(text) {
			return binary
		}
	}
	return text
}

func countsBytes(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage:
		return true
	default:
		return strings.HasPrefix(name, corev1.ResourceHugePagesPrefix)
	}
}
