package slice

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/internal/kube"
)

// Labels of a tenant namespace, see github.com/liqotech/liqo/pkg/consts.
const (
	tenantNamespaceLabel = "liqo.io/tenant-namespace"
	remoteClusterIDLabel = "liqo.io/remote-cluster-id"
)

// decision says whether a ResourceSlice is answered now, and if not, why.
type decision int

// A slice is answered when it is active; nothing new is accepted while it is cordoned; and nothing at all is written to any other.
const (
	notReplicated decision = iota
	noConsumer
	wrongNamespace
	noTenant
	manyTenants
	// drained is when Liqo denies and deletes the slice by itself: what was granted is free.
	drained
	unauthenticated
	cordoned
	active
)

// String is for an admin of this cluster.
func (d decision) String() string {
	switch d {
	case notReplicated:
		return "not a slice of another cluster: Liqo sets the labels " + replicatedLabel + "=true and " + originIDLabel + " on those"
	case noConsumer:
		return "waiting for Liqo to write the consumer's cluster ID"
	case wrongNamespace:
		return "not in the tenant namespace of its consumer: that is labelled " + tenantNamespaceLabel + "=true and " + remoteClusterIDLabel + "=ID"
	case noTenant:
		return "no Tenant of its consumer is in its namespace, or it is being deleted: peer with the consumer again"
	case manyTenants:
		return "more than one Tenant of its consumer is in its namespace: leave one"
	case drained:
		return "its Tenant is drained: nothing is granted"
	case unauthenticated:
		return "waiting for Liqo to authenticate its consumer"
	case cordoned:
		return "its Tenant is cordoned: what is granted stays, and nothing more is granted"
	case active:
		return "answered"
	}
	return "unknown"
}

// gate decides on a slice. The owner is the consumer whose tenant namespace the slice's namespace is, empty if it is none; the tenants are
// all in that namespace. Of two Tenants of one consumer Liqo takes none (getters.GetTenantByClusterID), so neither is taken here.
//
// A drained tenant comes before a slice that is not authenticated: its Quota is deleted either way.
func gate(s *slice, owner string, tenants []tenantState) decision {
	switch {
	case !s.originOK:
		return notReplicated
	case s.consumer == "":
		return noConsumer
	case s.consumer != owner:
		return wrongNamespace
	}
	var own tenantState
	count := 0
	for _, t := range tenants {
		if t.consumer == s.consumer {
			own = t
			count++
		}
	}
	switch {
	case count > 1:
		return manyTenants
	case count == 0 || own.deleting:
		return noTenant
	case own.condition == drained:
		return drained
	case !s.authenticated:
		return unauthenticated
	}
	return own.condition
}

// gates know what slices have to pass.
type gates struct {
	// owners are the consumers that namespaces are the tenant namespaces of, empty for none.
	owners  *kube.ObjectCache[string]
	tenants *kube.ObjectCache[tenantState]
}

func newGates() *gates {
	return &gates{owners: kube.NewObjectCache(parseOwner), tenants: kube.NewObjectCache(parseTenant)}
}

// decide decides on each slice of the list, in its order. The owners are those of namespaces.
func (g *gates) decide(owners map[string]string, list []*entry) []decision {
	tenants := map[string][]tenantState{}
	for _, t := range g.tenants.All() {
		tenants[t.namespace] = append(tenants[t.namespace], t)
	}
	out := make([]decision, len(list))
	var namespace, owner string
	var within []tenantState
	for i := range list {
		s := &list[i].slice
		if s.namespace != namespace { // Those of a namespace follow each other.
			namespace, owner, within = s.namespace, owners[s.namespace], tenants[s.namespace]
		}
		out[i] = gate(s, owner, within)
	}
	return out
}

// tenantState is what a Tenant says of its consumer's slices.
type tenantState struct {
	namespace, consumer string
	// condition is active, cordoned or drained.
	condition decision
	deleting  bool
}

func parseTenant(u *unstructured.Unstructured) tenantState {
	t := tenantState{namespace: u.GetNamespace(), consumer: kube.Text(u, "spec", "clusterID"), deleting: u.GetDeletionTimestamp() != nil}
	condition, found, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "tenantCondition")
	switch {
	case condition == "Active", condition == "", !found:
		t.condition = active // Which Liqo's definition says is the default.
	case condition == "Drained":
		t.condition = drained
	default:
		t.condition = cordoned // Of what a later Liqo may say, this takes nothing back and gives nothing more.
	}
	return t
}

// parseOwner reads the consumer whose tenant namespace a Namespace is, as Liqo does (validateRSNamespace).
func parseOwner(u *unstructured.Unstructured) string {
	labels := u.GetLabels()
	if value, ok := labels[tenantNamespaceLabel]; !ok || strings.EqualFold(value, "false") {
		return ""
	}
	return labels[remoteClusterIDLabel]
}

// keepOwner strips a Namespace of all but the labels that parseOwner reads.
func keepOwner(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	out, labels := kube.Identity(u), map[string]string{}
	for _, key := range []string{tenantNamespaceLabel, remoteClusterIDLabel} {
		if value, ok := u.GetLabels()[key]; ok {
			labels[key] = value
		}
	}
	out.SetLabels(labels)
	return out, nil
}
