package slice

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/quantity"
)

// verdict is the status of the condition Resources.
type verdict string

const (
	unanswered verdict = ""
	accepted   verdict = "Accepted"
	denied     verdict = "Denied"
)

// Types of conditions. The answer is the one of resourcesCondition; all others are Liqo's.
const (
	authenticationCondition = "Authentication"
	resourcesCondition      = "Resources"
)

// sliceAnswer is the part of a ResourceSlice's status that the controller of its class writes. An empty
// field is absent in the status.
type sliceAnswer struct {
	verdict         verdict
	reason, message string
	resources       capacity.Amounts
	storageClasses, ingressClasses,
	loadBalancerClasses []namedClass
	nodeLabels, nodeSelector map[string]string
	// inexact is set for an answer that was read and holds something that this type cannot express,
	// such as a fraction of a byte, or more than was kept. It differs from every answer to be
	// written. Such an amount is rounded up.
	inexact bool

	// class is the class in which this operator decided on the answer, at is the time of the decision, and
	// short is set if the whole answer did not fit into the slice. Only an answer to be written has them.
	class string
	at    time.Time
	short bool
}

// namedClass is a StorageClass, an IngressClass or a load balancer class.
type namedClass struct {
	name      string
	isDefault bool
}

// outline returns the part of the answer that decisions read.
func (a *sliceAnswer) outline() holding.Answer {
	return holding.Answer{
		Class: a.class,
		Given: a.verdict != unanswered, Accepted: a.verdict == accepted, Own: a.ours(), Amounts: a.resources,
	}
}

// equal compares what is in the status, by meaning: an empty list is an absent one, and 1 cpu is 1000m.
func equal(a, b sliceAnswer) bool {
	return a.verdict == b.verdict && a.reason == b.reason && a.message == b.message && a.inexact == b.inexact &&
		maps.Equal(a.resources, b.resources) &&
		slices.Equal(a.storageClasses, b.storageClasses) &&
		slices.Equal(a.ingressClasses, b.ingressClasses) &&
		slices.Equal(a.loadBalancerClasses, b.loadBalancerClasses) &&
		maps.Equal(a.nodeLabels, b.nodeLabels) && maps.Equal(a.nodeSelector, b.nodeSelector)
}

// onlyMessage reports whether two answers differ in their message alone.
func onlyMessage(a, b sliceAnswer) bool {
	b.message = a.message
	return equal(a, b)
}

// readAnswer reads the answer that stands in a ResourceSlice, also one that others wrote.
func readAnswer(u *unstructured.Unstructured) sliceAnswer {
	a := sliceAnswer{inexact: keptOf(u).answerCut}
	condition, count := findCondition(u, resourcesCondition)
	if count > 0 {
		a.inexact = a.inexact || count > 1
		a.verdict = verdict(a.text(condition["status"]))
		if a.verdict != accepted && a.verdict != denied {
			a.verdict, a.inexact = unanswered, true
		}
		a.reason, a.message = a.text(condition["reason"]), a.text(condition["message"])
	}
	status, ok := u.Object["status"].(map[string]any)
	if !ok {
		return a
	}
	a.resources = a.readResources(status["resources"])
	a.storageClasses = a.readClasses(status["storageClasses"], "storageClassName")
	a.ingressClasses = a.readClasses(status["ingressClasses"], "ingressClassName")
	a.loadBalancerClasses = a.readClasses(status["loadBalancerClasses"], "loadBalancerClassName")
	a.nodeLabels = a.readTexts(status["nodeLabels"])
	a.nodeSelector = a.readTexts(status["nodeSelector"])
	return a
}

// stands returns whether the answer that stands in a slice accepts it, and since when.
func (s *slice) stands() (accepting bool, since time.Time) {
	condition, _ := findCondition(s.object, resourcesCondition)
	text, _ := condition["lastTransitionTime"].(string)
	since, _ = time.Parse(time.RFC3339, text)
	return s.answer.verdict == accepted, since.UTC()
}

// text reads an absent value as empty, and marks the answer if the value is not a string.
func (a *sliceAnswer) text(value any) string {
	text, ok := value.(string)
	if !ok && value != nil {
		a.inexact = true
	}
	return text
}

