package orchestration

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/broker"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/quantity"
)

// Liqo's names and values, see github.com/liqotech/liqo/pkg/consts.
const (
	offloadingName   = "offloading"
	mapping          = "DefaultName"
	remoteStrategy   = "Remote"
	localStrategy    = "Local"
	connectedValue   = "Connected"
	remoteConditions = "remoteNamespacesConditions"
)

// Our own marks.
const (
	// PriceAnnotation is the start of the annotations of a ForeignCluster that have the prices of a
	// provider, by resource.
	PriceAnnotation = "price.proffer.dev/"
	// MeasuredAnnotation is the start of the annotations of a ForeignCluster that have what an admin has
	// measured of a provider, by name, such as 210@2026-11-26T15:00Z.
	MeasuredAnnotation = "kpi.proffer.dev/"
	// ManagedByLabel, with the value ManagedBy, and Annotation, with the name of an Orchestration, mark a
	// NamespaceOffloading that the operator has written.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "proffer"
	Annotation     = "proffer.dev/orchestration"

	proffer             = ManagedBy // also the field manager
	drainingAnnotation  = "proffer.dev/draining"
	drainTimeAnnotation = "proffer.dev/drain-minutes"
)

// orchestration is an Orchestration. It has either a parsed value or a problem.
type orchestration struct {
	object  *v1alpha1.Orchestration
	parsed  *broker.Orchestration
	problem string
}

func parseOrchestration(u *unstructured.Unstructured) orchestration {
	o := orchestration{object: &v1alpha1.Orchestration{}}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o.object); err != nil {
		o.object.Name, o.object.UID, o.problem = u.GetName(), u.GetUID(), err.Error()
		return o
	}
	o.object.ManagedFields = nil
	var err error
	if o.parsed, err = parse(o.object); err != nil {
		o.problem = err.Error()
	}
	return o
}

// namespace is a Namespace that Liqo made for a peer: a tenant namespace, or one that a consumer sent.
type namespace struct {
	name, cluster string
	tenant        bool
	// managedBy is the NamespaceMap, as namespace/name. original is the name at the consumer.
	managedBy, original string
	created             time.Time
	uid                 types.UID
	deleting            bool
}

func parseNamespace(u *unstructured.Unstructured) namespace {
	labels := u.GetLabels()
	return namespace{
		name: u.GetName(), cluster: labels[liqo.RemoteClusterIDLabel], tenant: labels[liqo.TenantNamespaceLabel] != "",
		managedBy: kube.Text(u, "metadata", "annotations", liqo.ManagedByMapAnnotation),
		original:  kube.Text(u, "metadata", "annotations", liqo.OriginalNameAnnotation),
		created:   u.GetCreationTimestamp().UTC(), uid: u.GetUID(), deleting: u.GetDeletionTimestamp() != nil,
	}
}

// maxOriginal is more than the longest name of a namespace, in bytes.
const maxOriginal = 64

// stripNamespace keeps what parseNamespace reads. Liqo copies the original name from an object of the
// consumer, with up to 256 KiB.
func stripNamespace(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	kept, err := kube.KeepFields([]string{"metadata", "creationTimestamp"})(u)
	if err != nil {
		return nil, err
	}
	out, annotations := kept.(*unstructured.Unstructured), map[string]string{}
	bounds := map[string]int{
		liqo.ManagedByMapAnnotation: 2 * validation.DNS1123SubdomainMaxLength,
		liqo.OriginalNameAnnotation: maxOriginal,
	}
	for key, most := range bounds {
		if value, has := u.GetAnnotations()[key]; has {
			annotations[key] = strings.Clone(value[:min(len(value), most)]) // Not to keep the rest of it.
		}
	}
	out.SetAnnotations(annotations)
	return out, nil
}

// node is a virtual Node.
type node struct {
	name            string
	labels          map[string]string
	ready, cordoned bool
	allocatable     capacity.Amounts
}

func parseNode(u *unstructured.Unstructured) node {
	n := node{name: u.GetName(), labels: u.GetLabels()}
	var object corev1.Node
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &object) != nil {
		return n // It is not ready. The API server has no such node.
	}
	n.cordoned = object.Spec.Unschedulable
	for _, c := range object.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.ready = c.Status == corev1.ConditionTrue
		}
	}
	n.allocatable = quantity.AmountsOf(object.Status.Allocatable, quantity.Down)
	return n
}

// virtualNode is Liqo's object behind a virtual Node, which has its name. Liqo on this cluster writes
// the ID of the provider into it; a provider can set any label of the Node.
type virtualNode struct {
	cluster  string
	deleting bool
}

func parseVirtualNode(u *unstructured.Unstructured) virtualNode {
	return virtualNode{cluster: kube.Text(u, "spec", "clusterID"), deleting: u.GetDeletionTimestamp() != nil}
}

// networkConnection is a Connection of Liqo's network. Its latency is in microseconds, 0 if there is none.
type networkConnection struct {
	cluster  string
	latency  int64
	measured time.Time
}

func parseConnection(u *unstructured.Unstructured) networkConnection {
	c := networkConnection{cluster: u.GetLabels()[liqo.RemoteClusterIDLabel]}
	// Liqo writes 12ms, 850μs or N/A.
	latency, err := time.ParseDuration(kube.Text(u, "status", "latency", "value"))
	if err == nil && kube.Text(u, "status", "value") == connectedValue {
		c.latency = max(0, latency.Microseconds())
	}
	c.measured, _ = time.Parse(time.RFC3339, kube.Text(u, "status", "latency", "timestamp"))
	return c
}

// foreignCluster has the prices of a provider, by resource, and what an admin has measured of it, by name, in
// the units of package broker. Liqo copies no annotation of a ForeignCluster from another cluster.
type foreignCluster struct {
	cluster string
	// labels are here so that a change of them wakes the writer.
	labels           map[string]string
	prices, measured map[string]measured
}

