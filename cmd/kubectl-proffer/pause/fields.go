package pause

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/api/v1alpha1"
)

// fields are those of a policy's spec that the commands set.
type fields struct {
	Mode            v1alpha1.Mode             `json:"mode,omitempty"`
	PausedUntil     *metav1.Time              `json:"pausedUntil,omitempty"`
	PausedConsumers []v1alpha1.PausedConsumer `json:"pausedConsumers,omitempty"`
}

// without removes the pause for a consumer, and reports whether there was one.
func (f *fields) without(consumer string) bool {
	n := len(f.PausedConsumers)
	f.PausedConsumers = slices.DeleteFunc(f.PausedConsumers, func(c v1alpha1.PausedConsumer) bool {
		return string(c.ClusterID) == consumer
	})
	return len(f.PausedConsumers) < n
}

// dropEnded removes the pauses of consumers that are over.
func (f *fields) dropEnded(now time.Time) {
	f.PausedConsumers = slices.DeleteFunc(f.PausedConsumers, func(c v1alpha1.PausedConsumer) bool {
		return c.Until != nil && !now.Before(c.Until.Time)
	})
}

// ownedBy returns the fields of a policy that FieldManager owns. apply keeps only those that are given to it again.
func ownedBy(p *unstructured.Unstructured) fields {
	all := fieldsOf(p)
	owns := func(path ...string) bool { return slices.Contains(owners(p, path...), FieldManager) }
	if !owns("f:mode") {
		all.Mode = ""
	}
	if !owns("f:pausedUntil") {
		all.PausedUntil = nil
	}
	all.PausedConsumers = slices.DeleteFunc(all.PausedConsumers, func(c v1alpha1.PausedConsumer) bool {
		return !owns("f:pausedConsumers", keyOf(string(c.ClusterID)))
	})
	for i := range all.PausedConsumers {
		if c := &all.PausedConsumers[i]; !owns("f:pausedConsumers", keyOf(string(c.ClusterID)), "f:until") {
			c.Until = nil
		}
	}
	return all
}

// fieldsOf returns the fields of a policy, whoever owns them.
func fieldsOf(p *unstructured.Unstructured) (all fields) {
	spec, _, _ := unstructured.NestedMap(p.Object, "spec")
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &all) // The CRD has checked it.
	return all
}

// keyOf returns the key of an element of pausedConsumers in managed fields.
func keyOf(consumer string) string {
	text, _ := json.Marshal(map[string]string{"clusterID": consumer}) // A map of texts always has one.
	return "k:" + string(text)
}

// others names the field managers of a field of spec other than FieldManager, empty for none.
func others(p *unstructured.Unstructured, path ...string) string {
	all := slices.DeleteFunc(owners(p, path...), func(manager string) bool { return manager == FieldManager })
	return strings.Join(all, " and ")
}

// owners returns the field managers of a field of spec.
func owners(p *unstructured.Unstructured, path ...string) (managers []string) {
	for _, entry := range p.GetManagedFields() {
		var of map[string]any
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &of) != nil {
			continue
		}
		_, owns, err := unstructured.NestedFieldNoCopy(of, append([]string{"f:spec"}, path...)...)
		if owns && err == nil && !slices.Contains(managers, entry.Manager) {
			managers = append(managers, entry.Manager)
		}
	}
	return managers
}

// apply makes these fields, and no others, the ones that FieldManager owns of a policy. It fails with a conflict if
// the policy has changed since it was read: the fields would be those of then. With dryRun, the API server only
// returns what would be stored, whatever has changed.
func apply(
	ctx context.Context, in dynamic.ResourceInterface, p *unstructured.Unstructured, own fields, dryRun ...string,
) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&own)
	if err != nil {
		return nil, err
	}
	if len(spec) > 0 {
		u.Object["spec"] = spec
	}
	u.SetGroupVersionKind(p.GroupVersionKind())
	u.SetName(p.GetName())
	if len(dryRun) == 0 {
		u.SetResourceVersion(p.GetResourceVersion())
	}
	u.SetUID(p.GetUID()) // Of a policy that was deleted meanwhile, none is created.
	return in.Apply(ctx, p.GetName(), u, metav1.ApplyOptions{FieldManager: FieldManager, Force: true, DryRun: dryRun})
}
