package deploy

import (
	"context"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

// installCRD creates the CRDs in a file, and waits until their objects can be listed. It deletes them at
// the end of the test, and waits until they are gone, so that the next test can create them.
func installCRD(t *testing.T, file string) {
	t.Helper()
	objects, err := controlplane.ReadObjects(file)
	test.Must(t, err)
	for _, u := range objects {
		test.Must(t, cluster.client.Create(t.Context(), u))
		t.Cleanup(func() { deleteCRD(t, u) })
	}
	for _, u := range objects {
		for _, kind := range servedKinds(t, u) {
			awaitServed(t, kind)
		}
	}
}

// servedKinds returns the kind of a CRD in each version that it serves.
func servedKinds(t *testing.T, u *unstructured.Unstructured) (kinds []schema.GroupVersionKind) {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	test.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd))
	for _, v := range crd.Spec.Versions {
		if v.Served {
			kinds = append(kinds, schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind})
		}
	}
	return kinds
}

// awaitServed waits until a new client finds the kind by discovery, and lists its objects. The client of
// the package remembers kinds that an earlier test has removed.
func awaitServed(t *testing.T, kind schema.GroupVersionKind) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	test.Eventually(t, func() error {
		fresh, err := client.New(cluster.rest, client.Options{})
		if err != nil {
			return err
		}
		return fresh.List(t.Context(), list, client.Limit(1))
	})
}

func deleteCRD(t *testing.T, crd *unstructured.Unstructured) {
	t.Helper()
	if err := cluster.client.Delete(context.WithoutCancel(t.Context()), crd); err != nil {
		t.Error(err)
		return
	}
	awaitGone(t, crd.DeepCopy())
}

// awaitGone waits until an object is gone.
func awaitGone(t *testing.T, object client.Object) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	test.Eventually(t, func() error {
		err := cluster.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		default:
			return fmt.Errorf("%s is still there", object.GetName())
		}
	})
}
