package slice

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
)

// defaultStorageAnnotations mark the StorageClass of claims that name none. Kubernetes heeds both, see
// k8s.io/component-helpers/storage/volume.
var defaultStorageAnnotations = []string{
	"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class",
}

// storageClass is a StorageClass of this cluster.
type storageClass struct {
	name string
	// created is in seconds of Unix time.
	created int64
	// marked is set if the class is marked as the default. Several can be.
	marked bool
	// virtual marks Liqo's own class, whose volumes are on other clusters.
	virtual bool
}

func parseStorageClass(u *unstructured.Unstructured) storageClass {
	c := storageClass{name: u.GetName(), virtual: kube.Text(u, "provisioner") == liqo.StorageProvisioner}
	if created := u.GetCreationTimestamp(); !created.IsZero() {
		c.created = created.Unix()
	}
	for _, name := range defaultStorageAnnotations {
		c.marked = c.marked || u.GetAnnotations()[name] == "true"
	}
	return c
}

// stripStorageClass keeps what parseStorageClass reads.
var stripStorageClass = kube.KeepFields([]string{"metadata", "creationTimestamp"}, []string{"provisioner"},
	[]string{"metadata", "annotations", defaultStorageAnnotations[0]},
	[]string{"metadata", "annotations", defaultStorageAnnotations[1]})

// listStorage lists StorageClasses as an answer has them: the default first, the others by name. Of several
// that are marked as the default, Kubernetes takes the newest, and of these the first by name. Liqo's own is
// the last, because a consumer without a default takes the first, left out if it would be the first, and never
// the default.
func listStorage(all map[string]storageClass) []namedClass {
	byName := slices.SortedFunc(maps.Values(all), func(a, b storageClass) int { return cmp.Compare(a.name, b.name) })
	var standard *storageClass
	for i := range byName {
		if c := &byName[i]; c.marked && !c.virtual && (standard == nil || c.created > standard.created) {
			standard = c
		}
	}
	var first, others, last []namedClass
	for i := range byName {
		switch c := &byName[i]; {
		case c == standard:
			first = append(first, namedClass{c.name, true})
		case c.virtual:
			last = append(last, namedClass{c.name, false})
		default:
			others = append(others, namedClass{c.name, false})
		}
	}
	if len(first)+len(others) == 0 {
		return nil
	}
	return slices.Concat(first, others, last)
}