// readResources leaves out what is not the name of a resource or not a quantity.
func (a *sliceAnswer) readResources(value any) capacity.Amounts {
	list, ok := value.(map[string]any)
	if !ok {
		a.inexact = a.inexact || value != nil
		return nil
	}
	out := make(capacity.Amounts, len(list))
	for name, value := range list {
		q, ok := parseQuantity(value)
		if !ok || len(validation.IsQualifiedName(name)) > 0 {
			a.inexact = true
			continue
		}
		v, exact := exactAmount(name, q)
		out[name] = v
		a.inexact = a.inexact || !exact
	}
	return out
}

// exactAmount returns the amount of a quantity. It is not exact if another quantity has the same
// amount.
func exactAmount(name string, q resource.Quantity) (v int64, exact bool) {
	v = q.Value()
	if name == capacity.CPU {
		v = q.MilliValue()
	}
	if back := quantity.Of(name, v); v >= 0 && back.Cmp(q) == 0 {
		return v, true
	}
	return quantity.AmountOf(name, q, quantity.Up), false
}

func (a *sliceAnswer) readClasses(value any, key string) []namedClass {
	list, ok := value.([]any)
	if !ok {
		a.inexact = a.inexact || value != nil
		return nil
	}
	var out []namedClass
	for _, value := range list {
		fields, ok := value.(map[string]any)
		name, named := fields[key].(string)
		isDefault, isBool := fields["default"].(bool)
		if !ok || !named || !isBool && fields["default"] != nil {
			a.inexact = true
			continue
		}
		out = append(out, namedClass{name, isDefault})
	}
	return out
}

func (a *sliceAnswer) readTexts(value any) map[string]string {
	list, ok := value.(map[string]any)
	if !ok {
		a.inexact = a.inexact || value != nil
		return nil
	}
	out := make(map[string]string, len(list))
	for key, value := range list {
		out[key] = a.text(value)
	}
	return out
}

// patchOp is an operation of a JSON patch (RFC 6902).
type patchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitzero"`
}

// patch returns the JSON patch of the status subresource that writes the answer. The rest of the
// status stays as it is, also what was not kept of it. The API server refuses the patch with a
// conflict unless the slice still has the version that was read.
//
// If only a part of the conditions was kept, just Authentication stays: another client has stuffed
// them.
func (a sliceAnswer) patch(u *unstructured.Unstructured, now time.Time) ([]byte, error) {
	return a.patchOf(u, keptOf(u).conditionsCut, now)
}

// patchAlone is patch, but of the other conditions only Authentication stays: the resulting status
// is as small as possible.
func (a sliceAnswer) patchAlone(u *unstructured.Unstructured, now time.Time) ([]byte, error) {
	return a.patchOf(u, true, now)
}

func (a sliceAnswer) patchOf(u *unstructured.Unstructured, alone bool, now time.Time) ([]byte, error) {
	version := u.GetResourceVersion()
	if version == "" {
		return nil, errors.New("writing an answer: the slice has no version")
	}
	ops := []patchOp{{"add", "/metadata/resourceVersion", version}}
	status, ok := u.Object["status"].(map[string]any)
	if !ok {
		ops = append(ops, patchOp{"add", "/status", map[string]any{}})
	}
	conditions := conditionsOf(u)
	if alone {
		conditions = slices.DeleteFunc(slices.Clone(conditions), func(c any) bool {
			return !isOfType(c, authenticationCondition) && !isOfType(c, resourcesCondition)
		})
	}
	set := func(field string, value any, length int) {
		_, there := status[field]
		if length == 0 && !there {
			return
		}
		ops = append(ops, patchOp{"add", "/status/" + field, value})
		if length == 0 { // Removing an absent field would be an error, not a conflict.
			ops = append(ops, patchOp{Op: "remove", Path: "/status/" + field})
		}
	}
	after := a.conditions(conditions, now)
	set("conditions", after, len(after))
	set("resources", quantityTexts(a.resources), len(a.resources))
	set("storageClasses", classesAs(a.storageClasses, "storageClassName"), len(a.storageClasses))
	set("ingressClasses", classesAs(a.ingressClasses, "ingressClassName"), len(a.ingressClasses))
	set("loadBalancerClasses", classesAs(a.loadBalancerClasses, "loadBalancerClassName"), len(a.loadBalancerClasses))
	set("nodeLabels", a.nodeLabels, len(a.nodeLabels))
	set("nodeSelector", a.nodeSelector, len(a.nodeSelector))
	return json.Marshal(ops)
}

