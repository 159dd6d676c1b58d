package migrate

import (
	"fmt"
	"io"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// maxFile bounds the part of a file that is read, in bytes. A Deployment is at most 1.5 MiB.
const maxFile = 16 << 20

// readDeployment reads YAML or JSON of one or several objects, or a List of them, and returns the
// Deployment of this name, or the only one if the name is empty.
func readDeployment(from io.Reader, name string) (*appsv1.Deployment, error) {
	var found []*appsv1.Deployment
	visit := func(u *unstructured.Unstructured) error {
		if u.GetKind() != "Deployment" || u.GroupVersionKind().Group != appsv1.GroupName ||
			name != "" && u.GetName() != name {
			return nil
		}
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
			return fmt.Errorf("decoding Deployment %s: %w", u.GetName(), err)
		}
		found = append(found, d)
		return nil
	}
	objects, err := manifests.Decode(io.LimitReader(from, maxFile))
	if err != nil {
		return nil, err
	}
	for _, u := range objects {
		if u.IsList() {
			err = u.EachListItem(func(o runtime.Object) error { return visit(o.(*unstructured.Unstructured)) })
		} else {
			err = visit(u)
		}
		if err != nil {
			return nil, err
		}
	}
	return chooseDeployment(found, name)
}

func chooseDeployment(found []*appsv1.Deployment, name string) (*appsv1.Deployment, error) {
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && name != "":
		return nil, fmt.Errorf("there is no Deployment %s of %s in it", name, appsv1.SchemeGroupVersion)
	case len(found) == 0:
		return nil, fmt.Errorf("there is no Deployment of %s in it", appsv1.SchemeGroupVersion)
	}
	names := output.Texts(found, func(d *appsv1.Deployment) string { return klog.KObj(d).String() })
	return nil, fmt.Errorf("there are several Deployments in it: name one of %s", strings.Join(names, ", "))
}
