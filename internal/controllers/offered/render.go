package offered

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/internal/offer"
)

// content is the present content of the ConfigMap.
type content struct {
	names     resourceNames
	withdrawn withdrawals
	asked     askedConsumers
	nodes     granterOffers
}

// wanted is the wanted content of the ConfigMap.
type wanted struct {
	content
	// served has the classes that a policy serves, owed those in which something is left. Before the first
	// snapshot both are nil.
	served offeredNames
	owed   map[string]struct{}
	now    time.Time
}

// day is the time between two looks at the record for classes whose time is over.
const day = 24 * time.Hour

// text identifies what is wanted. It changes every day, so that such classes leave the record.
func (w *wanted) text() string {
	return fmt.Sprint(w.names.byClass, w.withdrawn, w.asked, encode(w.nodes), slices.Sorted(maps.Keys(w.served)),
		slices.Sorted(maps.Keys(w.owed)), w.now.Unix()/int64(day/time.Second))
}

// change makes what is recorded what is wanted, and reports whether there was room. A class that the
// snapshot neither serves nor owes leaves after OwedFor, as one that nobody is owed.
func (w *wanted) change(recorded *content) (room bool) {
	if recorded.withdrawn == nil {
		recorded.withdrawn = withdrawals{}
	}
	for class := range recorded.names.byClass {
		of := recorded.withdrawn[class]
		switch {
		case w.served == nil:
		case has(w.served, class), has(w.owed, class):
			delete(recorded.withdrawn, class)
		case of.Since <= always:
			recorded.withdrawn[class] = withdrawal{Since: w.now.Unix()}
		case w.now.Unix()-of.Since >= int64(offer.OwedFor/time.Second):
			recorded.names.remove(class)
			delete(recorded.withdrawn, class)
		}
	}
	maps.DeleteFunc(recorded.withdrawn, func(class string, _ withdrawal) bool {
		_, named := recorded.names.byClass[class]
		return !named
	})
	maps.Copy(recorded.withdrawn, w.withdrawn)
	if recorded.asked = w.asked; w.served != nil {
		recorded.nodes = w.nodes
	}
	_, room = recorded.names.addAll(w.names)
	return room
}

// encode writes the content to the ConfigMap, and reports whether that changes it.
func (c *content) encode(object *corev1.ConfigMap) (changed bool) {
	before := object.Data
	object.Data = map[string]string{}
	maps.Copy(object.Data, before)
	for key, text := range map[string]string{
		dataKey: cmp.Or(encode(c.names.byClass), "{}"), withdrawnKey: c.withdrawn.encode(), askedKey: encode(c.asked),
		nodesKey: encode(c.nodes),
	} {
		if object.Data[key] = text; text == "" {
			delete(object.Data, key)
		}
	}
	return !maps.Equal(before, object.Data)
}

// encode returns a part of the record as JSON, empty for none. The values here cannot fail.
func encode[M ~map[string]V, V any](part M) string {
	if len(part) == 0 {
		return ""
	}
	text, _ := json.Marshal(part)
	return string(text)
}

// parse reads what encode returns. It reads nothing of a text that is corrupt.
func parse[M ~map[string]V, V any](text string) (part M, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &part); err != nil {
		return nil, err
	}
	return part, nil
}
