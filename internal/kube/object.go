package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"
)

// FieldManager is the manager of the fields that the operator writes.
const FieldManager = "proffer"

// APITimeout bounds one read or write of the API server.
const APITimeout = 10 * time.Second

// Key returns namespace/name, which identifies an object within its kind, or just the name.
func Key(u *unstructured.Unstructured) string {
	return toolscache.NewObjectName(u.GetNamespace(), u.GetName()).String()
}

// Text returns the string at a path of the object, empty if there is none.
func Text(u *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	text, _ := value.(string)
	return text
}

// Encode returns an object of a Go type as one that is written without it.
func Encode(kind schema.GroupVersionKind, object any) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// MergePatch makes a merge patch of an object.
func MergePatch(
	ctx context.Context, objects dynamic.ResourceInterface, name string, patch map[string]any,
) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return objects.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
}

// Identity returns a copy of an object that keeps only its kind, its namespace and name, its UID, its
// resource version and its deletion timestamp. A transform of an informer starts from it.
func Identity(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	out.SetUID(u.GetUID())
	out.SetResourceVersion(u.GetResourceVersion())
	out.SetDeletionTimestamp(u.GetDeletionTimestamp())
	return out
}

// KeepFields returns a transform that keeps an object's identity, its labels and the fields at
// these paths.
func KeepFields(paths ...[]string) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		out := Identity(u)
		out.SetLabels(u.GetLabels())
		for _, path := range paths {
			if value, found, _ := unstructured.NestedFieldCopy(u.Object, path...); found {
				if err := unstructured.SetNestedField(out.Object, value, path...); err != nil {
					return nil, err
				}
			}
		}
		return out, nil
	}
}
