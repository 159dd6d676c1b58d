package slice

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/kube/jsonstream"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/offer"
)

// The bounds of the part of a ResourceSlice that is kept. A consumer may fill its slices up to the limit of
// the API server. A watch, a list and the response to a write all keep no more than this.
const (
	// maxConditions is the number of conditions that are kept besides the ones that decisions depend on.
	maxConditions = 8
	// maxCondition bounds the reason, the message and fields of a later Liqo of one condition, in
	// bytes, together.
	maxCondition = 4096
	// maxConditionFields is the number of fields of a condition that are kept.
	maxConditionFields = 16
	// maxAnswer bounds an answer: the sum of its keys and values in bytes, plus entryCost for each
	// entry of a map and classCost for each element of a list, which is about what these take in
	// memory. See answer.bounded.
	maxAnswer = 96 << 10
	entryCost = 64
	classCost = 256
	// maxClassFields is the number of fields of an entry of a list that are kept.
	maxClassFields = 4
	// maxName bounds a resource name. One that is cut stays too long.
	maxName = capacity.MaxName + 1
	// maxField bounds any other text of a slice.
	maxField = 256
	// maxKeptLabels is one label more than a filter admits.
	maxKeptLabels = offer.MaxRequestLabels + 1
)

// keptLabels are the labels of a slice that are kept however many there are.
var keptLabels = []string{liqo.ReplicatedLabel, liqo.OriginIDLabel, liqo.RemoteClusterIDLabel}

// keptKey is the field in which a decoded slice records what was left out. The API server has no
// such field.
const keptKey = "proffer.dev/kept"

// kept says what was left out of a slice when it was decoded.
type kept struct {
	// requested is the number of resources that the spec asks for.
	requested int64
	// answerCut and conditionsCut are set if only a part of the answer, or of the conditions, was
	// kept.
	answerCut, conditionsCut bool
}

// keptOf accepts any slice, also one that is whole.
func keptOf(u *unstructured.Unstructured) kept {
	var k kept
	k.requested, _, _ = unstructured.NestedInt64(u.Object, keptKey, "requested")
	k.answerCut, _, _ = unstructured.NestedBool(u.Object, keptKey, "answerCut")
	k.conditionsCut, _, _ = unstructured.NestedBool(u.Object, keptKey, "conditionsCut")
	return k
}

// sliceDecoder decodes a ResourceSlice while it arrives, and keeps what decisions depend on. The
// rest is never held in memory.
type sliceDecoder struct {
	*jsonstream.Reader
	kept
	// answerLeft is the size of the part of the answer that may still be kept.
	answerLeft int
}

// decodeSlice reads a slice. A value of another type than Liqo's definition has is kept if it is
// small, so that parseSlice finds it.
func decodeSlice(r *jsonstream.Reader) (*unstructured.Unstructured, error) {
	d := sliceDecoder{Reader: r, answerLeft: maxAnswer}
	object := map[string]any{}
	_, err := r.Members(func(key string) (err error) {
		switch key {
		case "apiVersion", "kind":
			object[key], _, err = d.small(maxField)
		case "metadata":
			object[key], err = d.fields(d.metadata)
		case "spec":
			object[key], err = d.fields(d.spec)
		case "status":
			object[key], err = d.fields(d.status)
		}
		return err
	})
	object[keptKey] = map[string]any{"requested": d.requested, "answerCut": d.answerCut, "conditionsCut": d.conditionsCut}
	return &unstructured.Unstructured{Object: object}, err
}

// fields reads an object by calling field for each of its fields. Any other value is kept if it is
// small.
func (d *sliceDecoder) fields(field func(into map[string]any, key string) error) (any, error) {
	if kind, err := d.Kind(); err != nil || kind != jsonstream.Object {
		value, _, err := d.small(maxField)
		return value, err
	}
	into := map[string]any{}
	_, err := d.Members(func(key string) error { return field(into, key) })
	return into, err
}

// list reads an array by calling element for each of its elements. Any other value is kept if it is small.
func (d *sliceDecoder) list(element func(into *[]any) error) (any, error) {
	if kind, err := d.Kind(); err != nil || kind != jsonstream.Array {
		value, _, err := d.small(maxField)
		return value, err
	}
	into := []any{}
	_, err := d.Elements(func() error { return element(&into) })
	return into, err
}

func (d *sliceDecoder) metadata(into map[string]any, key string) (err error) {
	switch key {
	case "name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp":
		into[key], _, err = d.small(maxField)
	case "annotations":
		into[key], err = d.fields(func(into map[string]any, key string) error {
			if key == nodeSelectorAnnotation {
				into[key], _, err = d.small(maxNodeSelector + 1)
			}
			return err
		})
	case "labels":
		into[key], err = d.fields(func(into map[string]any, key string) error {
			if slices.Contains(keptLabels, key) || len(into) < maxKeptLabels {
				into[cutText(key, maxName)], _, err = d.small(maxField)
			}
			return err
		})
	}
	return err
}

