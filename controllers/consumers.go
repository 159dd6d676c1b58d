package controllers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/internal/offer"
)

// maxClusterID bounds the cluster IDs taken from objects, and is the bound of those in a policy.
const maxClusterID = 253

var errNoClusterID = errors.New("no cluster ID yet")

// parseConsumer reads the consumer that an object of the kind describes.
func (k peerKind) parseConsumer(u *unstructured.Unstructured) (offer.Consumer, error) {
	id, found, err := unstructured.NestedString(u.Object, k.clusterID...)
	switch {
	case err != nil:
		return offer.Consumer{}, fmt.Errorf("%s: %w", strings.Join(k.clusterID, "."), err)
	case !found || id == "":
		return offer.Consumer{}, errNoClusterID
	case len(id) > maxClusterID:
		return offer.Consumer{}, fmt.Errorf("%s: %d characters, at most %d are taken", strings.Join(k.clusterID, "."), len(id), maxClusterID)
	}
	return offer.Consumer{ID: id, Labels: u.GetLabels()}, nil
}

// consumers is the register of the peers that objects describe. One peer may have several objects: its labels are those of all of
// them, and where two disagree the kind that comes first in peerKinds decides, within a kind the object that comes first by name.
type consumers struct {
	mu     sync.Mutex
	byKind [][]described
	merged []offer.Consumer
	stale  bool
}

type described struct {
	object string
	offer.Consumer
}

func newConsumers(kinds int) *consumers { return &consumers{byKind: make([][]described, kinds)} }

// set records what an object describes, and reports whether that is news.
func (c *consumers) set(kind int, object string, consumer offer.Consumer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, found := c.find(kind, object)
	if !found {
		c.byKind[kind] = slices.Insert(c.byKind[kind], i, described{object: object, Consumer: consumer})
		c.stale = true
		return true
	}
	was := &c.byKind[kind][i]
	if was.ID == consumer.ID && maps.Equal(was.Labels, consumer.Labels) {
		return false
	}
	was.Consumer, c.stale = consumer, true
	return true
}

// remove forgets an object, and reports whether it was known.
func (c *consumers) remove(kind int, object string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, found := c.find(kind, object)
	if found {
		c.byKind[kind] = slices.Delete(c.byKind[kind], i, i+1)
		c.stale = true
	}
	return found
}

// removeAll forgets all objects of the kind.
func (c *consumers) removeAll(kind int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byKind[kind], c.stale = nil, true
}

func (c *consumers) find(kind int, object string) (int, bool) {
	return slices.BinarySearchFunc(c.byKind[kind], object, func(d described, name string) int { return cmp.Compare(d.object, name) })
}

// list returns each peer once, sorted by ID. The caller must not change it.
func (c *consumers) list() []offer.Consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stale {
		return c.merged
	}
	byID := map[string]offer.Consumer{}
	for _, objects := range c.byKind {
		for _, d := range objects {
			known, ok := byID[d.ID]
			if !ok {
				byID[d.ID] = d.Consumer
				continue
			}
			labels := maps.Clone(d.Labels)
			if labels == nil {
				labels = map[string]string{}
			}
			maps.Copy(labels, known.Labels)
			byID[d.ID] = offer.Consumer{ID: d.ID, Labels: labels}
		}
	}
	merged := make([]offer.Consumer, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		merged = append(merged, byID[id])
	}
	c.merged, c.stale = merged, false
	return merged
}
