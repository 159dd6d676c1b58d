package masked

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// codecs are the codecs of apimachinery, but decode some kinds into objects of ours.
type codecs struct {
	runtime.NegotiatedSerializer
	objects objectCreater
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c codecs) SupportedMediaTypes() []runtime.SerializerInfo {
	all := slices.Clone(c.NegotiatedSerializer.SupportedMediaTypes())
	for i := range all {
		switch all[i].MediaType {
		case runtime.ContentTypeProtobuf:
			all[i].Serializer = protobuf.NewSerializer(c.objects, c.objects)
		case runtime.ContentTypeJSON:
			all[i].Serializer = json.NewSerializerWithOptions(
				json.DefaultMetaFactory, c.objects, c.objects, json.SerializerOptions{})
		}
	}
	return all
}

// Kinds make the objects that are decoded into, by kind.
type Kinds map[schema.GroupVersionKind]func() runtime.Object

// objectCreater creates the objects that are decoded into.
type objectCreater struct {
	*runtime.Scheme
	kinds Kinds
}

// New implements runtime.ObjectCreater.
func (c objectCreater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if one, ours := c.kinds[kind]; ours {
		return one(), nil
	}
	return c.Scheme.New(kind)
}
