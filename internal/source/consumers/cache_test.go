package consumers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	c.set(2, "ns/rome", offer.Consumer{ID: "rome", Labels: map[string]string{"tier": "bronze", "from": "tenant"}})
	c.set(0, "b", offer.Consumer{ID: "rome", Labels: map[string]string{"tier": "silver"}})
	c.set(0, "a", offer.Consumer{ID: "rome", Labels: map[string]string{"tier": "gold"}})
	c.set(1, "x", offer.Consumer{ID: "oslo"})
	want := []offer.Consumer{{ID: "oslo"}, {ID: "rome", Labels: map[string]string{"tier": "gold", "from": "tenant"}}}
	if diff := cmp.Diff(want, c.List()); diff != "" {
		t.Error(diff)
	}
	if c.set(0, "a", offer.Consumer{ID: "rome", Labels: map[string]string{"tier": "gold"}}) {
		t.Error("setting the same consumer again reports a change")
	}
	if !c.remove(0, "a") || c.remove(0, "a") {
		t.Error("remove does not report exactly the first removal")
	}
	c.removeAll(1)
	want = []offer.Consumer{{ID: "rome", Labels: map[string]string{"tier": "silver", "from": "tenant"}}}
	if diff := cmp.Diff(want, c.List()); diff != "" {
		t.Error(diff)
	}
}
