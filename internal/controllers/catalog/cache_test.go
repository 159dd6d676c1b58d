package catalog

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/catalog"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
)

// A watch that brings an object as the write left it enqueues nothing.
func TestAnInformerKeepsOfAnObjectWhatAWriteFinds(t *testing.T) {
	at := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	rome := table.Tenant{Consumer: "rome", Namespace: "tenant-rome", Name: "tenant", UID: "1"}
	status := &v1alpha1.OfferStatus{ClusterID: "rome", Class: "gold"}
	status.ObservedTime.Time, status.ValidUntil.Time = at, at.Add(catalog.Validity)
	offer, err := offerOf(rome, status)
	test.Must(t, err)
	binding, err := bindingOf(rome, OfferBinding.Name, "role", nil)
	test.Must(t, err)
	other := binding.DeepCopy()
	test.Must(t, unstructured.SetNestedField(other.Object, "another", "roleRef", "name"))
	other.SetLabels(nil)
	other.SetDeletionTimestamp(new(metav1.NewTime(at)))
	odd := offer.DeepCopy()
	test.Must(t, unstructured.SetNestedField(odd.Object, "2026-11-26T10:00:00+24:00", "status", observedTimeField))
	for kind, u := range map[string]*unstructured.Unstructured{
		"offer": offer, "binding": binding, "other": other, "a time that cannot be encoded": odd,
	} {
		u.SetUID("uid")
		u.SetResourceVersion("7")
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "rival", Time: new(metav1.NewTime(at))}})
		packed, err := pack(u)
		test.Must(t, err)
		packed, err = pack(packed)
		test.Must(t, err)
		if diff := cmp.Diff(observe(u), unpack(packed.(*unstructured.Unstructured))); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
		c := newCache()
		i := id{offers, "tenant-rome", "gold"}
		packed.(*unstructured.Unstructured).SetNamespace(i.namespace)
		packed.(*unstructured.Unstructured).SetName(i.name)
		c.set(i, observe(u))
		if c[offers].Set(packed.(*unstructured.Unstructured)) {
			t.Errorf("%s: the cache takes it to have changed", kind)
		}
	}
}
