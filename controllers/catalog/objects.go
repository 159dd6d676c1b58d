package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/table"
)

const (
	// RoleBinding is the name of the RoleBinding in each tenant namespace, and ClusterRole that of
	// the role that it binds to the consumer.
	RoleBinding = "proffer-offers"
	ClusterRole = "proffer-offer-viewer"

	// managedByLabel marks our objects. An object of another mark is not written.
	managedByLabel = "app.kubernetes.io/managed-by"
	nameLabel      = "app.kubernetes.io/name"
	proffer        = "proffer"

	tenantAPIVersion, tenantKind = "authentication.liqo.io/v1beta1", "Tenant"
)

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

func (i id) less(than id) bool {
	return cmp.Or(cmp.Compare(i.namespace, than.namespace), cmp.Compare(i.kind, than.kind), cmp.Compare(i.name, than.name)) < 0
}

func labels() map[string]string {
	return map[string]string{nameLabel: proffer, managedByLabel: proffer}
}

// offerOf returns the Offer with this status.
func offerOf(t table.Tenant, status v1alpha1.OfferStatus) *v1alpha1.Offer {
	return &v1alpha1.Offer{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: status.Class, Labels: labels(),
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: tenantAPIVersion, Kind: tenantKind, Name: t.Name, UID: types.UID(t.UID)},
			},
		},
		Status: status,
	}
}

// bindingOf returns the RoleBinding of these subjects. The ClusterRole owns it: without the role, it
// has no effect, and with it, it is deleted.
func bindingOf(t table.Tenant, role types.UID, subjects []Subject) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: RoleBinding, Labels: labels(),
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: ClusterRole, UID: role},
			},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRole},
	}
	for _, s := range subjects {
		b.Subjects = append(b.Subjects, s.of(t.Consumer))
	}
	return b
}

// fingerprint identifies the content of an object, without the times in an Offer.
type fingerprint [sha256.Size]byte

// content is what a fingerprint covers. Other labels, and annotations, do not count.
type content struct {
	Name, ManagedBy string
	Owners          []metav1.OwnerReference
	Status          *v1alpha1.OfferStatus `json:",omitempty"`
	RoleRef         rbacv1.RoleRef
	Subjects        []rbacv1.Subject
}

func contentOf(object metav1.Object) content {
	return content{
		Name: object.GetLabels()[nameLabel], ManagedBy: object.GetLabels()[managedByLabel],
		Owners: object.GetOwnerReferences(),
	}
}

func (c content) fingerprint() (f fingerprint) {
	text, err := json.Marshal(c)
	if err != nil {
		return f // No object has this one, so the object is written again.
	}
	return sha256.Sum256(text)
}

func fingerprintOfOffer(o *v1alpha1.Offer) fingerprint {
	c, status := contentOf(o), o.Status
	status.ObservedTime, status.ValidUntil = metav1.Time{}, metav1.Time{}
	c.Status = &status
	return c.fingerprint()
}

func fingerprintOfBinding(b *rbacv1.RoleBinding) fingerprint {
	c := contentOf(b)
	c.RoleRef, c.Subjects = b.RoleRef, slices.Clone(b.Subjects)
	return c.fingerprint()
}

// observed is an object as it is known to exist.
type observed struct {
	uid      types.UID
	version  string
	ours     bool
	deleting bool
	print    fingerprint
	// written is the time in an Offer, zero if the times do not fit each other.
	written time.Time
	// otherRole is set for a RoleBinding of another role: the role of a RoleBinding cannot be
	// changed.
	otherRole bool
}

func observe(object metav1.Object) observed {
	return observed{
		uid: object.GetUID(), version: object.GetResourceVersion(), ours: object.GetLabels()[managedByLabel] == proffer,
		deleting: object.GetDeletionTimestamp() != nil,
	}
}

func observeOffer(o *v1alpha1.Offer) observed {
	out := observe(o)
	out.print = fingerprintOfOffer(o)
	if at := o.Status.ObservedTime.Time; o.Status.ValidUntil.Sub(at) == Validity {
		out.written = at
	}
	return out
}

func observeBinding(b *rbacv1.RoleBinding) observed {
	out := observe(b)
	out.print = fingerprintOfBinding(b)
	out.otherRole = b.RoleRef != rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ClusterRole}
	return out
}
