package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/catalog"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/table"
)

const (
	// managedByLabel marks our objects. An object of another mark is not written.
	managedByLabel = "app.kubernetes.io/managed-by"
	nameLabel      = "app.kubernetes.io/name"
	proffer        = "proffer"

	tenantAPIVersion, tenantKind = "authentication.liqo.io/v1beta1", "Tenant"
)

// Binding is a RoleBinding in each tenant namespace: it binds a ClusterRole to the consumer.
type Binding struct{ Name, ClusterRole string }

// The RoleBindings that let a consumer read its Offers, and choose among its providers.
var (
	OfferBinding  = Binding{"proffer-offers", "proffer-offer-viewer"}
	ChoiceBinding = Binding{"proffer-provider-choice", "proffer-provider-choice"}
)

// roleOf has the ClusterRole of each RoleBinding by its name.
var roleOf = map[string]string{
	OfferBinding.Name: OfferBinding.ClusterRole, ChoiceBinding.Name: ChoiceBinding.ClusterRole,
}

// kind is a kind of object that is written.
type kind string

const (
	offers   kind = "Offer"
	bindings kind = "RoleBinding"
)

// id identifies an object.
type id struct {
	kind            kind
	namespace, name string
}

func (i id) String() string { return i.namespace + "/" + i.name }

// resource returns the resource of the object.
func (i id) resource() schema.GroupVersionResource {
	if i.kind == offers {
		return offerResource
	}
	return bindingResource
}

// request returns the request for the controller of the kind.
func (i id) request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: i.namespace, Name: i.name}}
}

func labels() map[string]string {
	return map[string]string{nameLabel: proffer, managedByLabel: proffer}
}

// offerOf returns the Offer with this status.
func offerOf(t table.Tenant, status *v1alpha1.OfferStatus) (*unstructured.Unstructured, error) {
	return kube.Encode(v1alpha1.GroupVersion.WithKind(string(offers)), &v1alpha1.Offer{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: status.Class, Labels: labels(),
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: tenantAPIVersion, Kind: tenantKind, Name: t.Name, UID: types.UID(t.UID)},
			},
		},
		Status: *status,
	})
}

// bindingOf returns the RoleBinding of this name and these subjects. The ClusterRole, which has the UID,
// owns it: without the role, it has no effect, and with it, it is deleted.
func bindingOf(t table.Tenant, name string, uid types.UID, subjects []Subject) (*unstructured.Unstructured, error) {
	role := roleOf[name]
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: name, Labels: labels(),
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role, UID: uid},
			},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	for _, s := range subjects {
		b.Subjects = append(b.Subjects, s.forCluster(t.Consumer))
	}
	return kube.Encode(rbacv1.SchemeGroupVersion.WithKind(string(bindings)), b)
}

// fingerprint identifies the content of an object, without the times in an Offer.
type fingerprint string

// The times of an Offer.
const observedTimeField, validUntilField = "observedTime", "validUntil"

// providersField has the providers in an Offer, each with a time of its own.
const providersField = "providers"

// withoutTimes returns the providers in an Offer without their times.
func withoutTimes(providers []any) []any {
	out := make([]any, len(providers))
	for i := range providers {
		p, _ := providers[i].(map[string]any)
		p = maps.Clone(p)
		delete(p, validUntilField)
		out[i] = p
	}
	return out
}

// fingerprintOf reads only what the operator writes: other labels, and annotations, do not count.
func fingerprintOf(u *unstructured.Unstructured) fingerprint {
	status := maps.Clone(statusOf(u))
	delete(status, observedTimeField)
	delete(status, validUntilField)
	if providers, _ := status[providersField].([]any); providers != nil {
		status[providersField] = withoutTimes(providers)
	}
	owners, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "ownerReferences")
	marks := u.GetLabels() // A copy.
	text, err := json.Marshal([]any{
		marks[nameLabel], marks[managedByLabel], owners, status, u.Object["roleRef"], u.Object["subjects"],
	})
	if err != nil {
		return "" // No object has this one, so the object is written again.
	}
	return fingerprint(fmt.Sprintf("%x", sha256.Sum256(text)))
}

func statusOf(u *unstructured.Unstructured) map[string]any {
	status, _ := u.Object["status"].(map[string]any)
	return status
}

// observed is an object as it is known to exist. It is encoded by pack.
type observed struct {
	UID      types.UID
	Version  string
	Ours     bool
	Deleting bool
	Print    fingerprint
	// Written is the time in an Offer, zero if the times do not fit each other.
	Written time.Time
	// OtherRole is set for a RoleBinding of another role: the role of a RoleBinding cannot be
	// changed.
	OtherRole bool
	// Manager is the last other writer of the object.
	Manager string
}

// observe reads an Offer or a RoleBinding. It does not decode the status of an Offer, because each
// write would have to do it twice: for the answer, and for the watch.
func observe(u *unstructured.Unstructured) observed {
	o := observed{
		UID: u.GetUID(), Version: u.GetResourceVersion(), Ours: u.GetLabels()[managedByLabel] == proffer,
		Deleting: u.GetDeletionTimestamp() != nil, Print: fingerprintOf(u), Manager: restore.LastManager(u),
	}
	at, until := timeIn(u, observedTimeField), timeIn(u, validUntilField)
	if until.Sub(at) == catalog.Validity {
		o.Written = at
	}
	if role, found, _ := unstructured.NestedStringMap(u.Object, "roleRef"); found {
		ours := map[string]string{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": roleOf[u.GetName()]}
		o.OtherRole = !maps.Equal(role, ours)
	}
	return o
}

// timeIn returns a time in the status of an Offer, zero for none, or for one that cannot be encoded: the API
// server and time.Parse take an offset of 24 hours.
func timeIn(u *unstructured.Unstructured, field string) (at time.Time) {
	text, _ := statusOf(u)[field].(string)
	at, _ = time.Parse(time.RFC3339, text)
	if _, err := at.MarshalText(); err != nil {
		return time.Time{}
	}
	return at
}
