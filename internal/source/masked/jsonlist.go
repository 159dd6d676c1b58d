package masked

import (
	"encoding/json"
	"errors"
	"io"

	"proffer.dev/proffer/internal/kube/jsonstream"
)

// readJSONList is ReadList for an API server, or a proxy, that sends no protobuf.
func readJSONList[P Object](from io.Reader, one func() P) (*List[P], error) {
	l, found := &List[P]{}, false
	in := jsonstream.NewUnbounded(from)
	err := in.Object(func(name string) error {
		switch name {
		case "metadata":
			return in.Decode(&l.ListMeta)
		case "items":
			found = true
			return jsonstream.List(in, func(text *json.RawMessage) error {
				item := one()
				l.Items = append(l.Items, item)
				return json.Unmarshal(*text, item)
			})
		}
		return nil
	})
	if err == nil && !found {
		err = errors.New("the list has no items")
	}
	return l, err
}
