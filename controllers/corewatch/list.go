package corewatch

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxObject bounds one object of a list. An API server takes no object of more than 3 MiB.
const maxObject = 16 << 20

// object is a type that is decoded from protobuf.
type object[T any] interface {
	*T
	Unmarshal([]byte) error
}

// readList decodes a list while it arrives. What is in memory at one time is one object and what was kept of those before it, where
// client-go's own way is to read all of the list first.
func readList[T any, P object[T]](from io.Reader) (*objectList[P], error) {
	in := bufio.NewReaderSize(from, 64<<10)
	begin, err := in.Peek(len(protobufMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	l := &objectList[P]{}
	if !bytes.Equal(begin, protobufMagic) {
		return l, json.NewDecoder(in).Decode(l)
	}
	if _, err := in.Discard(len(protobufMagic)); err != nil {
		return nil, err
	}
	var message []byte
	read := func(from *io.LimitedReader) error {
		if from.N > maxObject {
			return fmt.Errorf("an object of %d bytes: at most %d are taken", from.N, maxObject)
		}
		message = slices.Grow(message[:0], int(from.N))[:from.N]
		_, err := io.ReadFull(from, message)
		return err
	}
	// The envelope is a runtime.Unknown, whose second field is the list; of that, the first field is its metadata and each second an item.
	found := false
	err = eachField(in, func(number protowire.Number, field *io.LimitedReader) error {
		if number != 2 {
			return nil
		}
		found = true
		return eachField(field, func(number protowire.Number, field *io.LimitedReader) error {
			var into interface{ Unmarshal([]byte) error }
			switch int(number) {
			case 1:
				into = &l.ListMeta
			case 2:
				item := P(new(T))
				l.Items = append(l.Items, item)
				into = item
			default:
				return nil
			}
			if err := read(field); err != nil {
				return err
			}
			return into.Unmarshal(message)
		})
	})
	if err == nil && !found {
		err = io.ErrUnexpectedEOF
	}
	return l, err
}

// eachField visits the fields of a protobuf message that holds nothing but messages, strings and bytes.
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
			return fmt.Errorf("field %d of a list is of kind %d", number, kind)
		}
		length, err := binary.ReadUvarint(in)
		if err != nil {
			return noEOF(err)
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

// noEOF is the error of an end that comes in the middle of something.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
