package kubetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/nodestest"
)

// Create creates an object and removes it at the end of the test. The status of a node or a pod is
// written too.
func Create[T client.Object](t testing.TB, object T) T {
	t.Helper()
	want := object.DeepCopyObject()
	test.Eventually(t, func() string {
		switch err := API(t).Create(t.Context(), object); {
		case err == nil:
			return ""
		// After a definition was removed and installed again, the API server returns this error for
		// a while, because it reads a stale cache.
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "custom resource definition is terminating"):
			return err.Error()
		default:
			t.Fatal(err)
			return ""
		}
	})
	t.Cleanup(func() { Remove(t, object) })
	nodestest.Complete(t, API(t), object, want)
	return object
}

// Remove deletes an object without a grace period. It is no error if the object is already gone.
func Remove(t testing.TB, object client.Object) {
	t.Helper()
	err := API(t).Delete(context.WithoutCancel(t.Context()), object, client.GracePeriodSeconds(0))
	if client.IgnoreNotFound(err) != nil {
		t.Errorf("delete %T %s: %v", object, object.GetName(), err)
	}
}

// Write writes an object for Edit.
type Write func(context.Context, client.Client, client.Object) error

// WriteSpec updates all of an object but its status.
func WriteSpec(ctx context.Context, api client.Client, o client.Object) error {
	return api.Update(ctx, o)
}

// WriteStatus updates the status of an object.
func WriteStatus(ctx context.Context, api client.Client, o client.Object) error {
	return api.Status().Update(ctx, o)
}

// Edit reads an object, changes it and writes it. It repeats this after a conflict.
func Edit[T client.Object](t testing.TB, object T, change func(client.Object), write Write) {
	t.Helper()
	api := API(t)
	for {
		test.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		change(object)
		err := write(t.Context(), api, object)
		if apierrors.IsConflict(err) {
			continue
		}
		test.Must(t, err)
		return
	}
}

// kept are the definitions that Keep installed, by file.
var kept = map[string][]*apiextensionsv1.CustomResourceDefinition{}

// Keep installs the CustomResourceDefinitions of a file for all tests of the package that follow,
// and removes their objects at the end of the test. Each change of the definitions makes the API
// server work for seconds, so only a test in which definitions come or go uses Install.
func Keep(t testing.TB, file string) {
	t.Helper()
	if kept[file] == nil {
		kept[file] = install(t, file)
	}
	for _, crd := range kept[file] {
		t.Cleanup(func() { test.Eventually(t, func() string { return removeObjects(t, crd) }) })
	}
}

// removeObjects deletes the objects of a definition, and returns a message while there were any.
func removeObjects(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) string {
	var all unstructured.UnstructuredList
	all.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
	all.SetKind(crd.Spec.Names.ListKind)
	if err := API(t).List(context.WithoutCancel(t.Context()), &all); err != nil {
		return err.Error()
	}
	for i := range all.Items {
		Remove(t, &all.Items[i])
	}
	if len(all.Items) > 0 {
		return fmt.Sprintf("%d %s exist", len(all.Items), crd.Spec.Names.Plural)
	}
	return ""
}

// Without removes the definitions that Keep installed from these files, or from all files if none is
// given.
func Without(t testing.TB, files ...string) {
	t.Helper()
	if len(files) == 0 {
		files = slices.Collect(maps.Keys(kept))
	}
	for _, file := range files {
		crds := kept[file]
		delete(kept, file)
		uninstall(t, crds)
		for _, crd := range crds {
			test.Eventually(t, func() string { return stillInstalled(t, crd.Name) })
		}
	}
}

// Install installs the CustomResourceDefinitions of a file until the end of the test, or until the
// returned function is called.
func Install(t testing.TB, file string) (remove func()) {
	t.Helper()
	Without(t, file)
	crds := install(t, file)
	remove = sync.OnceFunc(func() { uninstall(t, crds) })
	t.Cleanup(remove)
	return remove
}

func install(t testing.TB, file string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	options := envtest.CRDInstallOptions{
		Paths: []string{file}, ErrorIfPathMissing: true, MaxTime: controlplane.StartTimeout,
	}
	test.Must(t, envtest.ReadCRDFiles(&options))
	for _, crd := range options.CRDs {
		test.Eventually(t, func() string { return stillInstalled(t, crd.Name) })
	}
	crds, err := envtest.InstallCRDs(Cluster(t).Config, options)
	test.Must(t, err)
	return crds
}

func uninstall(t testing.TB, crds []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	err := envtest.UninstallCRDs(Cluster(t).Config, envtest.CRDInstallOptions{CRDs: crds})
	if err != nil {
		t.Error(err)
	}
}

// stillInstalled returns a message while a definition that an earlier test removed still exists.
func stillInstalled(t testing.TB, crd string) string {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apiextensions.k8s.io/v1")
	u.SetKind("CustomResourceDefinition")
	err := API(t).Get(t.Context(), client.ObjectKey{Name: crd}, u)
	switch {
	case apierrors.IsNotFound(err):
		return ""
	case err != nil:
		t.Fatal(err)
	}
	return crd + " still exists"
}