func (d *sliceDecoder) spec(into map[string]any, key string) (err error) {
	switch key {
	case "class", "consumerClusterID":
		into[key], _, err = d.small(maxField)
	case "resources":
		into[key], err = d.request()
	}
	return err
}

// request keeps one resource more than a request may name, the first by name, and counts all of
// them.
func (d *sliceDecoder) request() (any, error) {
	var names []string
	values := map[string]any{}
	value, err := d.fields(func(_ map[string]any, name string) (err error) {
		d.requested++
		name = cutText(name, maxName)
		i, found := slices.BinarySearch(names, name)
		if found || i > holding.MaxRequested {
			return nil
		}
		if len(names) > holding.MaxRequested {
			delete(values, names[holding.MaxRequested])
			names = names[:holding.MaxRequested]
		}
		names = slices.Insert(names, i, name)
		values[name], _, err = d.small(maxField)
		return err
	})
	if _, isObject := value.(map[string]any); isObject {
		return values, err
	}
	return value, err
}

func (d *sliceDecoder) status(into map[string]any, key string) (err error) {
	switch key {
	case "class":
		into[key], _, err = d.small(maxField)
	case "conditions":
		into[key], err = d.conditions()
	case "resources", "nodeLabels", "nodeSelector":
		into[key], err = d.texts()
	case "storageClasses", "ingressClasses", "loadBalancerClasses":
		into[key], err = d.classes()
	}
	return err
}

// conditions keeps the first few, and always those that decisions depend on: the first
// Authentication, which is the one that Liqo uses, and two of Resources, of which there must be
// only one.
func (d *sliceDecoder) conditions() (any, error) {
	wanted := map[string]int{authenticationCondition: 1, resourcesCondition: 2}
	others := 0
	return d.list(func(into *[]any) error {
		condition, err := d.condition()
		if err != nil {
			return err
		}
		fields, _ := condition.(map[string]any)
		kind, _ := fields["type"].(string)
		switch {
		case wanted[kind] > 0:
			wanted[kind]--
		case others < maxConditions:
			others++
		default:
			d.conditionsCut = true
			return nil
		}
		*into = append(*into, condition)
		return nil
	})
}

func (d *sliceDecoder) condition() (any, error) {
	left := maxCondition
	return d.fields(func(into map[string]any, key string) error {
		most := maxField
		switch key {
		case "type", "status", "lastTransitionTime":
		default:
			if left -= len(key); len(into) >= maxConditionFields || left < 0 {
				d.conditionsCut = true
				return nil
			}
			most = left
		}
		value, whole, err := d.small(most)
		into[key], d.conditionsCut = value, d.conditionsCut || !whole
		left -= textLength(value)
		return err
	})
}

// texts reads one of the maps of an answer.
func (d *sliceDecoder) texts() (any, error) {
	return d.fields(func(into map[string]any, key string) error {
		return d.answer(entryCost+len(key), func() error {
			value, whole, err := d.small(maxField)
			into[cutText(key, maxName)] = value
			d.answerCut = d.answerCut || !whole || len(key) > maxName
			d.answerLeft -= textLength(value)
			return err
		})
	})
}

// classes reads one of the lists of an answer.
func (d *sliceDecoder) classes() (any, error) {
	return d.list(func(into *[]any) error {
		return d.answer(classCost, func() error {
			class, err := d.fields(func(into map[string]any, key string) error {
				if len(into) == maxClassFields || len(key) > maxField {
					d.answerCut = true
					return nil
				}
				value, whole, err := d.small(maxField)
				into[key] = value
				d.answerCut = d.answerCut || !whole
				d.answerLeft -= textLength(value)
				return err
			})
			*into = append(*into, class)
			return err
		})
	})
}

// answer keeps an entry of the answer if there is room for it.
func (d *sliceDecoder) answer(cost int, keep func() error) error {
	if d.answerLeft < cost {
		d.answerCut, d.answerLeft = true, 0
		return nil
	}
	d.answerLeft -= cost
	return keep()
}

// small reads a value. It keeps at most this many bytes of a string, and reports whether that is
// the whole string. An empty list replaces any other value of more than maxField bytes.
func (d *sliceDecoder) small(most int) (value any, whole bool, err error) {
	kind, err := d.Kind()
	if err != nil {
		return nil, false, err
	}
	if kind == jsonstream.String {
		text, cut, err := d.String(most)
		return text, !cut, err
	}
	value, whole, err = d.Value(maxField)
	if err == nil && !whole {
		value = []any{}
	}
	return value, whole, err
}

// cutText returns a copy of the beginning of a text, so that the rest can be freed.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.Clone(text[:most])
}

func textLength(value any) int {
	text, _ := value.(string)
	return len(text)
}
