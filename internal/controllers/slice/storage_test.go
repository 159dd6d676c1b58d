package slice

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// aStorageClass returns a StorageClass with an annotation, none if it is empty.
func aStorageClass(name, annotation string, created int64, provisioner string) storagev1.StorageClass {
	c := storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(created, 0), Annotations: map[string]string{"note": "x"}},
		Provisioner: provisioner, Parameters: map[string]string{"type": "ssd"},
	}
	if annotation != "" {
		c.Annotations[annotation] = "true"
	}
	return c
}

func TestTheDefaultStorageClassIsThatOfKubernetes(t *testing.T) {
	const provisioner = "example.com/disks"
	ga, beta := defaultStorageAnnotations[0], defaultStorageAnnotations[1]
	notDefault := aStorageClass("old", "", 1, provisioner)
	notDefault.Annotations[ga] = "false"
	for name, tc := range map[string]struct {
		classes []storagev1.StorageClass
		want    []namedClass
	}{
		"none": {nil, nil},
		"no default": {
			[]storagev1.StorageClass{aStorageClass("slow", "", 1, provisioner), aStorageClass("fast", "", 2, provisioner)},
			[]namedClass{{"fast", false}, {"slow", false}},
		},
		"one default": {
			[]storagev1.StorageClass{aStorageClass("fast", "", 1, provisioner), aStorageClass("slow", ga, 1, provisioner), notDefault},
			[]namedClass{{"slow", true}, {"fast", false}, {"old", false}},
		},
		"by the older annotation": {
			[]storagev1.StorageClass{aStorageClass("fast", "", 1, provisioner), aStorageClass("slow", beta, 1, provisioner)},
			[]namedClass{{"slow", true}, {"fast", false}},
		},
		"several: the newest": {
			[]storagev1.StorageClass{aStorageClass("a", ga, 1, provisioner), aStorageClass("b", beta, 3, provisioner), aStorageClass("c", ga, 2, provisioner)},
			[]namedClass{{"b", true}, {"a", false}, {"c", false}},
		},
		"several of one second: the first by name": {
			[]storagev1.StorageClass{aStorageClass("b", ga, 3, provisioner), aStorageClass("a", ga, 3, provisioner)},
			[]namedClass{{"a", true}, {"b", false}},
		},
		"Liqo's own is the last": {
			[]storagev1.StorageClass{aStorageClass("liqo", "", 9, liqo.StorageProvisioner), aStorageClass("slow", "", 1, provisioner)},
			[]namedClass{{"slow", false}, {"liqo", false}},
		},
		"Liqo's own is nobody's first": {[]storagev1.StorageClass{aStorageClass("liqo", ga, 9, liqo.StorageProvisioner)}, nil},
		"Liqo's own is nobody's default": {
			[]storagev1.StorageClass{aStorageClass("liqo", ga, 9, liqo.StorageProvisioner), aStorageClass("slow", ga, 1, provisioner)},
			[]namedClass{{"slow", true}, {"liqo", false}},
		},
	} {
		d := NewDecider(nil, 0, func() {}, func() {}, logr.Discard())
		for i := range tc.classes {
			stripped, err := stripStorageClass(kubetest.Unstructured(t, &tc.classes[i]))
			test.Must(t, err)
			u := stripped.(*unstructured.Unstructured)
			if !d.storage.Set(u) || d.storage.Set(u) {
				t.Errorf("%s: setting a class does not report exactly the first change", name)
			}
			if u.GetAnnotations()["note"] != "" || u.Object["parameters"] != nil {
				t.Errorf("%s: kept too much: %v", name, u.Object)
			}
		}
		if diff := cmp.Diff(tc.want, listStorage(d.storage.All()), comparing); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
