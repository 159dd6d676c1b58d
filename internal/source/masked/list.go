package masked

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protobufMagic is the prefix of Kubernetes' protobuf, see
// k8s.io/apimachinery/pkg/runtime/serializer/protobuf.
var protobufMagic = []byte("k8s\x00")

// maxObject bounds one object of a list, in bytes. An API server accepts no object of more than 3
// MiB.
const maxObject = 16 << 20

// Object is decoded from protobuf or from JSON.
type Object interface {
	runtime.Object
	Unmarshal([]byte) error
	UnmarshalJSON([]byte) error
}

// List is a list of objects of one kind.
type List[P any] struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []P
}

// DeepCopyObject implements runtime.Object. It is no copy: nothing in it ever changes.
func (l *List[P]) DeepCopyObject() runtime.Object { return l }

// Version is the part of an object that client-go needs: the position of the watch.
type Version struct{ resource string }

// VersionOf returns the version with this resource version.
func VersionOf(resource string) Version { return Version{resource} }

// GetObjectKind implements runtime.Object. The Go type is the kind.
func (*Version) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// Reset does nothing: apimachinery calls it for a new object, before Unmarshal.
func (*Version) Reset() {}

// GetObjectMeta implements metav1.ObjectMetaAccessor. It returns a copy: changing it has no effect.
func (v *Version) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{ResourceVersion: v.resource}
}

// ReadList decodes a list of the objects that one returns while it arrives. It holds one object in
// memory, and what was kept of those before it; client-go itself would read the whole list first.
func ReadList[P Object](from io.Reader, one func() P) (*List[P], error) {
	in := bufio.NewReaderSize(from, 64<<10)
	begin, err := in.Peek(len(protobufMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(begin, protobufMagic) {
		return readJSONList(in, one)
	}
	if _, err := in.Discard(len(protobufMagic)); err != nil {
		return nil, err
	}
	l := &List[P]{}
	var message []byte
	decode := func(from *io.LimitedReader, into interface{ Unmarshal([]byte) error }) (err error) {
		if message, err = readAll(from, message[:0]); err != nil {
			return err
		}
		return into.Unmarshal(message)
	}
	// The envelope is a runtime.Unknown, whose second field is the list; of that, the first field
	// is its metadata and each second an item.
	found := false
	err = eachField(in, func(number protowire.Number, field *io.LimitedReader) error {
		if number != 2 {
			return nil
		}
		found = true
		return eachField(field, func(number protowire.Number, field *io.LimitedReader) error {
			switch int(number) {
			case 1:
				return decode(field, &l.ListMeta)
			case 2:
				item := one()
				l.Items = append(l.Items, item)
				return decode(field, item)
			}
			return nil
		})
	})
	if err == nil && !found {
		err = io.ErrUnexpectedEOF
	}
	return l, err
}

// readAll appends the rest of a message, which may have at most maxObject bytes.
func readAll(from *io.LimitedReader, to []byte) ([]byte, error) {
	if from.N > maxObject {
		return to, fmt.Errorf("an object has %d bytes, want at most %d", from.N, maxObject)
	}
	to = slices.Grow(to, int(from.N))[:int(from.N)]
	_, err := io.ReadFull(from, to)
	return to, err
}

// eachField visits the fields of a protobuf message that holds nothing but messages, strings and
// bytes.
func eachField(from io.Reader, visit func(protowire.Number, *io.LimitedReader) error) error {
	in := bufio.NewReader(from)
	for {
		tag, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		number, kind := protowire.DecodeTag(tag)
		if kind != protowire.BytesType || number < 1 {
			return fmt.Errorf("field %d of a list has the wire type %d", number, kind)
		}
		length, err := binary.ReadUvarint(in)
		if err != nil {
			return noEOF(err)
		}
		if length > math.MaxInt64 {
			return fmt.Errorf("field %d of a list has %d bytes, more than a message can have", number, length)
		}
		field := &io.LimitedReader{R: in, N: int64(length)}
		if err := visit(number, field); err != nil {
			return noEOF(err)
		}
		if _, err := io.Copy(io.Discard, field); err != nil {
			return err
		}
		if field.N != 0 {
			return io.ErrUnexpectedEOF
		}
	}
}

// noEOF returns the error of an unexpected end in place of io.EOF.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
