// Command kubernetes checks manifests as the API server of one minor version of Kubernetes does,
// with that version's own code. It reads YAML and prints what that version rejects, one line for
// each object:
//
//	kubectl kustomize config/default | go run -modfile=minors/1.30.mod .
//
// The version must know the kind and all fields of every object. A CustomResourceDefinition also
// passes the version's validation, which compiles its rules and estimates their cost.
//
// go.mod is for the oldest version. The directory minors has a file for each of the others.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	problems, err := check(context.Background(), os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(2)
	}
	for _, problem := range problems {
		fmt.Println(problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// check returns the problems of the objects in YAML. Input without objects is an error.
func check(ctx context.Context, in io.Reader) (problems []string, err error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme,
		policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	reader := yaml.NewYAMLReader(bufio.NewReader(in))
	for checked := 0; ; checked++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) && checked > 0 {
			return problems, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading object %d: %w", checked+1, err)
		}
		object, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		if crd, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok {
			found, err := checkCRD(ctx, scheme, crd)
			if err != nil {
				return nil, err
			}
			problems = append(problems, found...)
		}
	}
}

func checkCRD(
	ctx context.Context, scheme *runtime.Scheme, crd *apiextensionsv1.CustomResourceDefinition,
) (problems []string, err error) {
	scheme.Default(crd)
	for _, version := range crd.Spec.Versions {
		crd.Status.StoredVersions = append(crd.Status.StoredVersions, version.Name)
	}
	var internal apiextensions.CustomResourceDefinition
	if err := scheme.Convert(crd, &internal, nil); err != nil {
		return nil, fmt.Errorf("converting %s: %w", crd.Name, err)
	}
	for _, err := range validation.ValidateCustomResourceDefinition(ctx, &internal) {
		problems = append(problems, crd.Name+": "+err.Error())
	}
	return problems, nil
}
