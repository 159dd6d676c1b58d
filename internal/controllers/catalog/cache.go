package catalog

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/internal/kube"
)

// cache has the Offers and RoleBindings as they are known to exist, by kind.
type cache map[kind]*kube.ObjectCache[observed]

func newCache() cache {
	return cache{offers: kube.NewObjectCache(unpack), bindings: kube.NewObjectCache(unpack)}
}

// set records an object as a write or a read found it.
func (c cache) set(i id, o observed) { c[i.kind].Put(i.String(), o.UID, o.Version, o) }

// remove forgets an object unless another one has its name.
func (c cache) remove(i id, o observed) { c[i.kind].Drop(i.String(), o.UID) }

// get returns an object, and whether it exists.
func (c cache) get(i id) (observed, bool) { return c[i.kind].Get(i.String()) }

// all returns the objects of a kind.
func (c cache) all(k kind) map[id]observed {
	out := map[id]observed{}
	for key, o := range c[k].All() {
		namespace, name, _ := strings.Cut(key, "/")
		out[id{k, namespace, name}] = o
	}
	return out
}

// handler brings the objects of one kind to the cache, and has each reconciled that others change.
type handler struct {
	plan *plan
	kind kind
}

// Set implements kube.Handler. The comparison does not wait for it.
func (h handler) Set(u *unstructured.Unstructured) bool {
	return h.changed(u, h.plan.cache[h.kind].Set(u))
}

// Remove implements kube.Handler.
func (h handler) Remove(u *unstructured.Unstructured) bool {
	return h.changed(u, h.plan.cache[h.kind].Remove(u))
}

func (h handler) changed(u *unstructured.Unstructured, changed bool) bool {
	if changed {
		h.plan.enqueue(id{h.kind, u.GetNamespace(), u.GetName()}, 0)
	}
	return false
}

// RemoveAll implements kube.Handler. The next comparison, for which the informer wakes, enqueues everything again:
// the definition may exist again by then.
func (h handler) RemoveAll() {
	h.plan.cache[h.kind].RemoveAll()
	h.plan.pause()
}

// observedField is the field in which an informer keeps what is observed of an object.
const observedField = "observed"

// pack is a transform that keeps an object's identity and what is observed of it: the status of an
// Offer is large, and there are many. It returns what it has packed as it is (kube.Kind says why). No
// stored object has the field, since the API server drops what a schema does not have.
func pack(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || kube.Text(u, observedField) != "" {
		return obj, nil
	}
	text, err := json.Marshal(observe(u))
	if err != nil {
		return nil, err
	}
	out := kube.Identity(u)
	out.Object[observedField] = string(text)
	return out, nil
}

// unpack reads what pack has kept.
func unpack(u *unstructured.Unstructured) (o observed) {
	_ = json.Unmarshal([]byte(kube.Text(u, observedField)), &o) // It was encoded from one.
	return o
}
