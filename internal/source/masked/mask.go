package masked

import (
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// Mask selects the fields of a protobuf message to keep, by number: a field with a mask is kept as
// that mask selects, any other field is dropped. Field numbers never change once an API is
// published, so a mask stays valid.
type Mask struct {
	fields []*Mask
	// only are the keys of a map, or the values of the first field of a repeated message, that are
	// kept; nil is for all.
	only []string
}

// Whole keeps a field as it is.
var Whole = &Mask{}

// Fields are the fields of a message, by number.
type Fields map[protowire.Number]*Mask

// Message keeps those fields of a message.
func Message(fields Fields) *Mask {
	m := &Mask{}
	for number, field := range fields {
		m.fields = append(m.fields, make([]*Mask, max(0, int(number)+1-len(m.fields)))...)
		m.fields[number] = field
	}
	return m
}

// Keyed keeps the entries with these keys, of a map or of repeated messages with their name in the
// first field.
func (m *Mask) Keyed(keys ...string) *Mask { return &Mask{fields: m.fields, only: keys} }

// Entry is the message that an entry of a map is.
var Entry = Message(Fields{1: Whole, 2: Whole})

// appendKept appends what the mask keeps of a message.
func (m *Mask) appendKept(kept, from []byte) ([]byte, error) {
	for len(from) > 0 {
		number, kind, tag := protowire.ConsumeTag(from)
		if tag < 0 {
			return nil, protowire.ParseError(tag)
		}
		value := protowire.ConsumeFieldValue(number, kind, from[tag:])
		if value < 0 {
			return nil, protowire.ParseError(value)
		}
		field := from[:tag+value]
		from = from[tag+value:]
		var of *Mask
		if int(number) < len(m.fields) {
			of = m.fields[number]
		}
		switch {
		case of == nil:
		case of == Whole || kind != protowire.BytesType:
			kept = append(kept, field...)
		default:
			inner, _ := protowire.ConsumeBytes(field[tag:])
			if of.only != nil && !of.includes(inner) {
				continue
			}
			var err error
			if kept, err = of.appendNested(append(kept, field[:tag]...), inner); err != nil {
				return nil, err
			}
		}
	}
	return kept, nil
}

// appendNested appends what the mask keeps of a message, after its length.
func (m *Mask) appendNested(kept, from []byte) ([]byte, error) {
	start := len(kept)
	kept, err := m.appendKept(kept, from)
	if err != nil {
		return nil, err
	}
	// The length is known only at the end.
	length := uint64(len(kept) - start)
	kept = protowire.AppendVarint(kept, length)
	prefix := protowire.SizeVarint(length)
	copy(kept[start+prefix:], kept[start:])
	protowire.AppendVarint(kept[:start], length)
	return kept, nil
}

// includes reports whether the first field of the message is among those kept.
func (m *Mask) includes(message []byte) bool {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return true // The decoder reports the problem.
		}
		if number == 1 && kind == protowire.BytesType {
			key, n := protowire.ConsumeBytes(message[tag:])
			return n < 0 || slices.Contains(m.only, string(key))
		}
		value := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if value < 0 {
			return true
		}
		message = message[tag+value:]
	}
	return false
}

// buffers hold what masks keep until it is decoded. None is larger than maxBuffer, in bytes, which
// is more than usual.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxBuffer = 64 << 10

// Metadata keeps what identifies an object, these labels, and more fields. The field
// numbers come from k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.
func Metadata(labels *Mask, more Fields) *Mask {
	kept := Fields{
		1:  Whole,  // name
		3:  Whole,  // namespace
		5:  Whole,  // uid
		6:  Whole,  // resourceVersion
		11: labels, // labels
	}
	maps.Copy(kept, more)
	return Message(kept)
}

// Keep calls its function with what the mask keeps of a message. The bytes are valid during the
// call.
func (m *Mask) Keep(from []byte, use func(kept []byte) error) error {
	buffer := buffers.Get().(*[]byte)
	defer func() {
		if cap(*buffer) <= maxBuffer {
			buffers.Put(buffer)
		}
	}()
	kept, err := m.appendKept((*buffer)[:0], from)
	if err != nil {
		return err
	}
	*buffer = kept
	return use(kept)
}
