package slice

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/quantity"
)

const (
	// maxClusterID bounds the cluster IDs read from objects, in bytes.
	maxClusterID = 253
	// nodeSelectorAnnotation narrows the nodes among which the seat of a slice is chosen: labels with their values, such
	// as zone=a,disk=ssd. Liqo copies it when it creates the slice, and no later change of it. maxNodeSelector bounds
	// it in bytes, maxNodeLabels bounds its labels.
	nodeSelectorAnnotation = "proffer.dev/node-selector"
	maxNodeSelector        = 1024
	maxNodeLabels          = 8
	// maxProblems is the number of problems of a request that a message lists.
	maxProblems = 3
)

var (
	// plainAmount matches what a message shows without quotes.
	plainAmount = regexp.MustCompile(`^[-+.0-9A-Za-z]{1,32}$`)
	// smallestBytes is the smallest amount of bytes that a request may have.
	smallestBytes = resource.MustParse("1Mi")
)

// slice holds the fields of a ResourceSlice of a consumer. Trust only what the API server itself sets: the
// spec is the consumer's own, and up to Liqo v1.2.0 the consumer can write the status too.
type slice struct {
	key             string // namespace/name
	namespace, name string
	uid             types.UID
	// created is in seconds of Unix time.
	created int64
	// consumer is empty until Liqo has filled it in.
	consumer string
	class    string
	// labels are the labels of the object. Only filters of policies read them.
	labels map[string]string
	// nodes are the labels by which the request narrows the nodes of its seat.
	nodes map[string]string
	// request is in the units of the ledger, rounded up. What has a problem is left out.
	request capacity.Amounts
	// problems say what is wrong with the request and what to write instead.
	problems []string
	// originOK is set for the copy of an object of another cluster.
	originOK bool
	// authenticated is set once Liqo has accepted the consumer's identity.
	authenticated bool
	answer        sliceAnswer
	deleting      bool
	// object holds the fields that a write of its status needs. It must not be changed.
	object *unstructured.Unstructured
}

// version is the resourceVersion.
func (s *slice) version() string { return s.object.GetResourceVersion() }

// same reports whether two versions of a slice agree in everything that decisions depend on.
func same(a, b *slice) bool {
	return a.key == b.key && a.uid == b.uid && a.created == b.created && a.consumer == b.consumer && a.class == b.class &&
		a.originOK == b.originOK && a.authenticated == b.authenticated && a.deleting == b.deleting &&
		maps.Equal(a.request, b.request) && maps.Equal(a.labels, b.labels) && maps.Equal(a.nodes, b.nodes) &&
		slices.Equal(a.problems, b.problems) && equal(a.answer, b.answer) &&
		reflect.DeepEqual(requested(a.object), requested(b.object))
}

// requested returns spec.resources as it was decoded, nil if it is missing or not a map. The caller must not
// change it.
func requested(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "resources")
	asked, _ := value.(map[string]any)
	return asked
}

// written returns the request as text: at most holding.MaxRequested amounts, the first by name, each of at most
// kube.MaxShown bytes.
func (s *slice) written() map[string]string {
	asked := requested(s.object)
	names := slices.Sorted(maps.Keys(asked))
	out := make(map[string]string, len(names))
	for _, name := range names[:min(len(names), holding.MaxRequested)] {
		out[name] = kube.Shorten(textOf(asked[name]), kube.MaxShown)
	}
	return out
}

// parseSlice reads a ResourceSlice of Liqo v1. It accepts any object: what makes no sense is a
// problem of the request, or counts as absent. The slice keeps the object.
func parseSlice(u *unstructured.Unstructured) slice {
	labels := u.GetLabels()
	authentication, _ := findCondition(u, authenticationCondition)
	s := slice{
		key: kube.Key(u), namespace: u.GetNamespace(), name: u.GetName(), uid: u.GetUID(),
		labels:        labels,
		class:         kube.Text(u, "status", "class"), // Not in Liqo v1.2.0, where it is pruned.
		originOK:      labels[liqo.ReplicatedLabel] == "true" && labels[liqo.OriginIDLabel] != "",
		authenticated: authentication["status"] == string(accepted),
		answer:        readAnswer(u),
		deleting:      u.GetDeletionTimestamp() != nil,
		object:        u,
	}
	if created := u.GetCreationTimestamp(); !created.IsZero() {
		s.created = created.Unix()
	}
	if s.class == "" {
		s.class = kube.Text(u, "spec", "class")
	}
	if id := kube.Text(u, "spec", "consumerClusterID"); len(id) <= maxClusterID {
		s.consumer = id
	}
	s.request, s.problems = parseRequest(u)
	var ok bool
	if s.nodes, ok = parseNodeSelector(kube.Text(u, "metadata", "annotations", nodeSelectorAnnotation)); !ok {
		s.problems = append(s.problems, fmt.Sprintf(
			"the annotation %s is not a list of labels: write at most %d, such as zone=a,disk=ssd",
			nodeSelectorAnnotation, maxNodeLabels))
	}
	return s
}

