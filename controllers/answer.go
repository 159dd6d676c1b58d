package controllers

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/internal/capacity"
)

// verdict is the status of the condition Resources.
type verdict string

const (
	unanswered verdict = ""
	accepted   verdict = "Accepted"
	denied     verdict = "Denied"
)

// resourcesCondition is the type of the condition that is the answer's; all others are Liqo's.
const resourcesCondition = "Resources"

// answer is the part of a ResourceSlice's status that whoever answers its class writes. What is empty in it does not stand there.
type answer struct {
	verdict         verdict
	reason, message string
	resources       capacity.Amounts
	storageClasses, ingressClasses,
	loadBalancerClasses []namedClass
	nodeLabels, nodeSelector map[string]string
	// inexact is for an answer that was read and holds something that this type cannot say, such as a fraction of a byte: it differs from
	// every answer that is to be written. An amount is the next larger one then.
	inexact bool
}

// namedClass is a StorageClass, an IngressClass or a load balancer class.
type namedClass struct {
	name      string
	isDefault bool
}

// equal compares by meaning: an empty list is an absent one, and 1 cpu is 1000m.
func equal(a, b answer) bool {
	return a.verdict == b.verdict && a.reason == b.reason && a.message == b.message && a.inexact == b.inexact &&
		maps.Equal(a.resources, b.resources) &&
		slices.Equal(a.storageClasses, b.storageClasses) &&
		slices.Equal(a.ingressClasses, b.ingressClasses) &&
		slices.Equal(a.loadBalancerClasses, b.loadBalancerClasses) &&
		maps.Equal(a.nodeLabels, b.nodeLabels) && maps.Equal(a.nodeSelector, b.nodeSelector)
}

// readAnswer reads the answer that stands in a ResourceSlice, whoever wrote it.
func readAnswer(u *unstructured.Unstructured) answer {
	var a answer
	condition, count := findCondition(u, resourcesCondition)
	if count > 0 {
		a.inexact = count > 1
		a.verdict = verdict(a.text(condition["status"]))
		if a.verdict != accepted && a.verdict != denied {
			a.verdict, a.inexact = unanswered, true
		}
		a.reason, a.message = a.text(condition["reason"]), a.text(condition["message"])
	}
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status")
	status, ok := value.(map[string]any)
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

// text takes an absent value for an empty one, and notes one that is no text.
func (a *answer) text(value any) string {
	text, ok := value.(string)
	if !ok && value != nil {
		a.inexact = true
	}
	return text
}

// readResources leaves out what is not the name of a resource or no quantity.
func (a *answer) readResources(value any) capacity.Amounts {
	list, ok := value.(map[string]any)
	if !ok {
		a.inexact = a.inexact || value != nil
		return nil
	}
	out := make(capacity.Amounts, len(list))
	for name, value := range list {
		q, _, ok := parseQuantity(value)
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

// exactAmount is the amount of a quantity; exact is false where another quantity has the same amount.
func exactAmount(name string, q resource.Quantity) (v int64, exact bool) {
	v = q.Value()
	if name == capacity.CPU {
		v = q.MilliValue()
	}
	if back := capacity.Quantity(name, v); v >= 0 && back.Cmp(q) == 0 {
		return v, true
	}
	return capacity.AmountOf(name, q, capacity.Up), false
}

func (a *answer) readClasses(value any, key string) []namedClass {
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

func (a *answer) readTexts(value any) map[string]string {
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

// writeTo returns a copy of a ResourceSlice that holds the answer. All that is not the answer's stays as it is. The object is one whose
// status is whole.
func (a answer) writeTo(u *unstructured.Unstructured, now time.Time) *unstructured.Unstructured {
	out := u.DeepCopy()
	if out.Object == nil {
		out.Object = map[string]any{}
	}
	status, ok := out.Object["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		out.Object["status"] = status
	}
	put(status, "conditions", a.conditions(conditionsOf(out), now))
	put(status, "storageClasses", classesAs(a.storageClasses, "storageClassName"))
	put(status, "ingressClasses", classesAs(a.ingressClasses, "ingressClassName"))
	put(status, "loadBalancerClasses", classesAs(a.loadBalancerClasses, "loadBalancerClassName"))
	for field, texts := range map[string]map[string]string{
		"resources": quantityTexts(a.resources), "nodeLabels": a.nodeLabels, "nodeSelector": a.nodeSelector,
	} {
		delete(status, field)
		if len(texts) > 0 {
			values := make(map[string]any, len(texts))
			for key, text := range texts {
				values[key] = text
			}
			status[field] = values
		}
	}
	return out
}

func put(status map[string]any, field string, list []any) {
	delete(status, field)
	if len(list) > 0 {
		status[field] = list
	}
}

// conditions puts the answer's condition where the first of its type was.
func (a answer) conditions(before []any, now time.Time) []any {
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
	condition := map[string]any{"type": resourcesCondition, "status": string(a.verdict), "lastTransitionTime": now.UTC().Format(time.RFC3339)}
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
		q := capacity.Quantity(name, v)
		out[name] = q.String()
	}
	return out
}

// conditionsOf are the conditions in the status, of whatever form.
func conditionsOf(u *unstructured.Unstructured) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	list, _ := value.([]any)
	return list
}

func isOfType(value any, conditionType string) bool {
	condition, _ := value.(map[string]any)
	return condition["type"] == conditionType
}

// findCondition returns the first condition of the type, which is the one that Liqo takes, and how many there are.
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