// measured is a value that counts until a time, zero for always, or why there is none.
type measured struct {
	value   int64
	until   time.Time
	problem string
}

// parseMeasured reads an annotation. Seconds may be left out of its time.
func parseMeasured(text string) (m measured) {
	number, at, timed := strings.Cut(text, "@")
	value, ok := broker.Measure{KPI: broker.MeasuredLower}.Parse(number)
	until, err := time.Parse(time.RFC3339, at)
	if err != nil {
		until, err = time.Parse("2006-01-02T15:04Z07:00", at)
	}
	switch {
	case !ok:
		m.problem = "its annotation has no decimal number"
	case !timed:
		m.problem = "its annotation has no time: write " + kube.Shorten(number, maxMeasured) + "@2026-11-26T15:00Z"
	case err != nil:
		m.problem = "the time of its annotation is not one such as 2026-11-26T15:00Z"
	default:
		m.value, m.until = value, until.UTC()
	}
	return m
}

// maxMeasured bounds what is shown of a value, in bytes.
const maxMeasured = 19

func parseForeignCluster(u *unstructured.Unstructured) foreignCluster {
	f := foreignCluster{
		cluster: kube.Text(u, "spec", "clusterID"), labels: u.GetLabels(),
		prices: map[string]measured{}, measured: map[string]measured{},
	}
	for key, text := range u.GetAnnotations() {
		if name, ok := strings.CutPrefix(key, PriceAnnotation); ok {
			// An annotation has no slash in its name: nvidia.com_gpu stands for nvidia.com/gpu.
			m := measured{}
			if m.value, ok = (broker.Measure{KPI: broker.Price}).Parse(text); !ok {
				m.problem = "its annotation is not a price such as 0.021"
			}
			f.prices[strings.Replace(name, "_", "/", 1)] = m
		} else if name, ok := strings.CutPrefix(key, MeasuredAnnotation); ok {
			f.measured[name] = parseMeasured(text)
		}
	}
	return f
}

// offloading is the NamespaceOffloading of a namespace.
type offloading struct {
	uid     types.UID
	version string
	// manager is the last other writer of it.
	manager  string
	ours     bool
	deleting bool
	state
	// exact is set if the spec is one that encode makes.
	exact bool
	// present are the providers that have the namespace.
	present map[string]bool
}

func parseOffloading(u *unstructured.Unstructured) offloading {
	annotations := u.GetAnnotations()
	o := offloading{
		uid: u.GetUID(), version: u.GetResourceVersion(), manager: restore.LastManager(u),
		deleting: u.GetDeletionTimestamp() != nil, present: map[string]bool{},
		state: state{
			orchestration: annotations[Annotation], strategy: kube.Text(u, "spec", "podOffloadingStrategy"),
			draining: parseDeadlines(annotations[drainingAnnotation]), drain: defaultDrain * time.Minute,
		},
	}
	o.ours = u.GetLabels()[ManagedByLabel] == proffer && o.orchestration != ""
	if minutes, err := strconv.ParseUint(annotations[drainTimeAnnotation], 10, 16); err == nil {
		o.drain = time.Duration(minutes) * time.Minute
	}
	o.selected, o.exact = parseSelector(u)
	clusters, _, _ := unstructured.NestedMap(u.Object, "status", remoteConditions)
	for id, conditions := range clusters {
		list, _ := conditions.([]any)
		for _, c := range list {
			if c, ok := c.(map[string]any); ok && c["type"] == "Ready" {
				o.present[id] = c["status"] == string(corev1.ConditionTrue)
			}
		}
	}
	return o
}

// parseSelector returns the IDs in a selector of the form that selector makes, and whether it has
// this form.
func parseSelector(u *unstructured.Unstructured) (ids []string, exact bool) {
	stored, _, _ := unstructured.NestedMap(u.Object, "spec", "clusterSelector")
	var parsed corev1.NodeSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(stored, &parsed) != nil {
		return nil, false
	}
	for _, term := range parsed.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == liqo.RemoteClusterIDLabel && e.Operator == corev1.NodeSelectorOpIn {
				ids = append(ids, e.Values...)
			}
		}
	}
	exact = reflect.DeepEqual(stored, selector(ids))
	slices.Sort(ids)
	return slices.DeleteFunc(ids, func(id string) bool { return id == broker.None }), exact
}

// selector returns a selector of these clusters, and of none if there are no IDs.
func selector(ids []string) map[string]any {
	values := make([]any, 0, len(ids))
	for _, id := range ids {
		values = append(values, id)
	}
	if len(values) == 0 {
		values = append(values, broker.None)
	}
	return map[string]any{"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{
		map[string]any{"key": liqo.RemoteClusterIDLabel, "operator": string(corev1.NodeSelectorOpIn), "values": values},
	}}}}
}

// parseDeadlines reads what deadlines writes: milan=2026-11-25T10:00:00Z,oslo=... What it cannot read
// it leaves out, so that these drains begin again.
func parseDeadlines(text string) map[string]time.Time {
	out := map[string]time.Time{}
	for part := range strings.SplitSeq(text, ",") {
		id, at, _ := strings.Cut(part, "=")
		if t, err := time.Parse(time.RFC3339, at); err == nil {
			out[id] = t
		}
	}
	return out
}

func deadlines(draining map[string]time.Time) string {
	parts := make([]string, 0, len(draining))
	for id, at := range draining {
		parts = append(parts, id+"="+at.UTC().Format(time.RFC3339))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// isID reports whether a text is a cluster ID.
func isID(text string) bool { return len(validation.IsDNS1123Label(text)) == 0 }
