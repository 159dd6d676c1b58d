package slice

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/grant/protocol"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/quantity"
)

// maxGrantName leaves room for the UID in the name of a Grant.
const maxGrantName = 200

// grantRecord holds the fields of a Grant.
type grantRecord struct {
	protocol.Record
	// uid, namespace and name identify the slice.
	uid             types.UID
	namespace, name string
	consumer        string
	since           time.Time
	// written is the time at which the API server last stored it, zero if that is unknown.
	written time.Time
	// object is the UID of the Grant, version its resourceVersion.
	object  types.UID
	version string
}

func parseGrant(g *v1alpha1.Grant) grantRecord {
	s := &g.Spec
	r := grantRecord{
		uid: types.UID(s.Slice.UID), namespace: s.Slice.Namespace, name: s.Slice.Name,
		consumer: s.ClusterID, since: s.Since.Time, object: g.UID, version: g.ResourceVersion,
	}
	r.Present, r.Released, r.Term = parseShare(&s.GrantedShare), s.State == v1alpha1.GrantReleased, s.Term
	for i := range s.Earlier {
		r.Earlier = r.Earlier.Add(parseShare(&s.Earlier[i]))
	}
	for i := range g.ManagedFields {
		if at := g.ManagedFields[i].Time; at != nil && at.After(r.written) {
			r.written = at.Time
		}
	}
	return r
}

// goneSince returns the time by which the slice of a released record was certainly gone: no later than
// the record was written, by a clock that may differ from this one, and no later than this process found out.
func (r *grantRecord) goneSince(found time.Time) time.Time {
	if by := r.written.Add(clockSkew); r.Released && !r.written.IsZero() && by.Before(found) {
		return by
	}
	return found
}

func parseShare(s *v1alpha1.GrantedShare) protocol.Share {
	return protocol.Share{
		Class:   s.Class,
		Policy:  offer.JoinGranters(offer.GranterTexts{Policies: s.Policy, Digests: s.Nodes, Seats: s.Seat}),
		Reclaim: reclaims[s.Reclaim],
		Amounts: quantity.AmountsOf(s.Resources, quantity.Up),
	}
}

// reclaims maps the words of the API; an unknown word is Unused.
var reclaims = map[v1alpha1.Reclaim]offer.Reclaim{
	v1alpha1.ReclaimUnused: offer.Unused, v1alpha1.ReclaimEvict: offer.Evict, v1alpha1.ReclaimRetain: offer.Retain,
}

func reclaimText(r offer.Reclaim) v1alpha1.Reclaim {
	for text, is := range reclaims {
		if is == r {
			return text
		}
	}
	return v1alpha1.ReclaimUnused
}

// slice returns the fields that the record has of a slice that is gone.
func (r *grantRecord) slice() slice {
	return slice{
		key: toolscache.NewObjectName(r.namespace, r.name).String(), namespace: r.namespace, name: r.name,
		uid: r.uid, created: r.since.Unix(), class: r.Present.Class,
		object: &unstructured.Unstructured{Object: map[string]any{}},
	}
}

// grantObject returns the Grant for the record.
func (r *grantRecord) grantObject(namespace string) *v1alpha1.Grant {
	g := &v1alpha1.Grant{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: grantName(r.name, r.uid), UID: r.object, ResourceVersion: r.version,
		},
		Spec: v1alpha1.GrantSpec{
			GrantedShare: shareObject(r.Present), ClusterID: r.consumer, State: v1alpha1.GrantGranted,
			Since: metav1.NewTime(r.since), Term: r.Term,
			Slice: v1alpha1.GrantedSlice{Namespace: r.namespace, Name: r.name, UID: string(r.uid)},
		},
	}
	if r.Released {
		g.Spec.State = v1alpha1.GrantReleased
	}
	for _, s := range r.Earlier {
		g.Spec.Earlier = append(g.Spec.Earlier, shareObject(s))
	}
	return g
}

// contentOf renders what a Grant records, for the pacer. Each term writes it again.
func contentOf(r *grantRecord) string {
	term, _, _ := strings.Cut(r.Term, "/")
	return fmt.Sprint(term, r.Released, r.Present, r.Earlier)
}

func shareObject(s protocol.Share) v1alpha1.GrantedShare {
	out := v1alpha1.GrantedShare{Class: s.Class, Reclaim: reclaimText(s.Reclaim), Resources: corev1.ResourceList{}}
	texts := offer.SplitGranters(s.Policy)
	out.Policy, out.Nodes, out.Seat = texts.Policies, texts.Digests, texts.Seats
	for name, amount := range s.Amounts {
		if amount > 0 {
			out.Resources[corev1.ResourceName(name)] = quantity.Of(name, amount)
		}
	}
	return out
}

// grantName returns the name of a slice's Grant: readable, and unique among slices of one name.
func grantName(slice string, uid types.UID) string {
	return strings.TrimRight(slice[:min(len(slice), maxGrantName)], "-.") + "-" + string(uid)
}
