package catalog

import (
	"context"
	"fmt"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/peering"
)

const (
	// federationRole is the name of the Roles and of their RoleBindings.
	federationRole = "proffer-federation"
	// operatorAccount is the ServiceAccount of the operator.
	operatorAccount = "proffer"
)

// printRoles prints what lets an operator in this namespace get the Secrets of all identities, and nothing else: a
// Role and a RoleBinding in each tenant namespace.
func (o *catalogOptions) printRoles(ctx context.Context) error {
	c, err := peering.Connect(o.flags)
	if err != nil {
		return err
	}
	ids, err := c.Identities(ctx, "provider", o.provider)
	if err != nil {
		return err
	}
	secrets := map[string][]string{}
	var namespaces []string
	for _, id := range ids {
		if id.Secret == "" {
			fmt.Fprintf(o.streams.ErrOut, "warning: %s: Liqo has not written its kubeconfig yet\n", peering.ShownID(id.Provider))
			continue
		}
		if len(secrets[id.Namespace]) == 0 {
			namespaces = append(namespaces, id.Namespace)
		}
		secrets[id.Namespace] = append(secrets[id.Namespace], id.Secret)
	}
	for _, namespace := range namespaces {
		role, binding := roleIn(namespace, secrets[namespace], o.flags.Namespace)
		if err := writeYAML(o.streams.Out, role, binding); err != nil {
			return err
		}
	}
	return nil
}

// roleIn returns what lets an operator get these Secrets of a namespace.
func roleIn(namespace string, secrets []string, operatorNamespace string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: federationRole, Labels: map[string]string{
		"app.kubernetes.io/name": "proffer", "app.kubernetes.io/component": "federation",
		"app.kubernetes.io/part-of": "proffer",
	}}
	kind := func(name string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: name}
	}
	role := &rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: secrets, Verbs: []string{"get"},
	}}}
	binding := &rbacv1.RoleBinding{
		TypeMeta: kind("RoleBinding"), ObjectMeta: meta,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: federationRole},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: operatorAccount,
		}},
	}
	return role, binding
}

// writeYAML writes objects as documents of YAML.
func writeYAML(to io.Writer, objects ...any) error {
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(to, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}
