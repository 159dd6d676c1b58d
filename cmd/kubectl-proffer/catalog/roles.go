package catalog

import (
	"context"
	"fmt"
	"io"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/peering"
	"proffer.dev/proffer/internal/source/federation"
)

const (
	// federationRole is the name of the Roles and of their RoleBindings.
	federationRole = "proffer-federation"
	// operatorAccount is the ServiceAccount of the operator.
	operatorAccount = "proffer"
)

// roleLabels are on each Role, and on its RoleBinding.
var roleLabels = labels.Set{
	"app.kubernetes.io/name": "proffer", "app.kubernetes.io/component": "federation",
	"app.kubernetes.io/part-of": "proffer",
}

// printRoles prints what lets an operator in this namespace get the Secrets of all identities, and nothing else: a
// Role and a RoleBinding in each tenant namespace. It names the Roles of identities that are gone, and how to delete
// them.
func (o *catalogOptions) printRoles(ctx context.Context) error {
	c, err := peering.Connect(o.flags)
	if err != nil {
		return err
	}
	ids, err := c.Identities(ctx, "provider", o.provider)
	if err != nil {
		return err
	}
	var written []federation.Identity
	for _, id := range ids {
		if id.Secret == "" {
			fmt.Fprintf(o.streams.ErrOut, "warning: %s: Liqo has not written its kubeconfig yet\n", peering.ShownID(id.Provider))
			continue
		}
		written = append(written, id)
	}
	for _, of := range output.Fold(written, "", func(id federation.Identity) string { return id.Namespace }) {
		secrets := output.Texts(of, func(id federation.Identity) string { return id.Secret })
		role, binding := roleIn(of[0].Namespace, secrets, o.flags.Namespace)
		if err := writeYAML(o.streams.Out, role, binding); err != nil {
			return err
		}
	}
	if o.provider == "" {
		o.warnOfFormer(ctx, c, ids)
	}
	return nil
}

// warnOfFormer prints a command for each Role in a namespace without an identity.
func (o *catalogOptions) warnOfFormer(ctx context.Context, c *peering.Client, ids []federation.Identity) {
	roles, err := c.Objects.Resource(rbacv1.SchemeGroupVersion.WithResource("roles")).
		List(ctx, metav1.ListOptions{LabelSelector: roleLabels.String()})
	if err != nil {
		fmt.Fprintln(o.streams.ErrOut, "warning: the Roles of identities that are gone are not known: "+
			output.OneLine(err.Error()))
		return
	}
	for i := range roles.Items {
		role := &roles.Items[i]
		former := !slices.ContainsFunc(ids, func(id federation.Identity) bool { return id.Namespace == role.GetNamespace() })
		if former && role.GetName() == federationRole {
			fmt.Fprintf(o.streams.ErrOut, "warning: no identity is left in namespace %s: "+
				"kubectl -n %[1]s delete role,rolebinding %s\n", role.GetNamespace(), federationRole)
		}
	}
}

// roleIn returns what lets an operator get these Secrets of a namespace.
func roleIn(namespace string, secrets []string, operatorNamespace string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: federationRole, Labels: roleLabels}
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
