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
			text, _ := json.Marshal(id) // A text can always be encoded.
			left -= len(text) + len(",")
			return left < 0
		})
		if over >= 0 {
			ids = ids[:over]
		}
		bounded[address] = ids
	}
	return bounded
}
