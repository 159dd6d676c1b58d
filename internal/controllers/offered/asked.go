package offered

import (
	"encoding/json"
	"slices"
)

// maxAskedBytes is for the consumers that external sources were asked about, as text.
const maxAskedBytes = 192 << 10

// askedConsumers lists, by the address of an external source, the consumers that it was asked about and has
// not been told to remove.
type askedConsumers map[string][]string

// boundAsked returns the consumers for which the record has room: the first ones of each address. Each
// address has the same share of the room.
func boundAsked(asked askedConsumers) askedConsumers {
	bounded := make(askedConsumers, len(asked))
	for address, ids := range asked {
		left := maxAskedBytes/len(asked) - len(address) - len(`"":[],{}`)
		over := slices.IndexFunc(ids, func(id string) bool {
			text, err := json.Marshal(id)
			left -= len(text) + len(",")
			return left < 0 || err != nil
		})
		if over >= 0 {
			ids = ids[:over]
		}
		bounded[address] = ids
	}
	return bounded
}

// encode returns the text of the lists, empty for none.
func (a askedConsumers) encode() (string, error) {
	if len(a) == 0 {
		return "", nil
	}
	text, err := json.Marshal(a)
	return string(text), err
}

// parseAsked reads the text of the lists.
func parseAsked(text string) (askedConsumers, error) {
	var a askedConsumers
	if text == "" {
		return a, nil
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return nil, err
	}
	return a, nil
}
