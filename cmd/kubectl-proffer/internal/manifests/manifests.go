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
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/config"
)

// maxListed bounds the rights that List names.
const maxListed = 4

// Right is one thing that RBAC allows, as a review of access asks for it. Name and Namespace are empty for all of
// them.
type Right authorizationv1.ResourceAttributes

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

// SelfReview returns a review that asks whether the caller has the right.
func (r Right) SelfReview() *authorizationv1.SelfSubjectAccessReview {
	return &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: new(authorizationv1.ResourceAttributes(r)),
	}}
}

// List names the first maxListed rights, and counts the others.
func List(all []Right) string {
	texts := output.Texts(all[:min(len(all), maxListed)], Right.String)
	if more := len(all) - maxListed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// Rights returns the rights that the roles in these files give an operator in the namespace.
func Rights(namespace string, files ...string) ([]Right, error) {
	objects, err := Read(files...)
	if err != nil {
		return nil, err
	}
	var all []Right
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
			return nil, fmt.Errorf("reading %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		for _, rule := range role.Rules {
			all = append(all, ofRule(rule, in)...)
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
					all = append(all, Right{
						Verb: verb, Group: group, Resource: resource, Subresource: subresource, Name: name, Namespace: namespace,
					})
				}
			}
		}
	}
	return all
}

// Read returns the objects in the files of config whose paths match one of the patterns.
func Read(patterns ...string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, pattern := range patterns {
		files, err := fs.Glob(config.Files, pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := config.Files.ReadFile(file)
			if err != nil {
				return nil, err
			}
			objects, err := Decode(bytes.NewReader(text))
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", file, err)
			}
			all = append(all, objects...)
		}
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
	reads := slices.DeleteFunc(needed, func(r Right) bool {
		// Only a replica that may lead reads leases.
		return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) || r.Resource == "leases"
	})
	return Denied(ctx, reads, func(ctx context.Context, r Right) (bool, error) {
		answer, err := client.Create(ctx, r.SelfReview(), metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("asking the API server for your rights: %w", err)
		}
		return answer.Status.Allowed, nil
	})
}

// parallel bounds the reviews that are asked for at a time.
const parallel = 10

// Denied returns the rights that a review does not allow, in their order.
func Denied(
	ctx context.Context, rights []Right, allowed func(context.Context, Right) (bool, error),
) ([]Right, error) {
	has := make([]bool, len(rights))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, r := range rights {
		group.Go(func() (err error) {
			has[i], err = allowed(ctx, r)
			return err
		})
	}
	err := group.Wait()
	var denied []Right
	for i, r := range rights {
		if !has[i] {
			denied = append(denied, r)
		}
	}
	return denied, err
}