// parseNodeSelector reads labels with their values, each key once. An empty text has none.
func parseNodeSelector(text string) (nodes map[string]string, ok bool) {
	pairs := strings.Count(text, ",") + 1
	switch {
	case text == "":
		return nil, true
	case len(text) > maxNodeSelector, pairs > maxNodeLabels:
		return nil, false
	}
	nodes, err := labels.ConvertSelectorToLabelsMap(text)
	if err != nil || len(nodes) != pairs {
		return nil, false
	}
	return nodes, true
}

// parseRequest reads spec.resources.
func parseRequest(u *unstructured.Unstructured) (capacity.Amounts, []string) {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "resources")
	if value == nil {
		return nil, nil
	}
	asked, ok := value.(map[string]any)
	if !ok {
		return nil, []string{"spec.resources is not a map: write quantities by resource, such as cpu: 2"}
	}
	var problems []string
	more := 0 // A consumer chooses how many there are.
	add := func(format string, args ...any) {
		if len(problems) == maxProblems {
			more++
			return
		}
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	names := slices.Sorted(maps.Keys(asked))
	if len(names) > holding.MaxRequested {
		add("asks for %d resources: write at most %d", max(keptOf(u).requested, int64(len(names))), holding.MaxRequested)
		names = names[:holding.MaxRequested]
	}
	out := make(capacity.Amounts, len(names))
	for _, name := range names {
		text := textOf(asked[name])
		amount := v1alpha1.ParseQuantity(text)
		if problem := nameProblem(name); problem != "" {
			add("asks for the resource %+q: %s", kube.Shorten(name, kube.MaxShown), problem)
		} else if problem := amountProblem(name, text, &amount); problem != "" {
			add("asks for %s %s: %s", shown(text), kube.Shorten(name, kube.MaxShown), problem)
		} else {
			out[name] = quantity.AmountOf(name, amount.Quantity, quantity.Up)
		}
	}
	if more > 0 {
		problems = append(problems, fmt.Sprintf("and %d more", more))
	}
	return out, problems
}

// nameProblem applies to the name of a resource the rules of a policy, and says what to write.
func nameProblem(name string) string {
	if len(validation.IsQualifiedName(name)) > 0 {
		return "write a name such as cpu, memory or nvidia.com/gpu"
	}
	return v1alpha1.NameProblem(corev1.ResourceName(name))
}

// amountProblem applies to an amount the rules of a policy, and says what to write. One more rule is
// for a mistake that would be granted in full, and of no use: an amount of bytes without its unit is small. A
// part of a byte in a larger amount is no mistake: a typed client, such as liqoctl, writes 1.1Gi as
// 1181116006400m. Nor is 0, with which a consumer gives back what it has.
func amountProblem(name, text string, q *v1alpha1.Quantity) string {
	problem := q.Problem(corev1.ResourceName(name))
	bytes := capacity.InBytes(name)
	switch {
	case text == "":
		return v1alpha1.AmountNotAQuantity
	case problem != "" && (problem != v1alpha1.AmountNotWhole || !bytes):
		return problem
	case bytes && q.Sign() > 0 && q.Cmp(smallestBytes) < 0:
		return "less than 1Mi: write an amount with its unit, such as 4Gi"
	}
	return ""
}

// shown returns the text of an amount for a message, quoted unless it is plain.
func shown(text string) string {
	if plainAmount.MatchString(text) {
		return text
	}
	return strconv.QuoteToASCII(kube.Shorten(text, kube.MaxShown))
}

// parseQuantity reads a quantity from an object.
func parseQuantity(value any) (resource.Quantity, bool) {
	return quantity.Parse(textOf(value))
}

// textOf returns the text of a quantity in an object, which may be a number.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}
