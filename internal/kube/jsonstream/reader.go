// Package jsonstream reads JSON while it arrives, and keeps only what its caller asks for. The
// caller names the most memory that a value, key or string may take, whatever its size on the wire.
// So the package can read objects that others may fill without a bound.
//
// It checks the syntax of what it keeps, but not of what it skips: its input is the response of an
// API server.
package jsonstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// MaxKey is how many bytes of a key are kept.
	MaxKey = 512
	// maxDepth bounds the nesting of values that are read member by member. What is skipped may
	// nest to any depth.
	maxDepth = 64
	// chunk is how much is read at a time.
	chunk = 64 << 10
)

// Kind is the kind of a JSON value.
type Kind int

// The kinds of JSON values.
const (
	Invalid Kind = iota
	Object
	Array
	String
	Number
	Bool
	Null
)

// Reader reads one JSON value after another. It is for one goroutine.
type Reader struct {
	in    *bufio.Reader
	depth int
	// values counts the values that have been read to their end.
	values int
	text   []byte
}

// NewReader returns a Reader. It may read beyond the end of a value.
func NewReader(from io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(from, chunk)}
}

// Kind returns the kind of the next value without consuming it. At the end of the stream the error
// is io.EOF.
func (r *Reader) Kind() (Kind, error) {
	c, err := r.peek()
	if err != nil {
		return Invalid, err
	}
	switch {
	case c == '{':
		return Object, nil
	case c == '[':
		return Array, nil
	case c == '"':
		return String, nil
	case c == '-' || '0' <= c && c <= '9':
		return Number, nil
	case c == 't' || c == 'f':
		return Bool, nil
	case c == 'n':
		return Null, nil
	}
	return Invalid, fmt.Errorf("%q does not start a JSON value", c)
}

// Members reads an object. It calls member with each key, of which at most MaxKey bytes are kept; a
// value that member does not read is skipped. Any other value than an object is skipped, and the
// result is false.
func (r *Reader) Members(member func(key string) error) (isObject bool, err error) {
	return r.each(Object, '}', func() error {
		key, _, err := r.String(MaxKey)
		if err != nil {
			return err
		}
		if err := r.take(':'); err != nil {
			return err
		}
		return r.orSkip(func() error { return member(key) })
	})
}

// Elements reads an array. It calls element before each element, which is skipped if the function
// does not read it. Any other value than an array is skipped, and the result is false.
func (r *Reader) Elements(element func() error) (isArray bool, err error) {
	return r.each(Array, ']', func() error { return r.orSkip(element) })
}

// orSkip skips the next value unless read has read it.
func (r *Reader) orSkip(read func() error) error {
	before := r.values
	if err := read(); err != nil || r.values > before {
		return err
	}
	return r.Skip()
}

// each calls one for each item between two brackets.
func (r *Reader) each(want Kind, end byte, one func() error) (bool, error) {
	kind, err := r.Kind()
	if err != nil {
		return false, err
	}
	if kind != want {
		return false, r.Skip()
	}
	if r.depth++; r.depth > maxDepth {
		return true, fmt.Errorf("JSON nests deeper than %d", maxDepth)
	}
	defer func() { r.depth-- }()
	if _, err := r.in.Discard(1); err != nil {
		return true, err
	}
	for first := true; ; first = false {
		c, err := r.peek()
		if err != nil {
			return true, noEOF(err)
		}
		if c == end {
			r.values++
			_, err := r.in.Discard(1)
			return true, err
		}
		if !first {
			if err := r.take(','); err != nil {
				return true, err
			}
		}
		if err := one(); err != nil {
			return true, noEOF(err)
		}
	}
}

// Skip reads the next value and keeps nothing of it.
func (r *Reader) Skip() error {
	return r.scan(func([]byte) {})
}

