package kube

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// anObject returns an object n in the namespace ns.
func anObject(uid, version string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"namespace": "ns", "name": "n", "uid": uid, "resourceVersion": version,
	}}}
}

// The result of a write can come after the watch has told that the object is gone.
func TestAWriteDoesNotBringBackADeletedObject(t *testing.T) {
	c := NewObjectCache(func(u *unstructured.Unstructured) string { return u.GetResourceVersion() })
	c.Set(anObject("first", "1"))
	c.Remove(anObject("first", "3"))
	if c.Wrote(anObject("first", "2")) {
		t.Error("a write to an object that is gone counts as a change")
	}
	if version, found := c.Get("ns/n"); found {
		t.Errorf("an object that is gone is known at version %s", version)
	}
	if !c.Wrote(anObject("second", "4")) {
		t.Error("another object of the name is no change")
	}
	if version, found := c.Get("ns/n"); !found || version != "4" {
		t.Errorf("another object of the name is known: %v, at version %s", found, version)
	}
}
