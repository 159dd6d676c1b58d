package toggle

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
)

// Manager is the field manager of what callers have disabled and enabled.
const Manager = "proffer-toggle"

// entry is an entry of spec.disabled or spec.enabled: both name a provider, and a consumer or none.
type entry = v1alpha1.DisabledProvider

// managedEntry is an entry with who has written it.
type managedEntry struct {
	entry
	// ours is set if Manager has applied it.
	ours bool
	// others are the other field managers that own it, sorted. An entry may have no owner at all.
	others []string
}

// removable reports whether the entry is gone once Manager no longer applies it.
func (e *managedEntry) removable() bool { return e.ours && len(e.others) == 0 }

// fieldsV1 is the part of the fields of a manager that is about both lists: "k:" and the JSON of the keys
// of each entry.
type fieldsV1 struct {
	Spec struct {
		Disabled map[string]json.RawMessage `json:"f:disabled"`
		Enabled  map[string]json.RawMessage `json:"f:enabled"`
	} `json:"f:spec"`
}

// disabledIn returns the entries of spec.disabled, sorted by provider and consumer.
func disabledIn(o *v1alpha1.Orchestration) []managedEntry {
	return managed(o, o.Spec.Disabled, func(f *fieldsV1) map[string]json.RawMessage { return f.Spec.Disabled })
}

// enabledIn returns the entries of spec.enabled, sorted by provider and consumer.
func enabledIn(o *v1alpha1.Orchestration) []managedEntry {
	entries := make([]entry, 0, len(o.Spec.Enabled))
	for _, e := range o.Spec.Enabled {
		entries = append(entries, entry(e))
	}
	return managed(o, entries, func(f *fieldsV1) map[string]json.RawMessage { return f.Spec.Enabled })
}

// managed returns the entries of a list with who has written them.
func managed(
	o *v1alpha1.Orchestration, entries []entry, list func(*fieldsV1) map[string]json.RawMessage,
) []managedEntry {
	ours, others := map[entry]bool{}, map[entry][]string{}
	for _, f := range o.ManagedFields {
		for _, key := range keysOf(f.FieldsV1, list) {
			if f.Manager == Manager && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" {
				ours[key] = true
			} else {
				others[key] = append(others[key], f.Manager)
			}
		}
	}
	all := make([]managedEntry, 0, len(entries))
	for _, key := range entries {
		slices.Sort(others[key])
		all = append(all, managedEntry{entry: key, ours: ours[key], others: slices.Compact(others[key])})
	}
	slices.SortFunc(all, func(a, b managedEntry) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Consumer, b.Consumer))
	})
	return all
}

// keysOf returns the entries of a list that a manager owns. What cannot be read is owned by nobody.
func keysOf(fields *metav1.FieldsV1, list func(*fieldsV1) map[string]json.RawMessage) (keys []entry) {
	var owned fieldsV1
	if fields == nil || json.Unmarshal(fields.GetRawBytes(), &owned) != nil {
		return nil
	}
	for name := range list(&owned) {
		var key entry
		if text, isKey := strings.CutPrefix(name, "k:"); isKey && json.Unmarshal([]byte(text), &key) == nil {
			keys = append(keys, key)
		}
	}
	return keys
}
