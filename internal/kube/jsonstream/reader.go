// Package jsonstream reads JSON while it arrives, and keeps only what its caller asks for. The
// caller names the most memory that a value, key or string may take, whatever its size on the wire.
// So the package can read objects that others may fill without a bound.
package jsonstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// MaxKey bounds the bytes that are kept of a key.
	MaxKey = 512
	// maxDepth bounds the nesting of values that are read member by member.
	maxDepth = 64
	// chunk is how much is read at a time.
	chunk = 64 << 10
)

// Kind is the kind of a JSON value.
type Kind = jsontext.Kind

// The kinds of JSON values that callers distinguish.
const (
	Object = jsontext.KindBeginObject
	Array  = jsontext.KindBeginArray
	String = jsontext.KindString
)

// lenient accepts what encoding/json accepts. Without it, the names of all members would be kept.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// Reader reads one JSON value after another. It is for one goroutine.
type Reader struct {
	// Strict makes Decode refuse fields that its result does not have.
	Strict bool

	in   *jsontext.Decoder
	text []byte
}

// NewReader returns a Reader of input that others may fill without a bound. Longer texts than
// maxText are cut, which Decode would not notice. It may read beyond the end of a value.
func NewReader(from io.Reader) *Reader {
	return NewUnbounded(&clipper{from: bufio.NewReaderSize(from, chunk)})
}

// NewUnbounded returns a Reader that keeps texts and elements whole. The caller bounds the input.
func NewUnbounded(from io.Reader) *Reader {
	return &Reader{in: jsontext.NewDecoder(from, lenient...)}
}

// Kind returns the kind of the next value without consuming it. At the end of the stream the error
// is io.EOF.
func (r *Reader) Kind() (Kind, error) {
	if kind := r.in.PeekKind(); kind != jsontext.KindInvalid {
		return kind, nil
	}
	_, err := r.token()
	return jsontext.KindInvalid, err
}

func (r *Reader) token() (jsontext.Token, error) {
	token, err := r.in.ReadToken()
	return token, plain(err)
}

// plain returns io.ErrUnexpectedEOF unwrapped: the watches of client-go compare it by identity.
func plain(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Expect returns an error if the next value is of another kind.
func (r *Reader) Expect(want Kind) error {
	kind, err := r.Kind()
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err == nil && kind != want:
		return fmt.Errorf("it has %v where %v should be", kind, want)
	}
	return err
}

// Object is Members for a value that must be an object.
func (r *Reader) Object(member func(key string) error) error {
	if err := r.Expect(Object); err != nil {
		return err
	}
	_, err := r.Members(member)
	return err
}

// List decodes each element of an array. Null is an empty array, any other value an error.
func List[T any](r *Reader, each func(*T) error) error {
	if r.in.PeekKind() == jsontext.KindNull {
		return r.Skip()
	}
	if err := r.Expect(Array); err != nil {
		return err
	}
	_, err := r.Elements(func() error {
		var element T
		if err := r.Decode(&element); err != nil {
			return err
		}
		return each(&element)
	})
	return err
}

// Decode decodes the next value as json.Unmarshal does.
func (r *Reader) Decode(into any) error {
	text, err := r.in.ReadValue()
	if err != nil {
		return plain(err)
	}
	if !r.Strict {
		return json.Unmarshal(text, into)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// Members reads an object. It calls member with each key, of which at most MaxKey bytes are kept; a
// value that member does not read is skipped. Any other value than an object is skipped, and the
// result is false.
func (r *Reader) Members(member func(key string) error) (isObject bool, err error) {
	return r.each(Object, func() error {
		key, _, err := r.String(MaxKey)
		if err != nil {
			return err
		}
		return r.orSkip(func() error { return member(key) })
	})
}

// Elements reads an array. It calls element before each element, which is skipped if the function
// does not read it. Any other value than an array is skipped, and the result is false.
func (r *Reader) Elements(element func() error) (isArray bool, err error) {
	return r.each(Array, func() error { return r.orSkip(element) })
}

// orSkip skips the next value unless read has read it.
func (r *Reader) orSkip(read func() error) error {
	before := r.in.InputOffset()
	if err := read(); err != nil || r.in.InputOffset() > before {
		return err
	}
	return r.Skip()
}

// each calls one for each item between two brackets.
func (r *Reader) each(want Kind, one func() error) (bool, error) {
	kind, err := r.Kind()
	if err != nil {
		return false, err
	}
	if kind != want {
		return false, r.Skip()
	}
	if r.in.StackDepth() >= maxDepth {
		return true, fmt.Errorf("JSON nests deeper than %d", maxDepth)
	}
	if _, err := r.token(); err != nil {
		return true, err
	}
	for {
		kind, err := r.Kind()
		if err != nil {
			return true, err
		}
		if kind == jsontext.KindEndObject || kind == jsontext.KindEndArray {
			_, err := r.token()
			return true, err
		}
		if err := one(); err != nil {
			return true, err
		}
	}
}

// Skip reads the next value and keeps nothing of it.
func (r *Reader) Skip() error { return plain(r.in.SkipValue()) }

// String reads a string, of which it keeps at most this many bytes, and reports whether it was cut.
// It is an error if the next value is not a string.
func (r *Reader) String(most int) (text string, cut bool, err error) {
	token, err := r.token()
	if err != nil {
		return "", false, err
	}
	if token.Kind() != String {
		return "", false, errors.New("JSON lacks a string that is required")
	}
	text = token.String()
	if len(text) <= most {
		return text, false, nil
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	// A copy, so that the rest can be freed.
	return strings.Clone(text[:most]), true, nil
}

// Value is Text decoded: it is nil, a bool, an int64, a float64, a string, a []any or a map[string]any.
func (r *Reader) Value(most int) (value any, whole bool, err error) {
	text, whole, err := r.Text(most)
	if err != nil || !whole {
		return nil, false, err
	}
	if err := utiljson.Unmarshal(text, &value); err != nil {
		return nil, false, fmt.Errorf("reading a value: %w", err)
	}
	return value, true, nil
}

// Text reads a value of at most this many bytes of JSON. A larger one is skipped, and whole is false. The text is
// valid until the next call.
func (r *Reader) Text(most int) (text []byte, whole bool, err error) {
	depth, kept := r.in.StackDepth(), bytes.NewBuffer(r.text[:0])
	out := jsontext.NewEncoder(kept, lenient...)
	for whole = true; ; {
		token, err := r.token()
		if err != nil {
			return nil, false, err
		}
		if whole = whole && r.in.StackDepth() < maxNesting; whole {
			if err := out.WriteToken(token); err != nil {
				return nil, false, err
			}
			whole = out.OutputOffset() <= int64(most)+1 // The encoder adds a newline.
		}
		if r.in.StackDepth() == depth {
			break
		}
	}
	if r.text = kept.Bytes(); !whole {
		return nil, false, nil
	}
	return r.text, true, nil
}
