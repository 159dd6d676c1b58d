package slice

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/quantity"
)

const (
	// liqoClass is answered by Liqo itself.
	liqoClass = "default"
	// maxClusterID bounds the cluster IDs read from objects, in bytes.
	maxClusterID = 253
	// maxRequested is how many resources a request may name, as many as a policy may.
	maxRequested = 64
	// maxProblems is how many problems of a request a message lists.
	maxProblems = 3
)

// slice is what a ResourceSlice of a consumer says. Trust only what the API server itself sets: the
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
	// request is in the units of the ledger, rounded up. A quantity that is too large counts as the
	// largest amount; one in problems is left out.
	request capacity.Amounts
	// problems say what is wrong with the request and what to write instead.
	problems []string
	// originOK is set for the copy of an object of another cluster.
	originOK bool
	// authenticated is set once Liqo has accepted the consumer's identity.
	authenticated bool
	answer        answer
	deleting      bool
	// object is what was read, as far as a write of its status needs it. It must not be changed.
	object *unstructured.Unstructured
}

// version is the resourceVersion.
func (s *slice) version() string { return s.object.GetResourceVersion() }

// same reports whether two versions of a slice agree in everything that decisions depend on.
func same(a, b *slice) bool {
	return a.key == b.key && a.uid == b.uid && a.created == b.created && a.consumer == b.consumer && a.class == b.class &&
		a.originOK == b.originOK && a.authenticated == b.authenticated && a.deleting == b.deleting &&
		maps.Equal(a.request, b.request) && slices.Equal(a.problems, b.problems) && equal(a.answer, b.answer)
}

// parseSlice reads a ResourceSlice of Liqo v1. It accepts any object: what makes no sense is a
// problem of the request, or counts as absent. The slice keeps the object.
func parseSlice(u *unstructured.Unstructured) slice {
	labels := u.GetLabels()
	s := slice{
		key: kube.Key(u), namespace: u.GetNamespace(), name: u.GetName(), uid: u.GetUID(),
		class:         kube.Text(u, "status", "class"), // Not in Liqo v1.2.0, where it is pruned.
		originOK:      labels[liqo.ReplicatedLabel] == "true" && labels[liqo.OriginIDLabel] != "",
		authenticated: authenticated(u),
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
	return s
}

func authenticated(u *unstructured.Unstructured) bool {
	c, _ := findCondition(u, authenticationCondition)
	return c["status"] == string(accepted)
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
	var p problems
	names := slices.Sorted(maps.Keys(asked))
	if len(names) > maxRequested {
		p.add("asks for %d resources: write at most %d", max(keptOf(u).requested, int64(len(names))), maxRequested)
		names = names[:maxRequested]
	}
	out := make(capacity.Amounts, len(names))
	for _, name := range names {
		q, text, ok := parseQuantity(asked[name])
		switch {
		case len(validation.IsQualifiedName(name)) > 0:
			p.add("asks for the resource %q: write a name such as cpu, memory or nvidia.com/gpu", kube.Shorten(name, kube.MaxShown))
		case !ok:
			p.add("asks for %q %s: write a quantity such as 2, 500m or 16Gi", kube.Shorten(text, kube.MaxShown), kube.Shorten(name, kube.MaxShown))
		case q.Sign() < 0:
			p.add("asks for %s %s: write 0 or more", text, kube.Shorten(name, kube.MaxShown))
		default:
			out[name] = quantity.AmountOf(name, q, quantity.Up)
		}
	}
	return out, p.list()
}

// problems collects the first maxProblems problems, and counts the others.
type problems struct {
	first []string
	more  int
}

func (p *problems) add(format string, args ...any) {
	if len(p.first) == maxProblems {
		p.more++
		return
	}
	p.first = append(p.first, fmt.Sprintf(format, args...))
}

func (p *problems) list() []string {
	if p.more > 0 {
		return append(p.first, fmt.Sprintf("and %d more", p.more))
	}
	return p.first
}

// parseQuantity reads a quantity from an object, and returns its text too.
func parseQuantity(value any) (q resource.Quantity, text string, ok bool) {
	switch v := value.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return q, fmt.Sprint(v), false
	}
	q, ok = quantity.Parse(text)
	return q, text, ok
}