// String reads a string, of which it keeps at most this many bytes, and reports whether it was cut.
// It is an error if the next value is not a string.
func (r *Reader) String(most int) (text string, cut bool, err error) {
	kind, err := r.Kind()
	if err != nil {
		return "", false, err
	}
	if kind != String {
		return "", false, errors.New("JSON lacks a string that is required")
	}
	// An escaped character takes six bytes, and at least one when decoded.
	raw, whole, err := r.raw(6*most + len(`""`))
	if err != nil {
		return "", false, err
	}
	if !whole {
		raw = append(withoutHalf(raw), '"')
	}
	if plain := raw[1 : len(raw)-1]; len(plain) <= most && utf8.Valid(plain) && bytes.IndexByte(plain, '\\') < 0 {
		return string(plain), !whole, nil
	}
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", false, fmt.Errorf("reading a text: %w", err)
	}
	if len(text) <= most {
		return text, !whole, nil
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	// A copy, so that the rest can be freed.
	return string(append([]byte(nil), text[:most]...)), true, nil
}

// withoutHalf drops an incomplete escape sequence from the end of a string that was cut.
func withoutHalf(raw []byte) []byte {
	for at := 1; at < len(raw); at++ { // After the quotation mark.
		if raw[at] != '\\' {
			continue
		}
		length := 2
		if at+1 < len(raw) && raw[at+1] == 'u' {
			length = 6
		}
		if at+length > len(raw) {
			return raw[:at]
		}
		at += length - 1
	}
	return raw
}

// Value reads a value of at most this many bytes of JSON as nil, a bool, an int64, a float64, a
// string, a []any or a map[string]any. A larger one is skipped, and whole is false.
func (r *Reader) Value(most int) (value any, whole bool, err error) {
	raw, whole, err := r.raw(most)
	if err != nil || !whole {
		return nil, false, err
	}
	if err := utiljson.Unmarshal(raw, &value); err != nil {
		return nil, false, fmt.Errorf("reading a value: %w", err)
	}
	return value, true, nil
}

// raw reads a value, and returns at most this many bytes of it, which the next read overwrites.
func (r *Reader) raw(most int) (raw []byte, whole bool, err error) {
	r.text, whole = r.text[:0], true
	err = r.scan(func(part []byte) {
		if left := most - len(r.text); len(part) > left {
			part, whole = part[:left], false
		}
		r.text = append(r.text, part...)
	})
	return r.text, whole, err
}

// scan reads the next value to its end, and passes on each part as it arrives.
func (r *Reader) scan(take func(part []byte)) error {
	if _, err := r.Kind(); err != nil {
		return err
	}
	var s scanner
	for {
		part, err := r.in.Peek(max(1, r.in.Buffered()))
		if err != nil {
			if s.scalar && errors.Is(err, io.EOF) {
				r.values++
				return nil
			}
			return noEOF(err)
		}
		n, over := s.scan(part)
		take(part[:n])
		if _, err := r.in.Discard(n); err != nil {
			return err
		}
		if over {
			r.values++
			return nil
		}
	}
}

// scanner finds the end of a value.
type scanner struct {
	begun, scalar, inText, escaped bool
	depth                          int
}

// scan returns how many of the bytes belong to the value, and whether it ends with them.
func (s *scanner) scan(part []byte) (n int, over bool) {
	for n < len(part) {
		if s.inText {
			if s.escaped {
				s.escaped = false
				n++
				continue
			}
			next := bytes.IndexAny(part[n:], `"\`)
			if next < 0 {
				return len(part), false
			}
			n += next + 1
			if s.escaped = part[n-1] == '\\'; s.escaped {
				continue
			}
			if s.inText = false; s.depth == 0 {
				return n, true
			}
			continue
		}
		c := part[n]
		switch {
		case c == '"':
			s.inText = true
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			if s.scalar {
				return n, true
			}
			if s.depth--; s.depth == 0 {
				return n + 1, true
			}
		case s.scalar && (c == ',' || isSpace(c)):
			return n, true
		case !s.begun:
			s.scalar = true
		}
		s.begun = true
		n++
	}
	return n, false
}

// peek returns the next byte that is not space, without consuming it.
func (r *Reader) peek() (byte, error) {
	for {
		next, err := r.in.Peek(1)
		if err != nil {
			return 0, err
		}
		if !isSpace(next[0]) {
			return next[0], nil
		}
		if _, err := r.in.Discard(1); err != nil {
			return 0, err
		}
	}
}

func (r *Reader) take(want byte) error {
	c, err := r.peek()
	if err != nil {
		return noEOF(err)
	}
	if c != want {
		return fmt.Errorf("JSON has %q, want %q", c, want)
	}
	_, err = r.in.Discard(1)
	return err
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// noEOF returns the error of an unexpected end in place of io.EOF.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
