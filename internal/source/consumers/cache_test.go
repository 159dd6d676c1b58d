package consumers

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/test"
)

func TestConsumersAreParsedFromEachKind(t *testing.T) {
	object := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{
			Object: map[string]any{
				"metadata": map[string]any{"name": "o", "labels": map[string]any{"tier": "gold"}},
				"spec":     spec,
			},
		}
	}
	identity := func(id any) map[string]any { return map[string]any{"clusterIdentity": map[string]any{"clusterID": id}} }
	for _, tc := range []struct {
		name string
		kind int
		spec map[string]any
		want string
		fail bool
	}{
		{"ForeignCluster of v1", 0, map[string]any{"clusterID": "rome"}, "rome", false},
		{"ForeignCluster of v0", 1, identity("32f0b45b-5c06-4cc4-84b6-03a323ffc93d"),
			"32f0b45b-5c06-4cc4-84b6-03a323ffc93d", false},
		{"Tenant", 2, map[string]any{"clusterID": "rome"}, "rome", false},
		{"ForeignCluster of v0 before its peer is known", 1, map[string]any{}, "", true},
		{"no ID", 0, map[string]any{}, "", true},
		{"empty ID", 2, map[string]any{"clusterID": ""}, "", true},
		{"an ID that is not a string", 0, map[string]any{"clusterID": int64(7)}, "", true},
		{"an ID that is too long", 0, map[string]any{"clusterID": strings.Repeat("x", 254)}, "", true},
	} {
		for _, stripped := range []bool{false, true} {
			u := object(tc.spec)
			if stripped {
				s, err := kinds[tc.kind].strip()(u)
				test.Must(t, err)
				u = s.(*unstructured.Unstructured)
			}
			got, err := kinds[tc.kind].parse(u)
			if (err != nil) != tc.fail || got.ID != tc.want || (!tc.fail && got.Labels["tier"] != "gold") {
				t.Errorf("%s, stripped %v: got %+v, %v", tc.name, stripped, got, err)
			}
		}
	}
}

func TestLabelsOfAllObjectsAreMergedAndTheFirstKindWins(t *testing.T) {
	c := NewCache()
	object := func(kind int, name, id string, labels map[string]string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetName(name)
		u.SetUID(types.UID(name))
		u.SetLabels(labels)
		test.Must(t, unstructured.SetNestedField(u.Object, id, kinds[kind].clusterID...))
		return u
	}
	note := func(changed bool) bool {
		if changed {
			c.changed()
		}
		return changed
	}
	set := func(kind int, name, id string, labels map[string]string) bool {
		return note(c.handlerOf(kind, logr.Discard()).Set(object(kind, name, id, labels)))
	}
	remove := func(kind int, name string) bool {
		return note(c.handlerOf(kind, logr.Discard()).Remove(object(kind, name, "rome", nil)))
	}
	set(2, "of-rome", "rome", map[string]string{"tier": "bronze", "from": "tenant"})
	set(0, "b", "rome", map[string]string{"tier": "silver"})
	set(0, "a", "rome", map[string]string{"tier": "gold"})
	set(1, "x", "oslo", nil)
	want := []offer.Consumer{{ID: "oslo"}, {ID: "rome", Labels: map[string]string{"tier": "gold", "from": "tenant"}}}
	if diff := cmp.Diff(want, c.List()); diff != "" {
		t.Error(diff)
	}
	list := c.List()
	if set(0, "a", "rome", map[string]string{"tier": "gold"}) {
		t.Error("setting the same consumer again reports a change")
	}
	if set(0, "no-peer-yet", "", nil) {
		t.Error("an object without an ID reports a change")
	}
	if again := c.List(); &again[0] != &list[0] {
		t.Error("the list is another one, although no consumer has changed")
	}
	if !remove(0, "a") || remove(0, "a") {
		t.Error("remove does not report exactly the first removal")
	}
	c.handlerOf(1, logr.Discard()).RemoveAll()
	c.changed()
	want = []offer.Consumer{{ID: "rome", Labels: map[string]string{"tier": "silver", "from": "tenant"}}}
	if diff := cmp.Diff(want, c.List()); diff != "" {
		t.Error(diff)
	}
}
