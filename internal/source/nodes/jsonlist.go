package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// readJSONList is readList for an API server, or a proxy, that sends no protobuf.
func readJSONList[P object](from io.Reader, one func() P) (*objectList[P], error) {
	l, found := &objectList[P]{}, false
	in := json.NewDecoder(from)
	err := eachMember(in, func(name string) error {
		switch name {
		case "metadata":
			return in.Decode(&l.ListMeta)
		case "items":
			found = true
			return eachElement(in, func() error {
				item := one()
				l.Items = append(l.Items, item)
				return in.Decode(item)
			})
		}
		return in.Decode(new(json.RawMessage))
	})
	if err == nil && !found {
		err = errors.New("the list has no items")
	}
	return l, noEOF(err)
}

// eachMember visits the members of an object, which the visitor must decode.
func eachMember(in *json.Decoder, visit func(name string) error) error {
	if err := delimiter(in, '{'); err != nil {
		return err
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return err
		}
		if err := visit(name.(string)); err != nil { // The decoder takes no other name.
			return err
		}
	}
	return delimiter(in, '}')
}

// eachElement visits the elements of an array, which the visitor must decode. Null is an empty
// array.
func eachElement(in *json.Decoder, visit func() error) error {
	begin, err := in.Token()
	switch {
	case err != nil:
		return err
	case begin == nil:
		return nil
	case begin != json.Delim('['):
		return fmt.Errorf("got %v, want the start of a list of objects", begin)
	}
	for in.More() {
		if err := visit(); err != nil {
			return err
		}
	}
	return delimiter(in, ']')
}

func delimiter(in *json.Decoder, want json.Delim) error {
	token, err := in.Token()
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("got %v, want %v", token, want)
	}
	return nil
}
