// Package manifests reads the manifests of this version, which are part of the plugin: what they
// install, and what they allow the operator to do.
package manifests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"proffer.dev/proffer/config"
)

// maxListed bounds the rights that List names.
const maxListed = 4

// Right is one thing that RBAC allows. Name and Namespace are empty for all of them.
type Right struct{ Verb, Group, Resource, Subresource, Name, Namespace string }

// String returns the right as in "list pods" or "update resourcepolicies.proffer.dev/status".
func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// Attributes returns the right as a review of access asks for it.
func (r Right) Attributes() *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{
		Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Name: r.Name, Namespace: r.Namespace,
	}
}

// List names the first maxListed rights, and counts the others.
func List(all []Right) string {
	var texts []string
	for _, r := range all[:min(len(all), maxListed)] {
		texts = append(texts, r.String())
	}
	if more := len(all) - maxListed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// Rights returns the rights that the roles in these files give an operator in the namespace.
func Rights(namespace string, files ...string) ([]Right, error) {
	var all []Right
	for _, file := range files {
		objects, err := Read(file)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			var in string
			switch o.GetKind() {
			case "ClusterRole":
			case "Role":
				in = namespace
			default:
				continue
			}
			role := &rbacv1.ClusterRole{} // A Role has the same rules.
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
				return nil, fmt.Errorf("reading %s: %w", file, err)
			}
			for _, rule := range role.Rules {
				all = append(all, ofRule(rule, in)...)
			}
		}
	}
	return all, nil
}

func ofRule(rule rbacv1.PolicyRule, namespace string) []Right {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []Right
	for _, group := range rule.APIGroups {
		for _, full := range rule.Resources {
			resource, subresource, _ := strings.Cut(full, "/")
			for _, name := range names {
				for _, verb := range rule.Verbs {
					all = append(all, Right{verb, group, resource, subresource, name, namespace})
				}
			}
		}
	}
	return all
}

// Files returns the files of this name, which may be a pattern, in directories of config.
func Files(name string, dirs ...string) ([]string, error) {
	var files []string
	for _, dir := range dirs {
		found, err := fs.Glob(config.Files, dir+"/"+name)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

// Read returns the objects in a file, which is named by its path in config.
func Read(file string) ([]*unstructured.Unstructured, error) {
	text, err := config.Files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all, err := Decode(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return all, nil
}

// Decode returns the objects in a text of YAML or JSON.
func Decode(text io.Reader) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(text, 4096)
	for {
		u := &unstructured.Unstructured{}
		switch err := decoder.Decode(&u.Object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case len(u.Object) > 0:
			all = append(all, u)
		}
	}
}

// OperatorRole is the file with the rights that every operator needs.
const OperatorRole = "rbac/role.yaml"

// MissingReads returns what the caller may not read of what an operator in the namespace reads.
func MissingReads(
	ctx context.Context, client authorizationv1client.SelfSubjectAccessReviewInterface, namespace string,
) ([]Right, error) {
	needed, err := Rights(namespace, OperatorRole)
	if err != nil {
		return nil, err
	}
	var missing []Right
	for _, r := range needed {
		switch r.Verb {
		case "get", "list", "watch":
		default:
			continue
		}
		if r.Resource == "leases" {
			continue // Only a replica that may lead reads it.
		}
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: r.Attributes()},
		}
		answer, err := client.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("asking the API server for your rights: %w", err)
		}
		if !answer.Status.Allowed {
			missing = append(missing, r)
		}
	}
	return missing, nil
}
