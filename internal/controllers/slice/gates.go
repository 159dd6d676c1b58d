package slice

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
)

// gateState says whether a ResourceSlice is answered now and, if not, why.
type gateState int

// An active slice is answered. While a slice is cordoned, nothing new is accepted. In any other
// state nothing new is granted, and an existing grant is at most lowered.
const (
	notReplicated gateState = iota
	noConsumer
	wrongNamespace
	noTenant
	manyTenants
	// drained: Liqo itself denies and deletes the slice, so its grant is free.
	drained
	unauthenticated
	cordoned
	active
)

// gateStates has the gate of a decision and the description for an admin of this cluster, by the state.
var gateStates = map[gateState]struct {
	gate holding.Gate
	text string
}{
	notReplicated: {holding.Shut, "not a slice of another cluster: Liqo sets the labels " +
		liqo.ReplicatedLabel + "=true and " + liqo.OriginIDLabel + " on those"},
	noConsumer: {holding.Shut, "waiting for Liqo to write the consumer's cluster ID"},
	wrongNamespace: {holding.Shut, "not in the tenant namespace of its consumer: that is labelled " +
		liqo.TenantNamespaceLabel + "=true and " + liqo.RemoteClusterIDLabel + "=ID"},
	noTenant: {holding.Shut,
		"no Tenant of its consumer is in its namespace, or it is being deleted: peer with the consumer again"},
	manyTenants:     {holding.Shut, "more than one Tenant of its consumer is in its namespace: leave one"},
	drained:         {holding.Drained, "its Tenant is drained: nothing is granted"},
	unauthenticated: {holding.Shut, "waiting for Liqo to authenticate its consumer"},
	cordoned:        {holding.Cordoned, "its Tenant is cordoned: what is granted stays, and nothing more is granted"},
	active:          {holding.Open, "answered"},
}

// gate returns the state for a decision.
func (s gateState) gate() holding.Gate { return gateStates[s].gate }

// String describes the state to an admin of this cluster.
func (s gateState) String() string { return gateStates[s].text }

// gate returns the state of a slice. The owner is the consumer whose tenant namespace the slice is
// in, empty if it is not a tenant namespace; the tenants are all in that namespace. If a consumer
// has two Tenants, Liqo accepts neither (getters.GetTenantByClusterID), nor does this function.
//
// A drained tenant is checked before authentication: its Quota is deleted either way.
func gate(s *slice, owner string, tenants []tenantState) gateState {
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

// gates holds the objects that the gates of slices depend on.
type gates struct {
	// owners maps namespaces to the consumers whose tenant namespaces they are, empty for none.
	owners  *kube.ObjectCache[string]
	tenants *kube.ObjectCache[tenantState]
}

func newGates() *gates {
	return &gates{owners: kube.NewObjectCache(parseOwner), tenants: kube.NewObjectCache(parseTenant)}
}

// decide returns the state of each slice in the list, in its order.
func (g *gates) decide(owners map[string]string, list []*sliceEntry) []gateState {
	tenants := map[string][]tenantState{}
	for _, t := range g.tenants.All() {
		tenants[t.namespace] = append(tenants[t.namespace], t)
	}
	out := make([]gateState, len(list))
	for i, c := range list {
		out[i] = gate(&c.slice, owners[c.namespace], tenants[c.namespace])
	}
	return out
}

// tenantState holds the fields of a Tenant that the gates of its consumer's slices depend on.
type tenantState struct {
	namespace, consumer string
	// condition is active, cordoned or drained.
	condition gateState
	deleting  bool
	name, uid string
}

func parseTenant(u *unstructured.Unstructured) tenantState {
	t := tenantState{
		namespace: u.GetNamespace(), consumer: kube.Text(u, "spec", "clusterID"),
		deleting: u.GetDeletionTimestamp() != nil, name: u.GetName(), uid: string(u.GetUID()),
	}
	condition, found, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "tenantCondition")
	switch {
	case condition == "Active", condition == "", !found:
		t.condition = active // The default in Liqo's definition.
	case condition == "Drained":
		t.condition = drained
	default:
		t.condition = cordoned // Safe for a value of a later Liqo: it takes nothing back and grants nothing more.
	}
	return t
}

// parseOwner reads the consumer whose tenant namespace a Namespace is, as Liqo does
// (validateRSNamespace).
func parseOwner(u *unstructured.Unstructured) string {
	labels := u.GetLabels()
	if value, ok := labels[liqo.TenantNamespaceLabel]; !ok || strings.EqualFold(value, "false") {
		return ""
	}
	return labels[liqo.RemoteClusterIDLabel]
}
