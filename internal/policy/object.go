package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// Filters adds filters to a policy that was parsed from the object.
type Filters interface {
	AddTo(object *v1alpha1.ResourcePolicy, parsed *offer.Policy)
}

// Of parses a policy and adds the filters, nil for none. It knows what the status says that the policy
// has offered.
func Of(object *v1alpha1.ResourcePolicy, filters Filters) table.Policy {
	parsed, misspelt, errs := Parse(object)
	deleting := object.DeletionTimestamp != nil
	if deleting {
		parsed, misspelt, errs = nil, nil, nil
	}
	if parsed != nil && filters != nil {
		filters.AddTo(object, parsed)
	}
	p := table.Policy{
		Name: object.Name, UID: string(object.UID), Generation: object.Generation, Deleting: deleting,
		Object: stripped(object), Source: string(sourceOf(object)),
		Parsed: parsed, Misspelt: texts(misspelt), Problems: texts(errs),
	}
	p.Offered, _ = table.AddNames(nil, OfferedNames(object), v1alpha1.MaxOfferedResources)
	return p
}

// stripped returns a policy with its spec, and of its metadata what Parse reads.
func stripped(object *v1alpha1.ResourcePolicy) *v1alpha1.ResourcePolicy {
	return &v1alpha1.ResourcePolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ResourcePolicy"},
		ObjectMeta: metav1.ObjectMeta{
			Name: object.Name, UID: object.UID, Generation: object.Generation, CreationTimestamp: object.CreationTimestamp,
			DeletionTimestamp: object.DeletionTimestamp,
		},
		Spec: object.Spec,
	}
}

func texts(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

func sourceOf(object *v1alpha1.ResourcePolicy) v1alpha1.Source {
	switch {
	case object.Spec.Offer.Nodes != nil:
		return v1alpha1.SourceNodes
	case object.Spec.Offer.External != nil:
		return v1alpha1.SourceExternal
	case object.Spec.Offer.Peers != nil:
		return v1alpha1.SourcePeers
	}
	return v1alpha1.SourceFixed
}

// OfferedNames returns the resources that the status says the policy has offered.
func OfferedNames(object *v1alpha1.ResourcePolicy) []string {
	names := make([]string, len(object.Status.OfferedResources))
	for i, name := range object.Status.OfferedResources {
		names[i] = string(name)
	}
	return names
}
