package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Values are the values of a flag as text. In JSON they are a string, a number, true or false, or a
// list of these.
type Values []string

// UnmarshalJSON implements json.Unmarshaler.
func (v *Values) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var decoded any
	if err := d.Decode(&decoded); err != nil {
		return err
	}
	list, ok := decoded.([]any)
	if !ok {
		list = []any{decoded}
	}
	*v = make(Values, 0, len(list))
	for _, element := range list {
		switch element.(type) {
		case string, json.Number, bool:
			*v = append(*v, fmt.Sprint(element))
		default:
			return errors.New("the value of a flag must be text, a number, true or false, or a list of these")
		}
	}
	return nil
}
