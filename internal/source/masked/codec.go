package nodes

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// codecs are the codecs of apimachinery, but decode pods and nodes into the objects of a decoder.
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

// objectCreater creates the objects that are decoded into.
type objectCreater struct {
	*runtime.Scheme
	decoder *decoder
}

// New implements runtime.ObjectCreater.
func (c objectCreater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	switch kind {
	case podKind:
		return c.decoder.newPod(), nil
	case nodeKind:
		return c.decoder.newNode(), nil
	case shadowPodKind:
		return c.decoder.newShadowPod(), nil
	}
	return c.Scheme.New(kind)
}
