package toggle

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
)

// Manager is the field manager of what callers have disabled.
const Manager = "proffer-toggle"

// managedEntry is an entry of spec.disabled, with who has written it.
type managedEntry struct {
	v1alpha1.DisabledProvider
	// ours is set if Manager has applied it.
	ours bool
	// others are the other field managers that own it, sorted. An entry may have no owner at all.
	others []string
}

// removable reports whether the entry is gone once Manager no longer applies it.
func (e *managedEntry) removable() bool { return e.ours && len(e.others) == 0 }

// fieldsV1 is the part of the fields of a manager that is about spec.disabled: "k:" and the JSON of the
// keys of each entry.
type fieldsV1 struct {
	Spec struct {
		Disabled map[string]json.RawMessage `json:"f:disabled"`
	} `json:"f:spec"`
}

// entriesOf returns the entries of spec.disabled, sorted by provider and consumer.
func entriesOf(o *v1alpha1.Orchestration) []managedEntry {
	ours, others := map[v1alpha1.DisabledProvider]bool{}, map[v1alpha1.DisabledProvider][]string{}
	for _, f := range o.ManagedFields {
		for _, key := range keysOf(f.FieldsV1) {
			if f.Manager == Manager && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" {
				ours[key] = true
			} else {
				others[key] = append(others[key], f.Manager)
			}
		}
	}
	all := make([]managedEntry, 0, len(o.Spec.Disabled))
	for _, key := range o.Spec.Disabled {
		slices.Sort(others[key])
		all = append(all, managedEntry{DisabledProvider: key, ours: ours[key], others: slices.Compact(others[key])})
	}
	slices.SortFunc(all, func(a, b managedEntry) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Consumer, b.Consumer))
	})
	return all
}

// keysOf returns the entries that a manager owns. What cannot be read is owned by nobody.
func keysOf(fields *metav1.FieldsV1) (keys []v1alpha1.DisabledProvider) {
	var owned fieldsV1
	if fields == nil || json.Unmarshal(fields.GetRawBytes(), &owned) != nil {
		return nil
	}
	for name := range owned.Spec.Disabled {
		var key v1alpha1.DisabledProvider
		if text, isKey := strings.CutPrefix(name, "k:"); isKey && json.Unmarshal([]byte(text), &key) == nil {
			keys = append(keys, key)
		}
	}
	return keys
}
