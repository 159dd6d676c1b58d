package catalog

import (
	"encoding/hex"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"proffer.dev/proffer/internal/kube"
)

// cache has the Offers and RoleBindings as they are known to exist, from the watch and from writes.
// The newest version counts. It is safe for concurrent use.
type cache struct {
	mu   sync.Mutex
	byID map[id]observed
}

func newCache() *cache { return &cache{byID: map[id]observed{}} }

// set records an object, and reports whether that is news.
func (c *cache) set(i id, o observed) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, known := c.byID[i]
	if known && was.uid == o.uid && !newer(o.version, was.version) {
		return false
	}
	c.byID[i] = o
	return true
}

// remove forgets an object unless another one has its name, and reports whether it was known.
func (c *cache) remove(i id, o observed) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, known := c.byID[i]
	if !known || was.uid != o.uid {
		return false
	}
	delete(c.byID, i)
	return true
}

// forget forgets an object of any version.
func (c *cache) forget(i id) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, i)
}

// removeAll forgets all objects of a kind.
func (c *cache) removeAll(k kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.byID {
		if i.kind == k {
			delete(c.byID, i)
		}
	}
}

// get returns an object, and whether it exists.
func (c *cache) get(i id) (observed, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, found := c.byID[i]
	return o, found
}

// each visits every object.
func (c *cache) each(visit func(id, observed)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, o := range c.byID {
		visit(i, o)
	}
}

// newer compares versions of an object. Versions that cannot be compared are taken to be newer.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}

// handler brings the objects of one kind to the cache, and has each reconciled that others change.
type handler struct {
	plan *plan
	kind kind
}

func (h handler) id(u *unstructured.Unstructured) id {
	return id{h.kind, u.GetNamespace(), u.GetName()}
}

// Set implements kube.Handler. The comparison does not wait for it.
func (h handler) Set(u *unstructured.Unstructured) bool {
	if h.plan.cache.set(h.id(u), unpack(u)) {
		h.plan.enqueue(h.id(u), 0)
	}
	return false
}

// Remove implements kube.Handler.
func (h handler) Remove(u *unstructured.Unstructured) bool {
	if h.plan.cache.remove(h.id(u), unpack(u)) {
		h.plan.enqueue(h.id(u), 0)
	}
	return false
}

// RemoveAll implements kube.Handler. The next comparison, for which the informer wakes, enqueues everything again:
// the definition may exist again by then.
func (h handler) RemoveAll() {
	h.plan.cache.removeAll(h.kind)
	h.plan.pause()
}

// The fields in which an informer keeps what is needed of an object.
const (
	printField, writtenField, roleField, managerField = "fingerprint", "written", "otherRole", "manager"
)

// pack is a transform that keeps an object's identity, its mark and the fields above: the status of
// an Offer is large, and there are many.
func pack(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	o := observe(u)
	out := kube.Identity(u)
	if o.ours {
		out.SetLabels(map[string]string{managedByLabel: proffer})
	}
	out.Object[printField], out.Object[roleField] = hex.EncodeToString(o.print[:]), o.otherRole
	if o.manager != "" {
		out.Object[managerField] = o.manager
	}
	if !o.written.IsZero() {
		out.Object[writtenField] = o.written.Format(time.RFC3339)
	}
	return out, nil
}

// unpack reads what pack has kept.
func unpack(u *unstructured.Unstructured) observed {
	o := identify(u)
	text, _ := hex.DecodeString(kube.Text(u, printField))
	copy(o.print[:], text)
	o.written, _ = time.Parse(time.RFC3339, kube.Text(u, writtenField))
	o.otherRole, _, _ = unstructured.NestedBool(u.Object, roleField)
	o.manager = kube.Text(u, managerField)
	return o
}
