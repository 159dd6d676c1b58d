package nodes

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protobufMagic is the prefix of Kubernetes' protobuf, see
// k8s.io/apimachinery/pkg/runtime/serializer/protobuf.
var protobufMagic = []byte("k8s\x00")

// codecs adapts the codecs of apimachinery, except for pods and nodes. Their protobuf is decoded in
// place, while apimachinery would copy each twice first. Other objects and formats are left to
// apimachinery.
type codecs struct {
	runtime.NegotiatedSerializer
	decoder *decoder
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c codecs) SupportedMediaTypes() []runtime.SerializerInfo {
	var all []runtime.SerializerInfo
	for _, info := range c.NegotiatedSerializer.SupportedMediaTypes() {
		switch info.MediaType {
		case runtime.ContentTypeProtobuf:
			info.Serializer = objectCodec{info.Serializer, c.decoder}
			stream := *info.StreamSerializer
			stream.Serializer = eventCodec{stream.Serializer}
			info.StreamSerializer = &stream
		case runtime.ContentTypeJSON:
			info.Serializer = jsonCodec{info.Serializer, c.decoder}
		}
		all = append(all, info)
	}
	return all
}

// objectCodec decodes an object in its envelope, a runtime.Unknown.
type objectCodec struct {
	runtime.Serializer
	decoder *decoder
}

// Decode implements runtime.Decoder.
func (c objectCodec) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if envelope, ok := bytes.CutPrefix(data, protobufMagic); ok && into == nil {
		is, raw := bytesField(envelope, 1), bytesField(envelope, 2)
		if kind, o := c.decoder.object(string(bytesField(is, 1)), string(bytesField(is, 2))); o != nil {
			return o, kind, o.Unmarshal(raw)
		}
	}
	return c.Serializer.Decode(data, defaults, into)
}

// jsonCodec decodes an object in JSON.
type jsonCodec struct {
	runtime.Serializer
	decoder *decoder
}

// Decode implements runtime.Decoder.
func (c jsonCodec) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	var is metav1.TypeMeta
	if into == nil && json.Unmarshal(data, &is) == nil {
		if kind, o := c.decoder.object(is.APIVersion, is.Kind); o != nil {
			return o, kind, json.Unmarshal(data, o)
		}
	}
	return c.Serializer.Decode(data, defaults, into)
}

// object returns an object of the kind to decode into, nil for a kind that is left to apimachinery.
func (d *decoder) object(version, kind string) (*schema.GroupVersionKind, interface {
	runtime.Object
	decodedObject
},
) {
	switch schema.FromAPIVersionAndKind(version, kind) {
	case podKind:
		return &podKind, d.newPod()
	case nodeKind:
		return &nodeKind, d.newNode()
	case shadowPodKind:
		return &shadowPodKind, d.newShadowPod()
	}
	return nil, nil
}

// eventCodec decodes an event of a watch. The object is not copied, so it must be decoded before the
// next event is read, as client-go does.
type eventCodec struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (c eventCodec) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return c.Serializer.Decode(data, defaults, into)
	}
	kind, object := bytesField(data, 1), bytesField(data, 2)
	if kind == nil || object == nil {
		return c.Serializer.Decode(data, defaults, into) // Its error names the problem.
	}
	*event = metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: bytesField(object, 1)}}
	return event, defaults, nil
}

// bytesField returns the last field with this number in a message, nil if there is none or the
// message is malformed.
func bytesField(message []byte, number protowire.Number) (value []byte) {
	for len(message) > 0 {
		n, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil
		}
		length := protowire.ConsumeFieldValue(n, kind, message[tag:])
		if length < 0 {
			return nil
		}
		if n == number && kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message[tag:])
		}
		message = message[tag+length:]
	}
	return value
}
