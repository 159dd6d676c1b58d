package page

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/quantity"
)

// timesFor bounds how old the times are that an open page of the catalog shows: then it is shown again,
// also if nothing else has changed.
const timesFor = time.Minute

// could holds what a consumer could have.
type could struct {
	ClusterID string
	Entries   []rest.CatalogEntry
}

// amounts holds the amounts of one resource of an entry.
type amounts struct{ Resource, Available, Held, Ceiling, LargestPod string }

// catalogPage shows the catalog of one consumer.
func catalogPage(view View, r *http.Request) (document, error) {
	id := r.PathValue("clusterID")
	if len(id) > maxID {
		return document{}, fmt.Errorf("a cluster ID has at most %d bytes", maxID)
	}
	c := could{id, view.Catalog(id)}
	return document{Title: "Catalog of " + id, Section: "consumers", Body: "catalog", Data: c}, nil
}

// amountsOf returns the amounts of each resource that the entry has, by name.
func amountsOf(entry rest.CatalogEntry) []amounts {
	columns := []v1alpha1.Quantities{entry.Available, entry.Held, entry.Ceiling, entry.LargestPod}
	named := v1alpha1.Quantities{}
	for _, all := range columns {
		maps.Copy(named, all)
	}
	rows := make([]amounts, 0, len(named))
	for _, name := range slices.Sorted(maps.Keys(named)) {
		var row []*resource.Quantity
		for _, all := range columns {
			row = append(row, quantityOf(all, name))
		}
		texts := quantity.Human(string(name), row...)
		rows = append(rows, amounts{
			Resource: string(name), Available: cmp.Or(texts[0], none), Held: cmp.Or(texts[1], none),
			Ceiling: cmp.Or(texts[2], none), LargestPod: cmp.Or(texts[3], none),
		})
	}
	return rows
}

// shapesOf counts nodes by what is free on each of them, a line for each shape, as in "7 nodes with
// cpu=20, memory=200Gi".
func shapesOf(shapes []v1alpha1.NodeShape) []string {
	lines := make([]string, len(shapes))
	for i, shape := range shapes {
		lines[i] = count(shape.Nodes, "node") + " with " + granted(shape.Free)
	}
	return lines
}

// quantityOf returns the amount of a resource, nil if there is none.
func quantityOf(all v1alpha1.Quantities, name corev1.ResourceName) *resource.Quantity {
	q, ok := all[name]
	if !ok {
		return nil
	}
	return &q.Quantity
}

// linkable reports whether an address leads to a web page. Others, such as javascript:, are only text.
func linkable(url v1alpha1.URL) bool {
	return strings.HasPrefix(string(url), "https://") || strings.HasPrefix(string(url), "http://")
}