// minimal returns the answer without everything that a slice can do without, for a slice that the
// whole answer does not fit into: see kube.TooLarge.
func (a sliceAnswer) minimal() sliceAnswer {
	return sliceAnswer{verdict: a.verdict, reason: a.reason, resources: a.resources, class: a.class, at: a.at, short: true}
}

// bounded leaves out what exceeds maxAnswer, so that an answer reads back as it was written: the
// last names of a map, the last elements of a list. Amounts come first, then the labels that pods
// are placed by, then classes. Only an extreme policy exceeds the bound.
func (a sliceAnswer) bounded() sliceAnswer {
	left := maxAnswer
	a.resources = firstOf(a.resources, func(name string, v int64) bool {
		q := quantity.Of(name, v)
		left -= entryCost + len(name) + len(q.String())
		return left >= 0
	})
	for _, texts := range []*map[string]string{&a.nodeSelector, &a.nodeLabels} {
		*texts = firstOf(*texts, func(key, text string) bool {
			left -= entryCost + len(key) + len(text)
			return left >= 0
		})
	}
	for _, classes := range []*[]namedClass{&a.storageClasses, &a.ingressClasses, &a.loadBalancerClasses} {
		for i, c := range *classes {
			if left -= classCost + len(c.name); left < 0 {
				*classes = (*classes)[:i:i]
				break
			}
		}
	}
	return a
}

// firstOf returns the map if every entry fits, otherwise a copy of the entries before the first, by
// name, that does not.
func firstOf[V any](all map[string]V, fits func(string, V) bool) map[string]V {
	names := slices.Sorted(maps.Keys(all))
	end := slices.IndexFunc(names, func(name string) bool { return !fits(name, all[name]) })
	if end < 0 {
		return all
	}
	first := make(map[string]V, end)
	for _, name := range names[:end] {
		first[name] = all[name]
	}
	return first
}

// conditions returns the conditions with the answer's in the place of the first one of its type.
func (a sliceAnswer) conditions(before []any, now time.Time) []any {
	at := slices.IndexFunc(before, ofResources)
	was := map[string]any{}
	after := slices.DeleteFunc(slices.Clone(before), ofResources)
	if at >= 0 {
		was, _ = before[at].(map[string]any)
	} else {
		at = len(after)
	}
	if a.verdict == unanswered {
		return after
	}
	condition := map[string]any{
		"type": resourcesCondition, "status": string(a.verdict), "lastTransitionTime": timeText(now),
	}
	if since, ok := was["lastTransitionTime"].(string); ok && was["status"] == string(a.verdict) {
		if _, err := time.Parse(time.RFC3339, since); err == nil {
			condition["lastTransitionTime"] = since
		}
	}
	for field, text := range map[string]string{"reason": a.reason, "message": a.message} {
		if text != "" {
			condition[field] = text
		}
	}
	return slices.Insert(after, at, any(condition))
}

// timeText formats a time as the API server keeps it, to the second.
func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func ofResources(value any) bool { return isOfType(value, resourcesCondition) }

func classesAs(classes []namedClass, key string) []any {
	out := make([]any, 0, len(classes))
	for _, c := range classes {
		fields := map[string]any{key: c.name}
		if c.isDefault {
			fields["default"] = true
		}
		out = append(out, fields)
	}
	return out
}

func quantityTexts(a capacity.Amounts) map[string]string {
	out := make(map[string]string, len(a))
	for name, v := range a {
		q := quantity.Of(name, v)
		out[name] = q.String()
	}
	return out
}

// conditionsOf returns the conditions in the status, unchecked.
func conditionsOf(u *unstructured.Unstructured) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	list, _ := value.([]any)
	return list
}

func isOfType(value any, conditionType string) bool {
	condition, _ := value.(map[string]any)
	return condition["type"] == conditionType
}

// findCondition returns the first condition of the type, which is the one that Liqo uses, and how
// many there are.
func findCondition(u *unstructured.Unstructured, conditionType string) (first map[string]any, count int) {
	for _, value := range conditionsOf(u) {
		if !isOfType(value, conditionType) {
			continue
		}
		if count == 0 {
			first, _ = value.(map[string]any)
		}
		count++
	}
	return first, count
}
