package policy

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// Filters adds filters to a policy that was parsed from the object.
type Filters interface {
	AddTo(object *v1alpha1.ResourcePolicy, parsed *offer.Policy)
}

// bugs bounds the log lines about panics.
var bugs = rate.Sometimes{First: 10, Interval: 10 * time.Second}

// Of parses a policy and adds the filters, nil for none. It knows what the status says that the policy
// has offered. A panic makes this policy Invalid, and harms no other one.
func Of(object *v1alpha1.ResourcePolicy, filters Filters) table.Policy {
	p := table.Policy{
		Name: object.Name, UID: string(object.UID), Generation: object.Generation,
		Deleting: object.DeletionTimestamp != nil, Object: stripped(object), Source: string(sourceOf(object)),
		Standing: StandingOf(object),
	}
	if !p.Deleting {
		readSpec(object, filters, &p)
	}
	p.Offered, _ = table.AddNames(nil, OfferedNames(object), v1alpha1.MaxOfferedResources)
	return p
}

// readSpec parses the spec into the policy. It turns a panic into a problem of the policy.
func readSpec(object *v1alpha1.ResourcePolicy, filters Filters, p *table.Policy) {
	defer func() {
		if v := recover(); v != nil {
			bug := kube.Shorten(fmt.Sprint(v), kube.MaxMessage/4)
			bugs.Do(func() {
				klog.Background().Error(nil, "Parsing a policy panicked, which is a bug; the policy is Invalid",
					"policy", object.Name, "panic", bug, "stack", kube.Stack())
			})
			p.Problems = []string{field.InternalError(field.NewPath("spec"), fmt.Errorf("this is a bug of Proffer, "+
				"which panics when it parses this policy: report it, with the stack in its log, and undo the edit: %s",
				bug)).Error()}
		}
	}()
	parsed, misspelt, errs := Parse(object)
	if parsed != nil && filters != nil {
		filters.AddTo(object, parsed)
	}
	p.Filters = FiltersOf(&object.Spec)
	p.Parsed, p.Misspelt, p.Problems = parsed, texts(misspelt), texts(errs)
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

// StandingOf returns the standing of a policy, as its status has it.
func StandingOf(object *v1alpha1.ResourcePolicy) table.Standing {
	ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case object.Spec.Mode == v1alpha1.ModeDryRun:
		return table.Rehearsed
	case ready == nil || ready.Reason == v1alpha1.ReasonInvalid:
		return table.Unsettled
	case ready.ObservedGeneration != object.Generation:
		return table.Edited
	}
	return table.Settled
}

// acceptedBefore reports whether an operator has already put the present spec in force. Such a spec
// stays valid when rules are added: otherwise an upgrade of the operator would exclude the policy,
// and its consumers would lose what they have.
func acceptedBefore(object *v1alpha1.ResourcePolicy) bool {
	ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.ObservedGeneration == object.Generation &&
		ready.Reason != v1alpha1.ReasonInvalid && ready.Reason != v1alpha1.ReasonDryRun
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
