package check

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/source/federation"
)

const checkFederation Check = "federation"

// identities returns this cluster's identities at providers.
func (c *cluster) identities(ctx context.Context) known[[]federation.Identity] {
	list, err := c.dynamic.Resource(liqo.Identities).List(ctx, metav1.ListOptions{})
	if err != nil {
		return knownOf[[]federation.Identity](nil, err)
	}
	all := federation.Identities(list.Items)
	return knownOf(slices.DeleteFunc(all, func(id federation.Identity) bool { return id.Secret == "" }), nil)
}

// federation reports on the rights of the operator to the Secrets of its identities.
func (c *cluster) federation(ctx context.Context, namespace, account string) []Finding {
	ids := c.identities(ctx)
	needed, all := secretRights(ids.value)
	denied, narrow := c.denied(ctx, namespace, account, needed), c.denied(ctx, namespace, account, all)
	tooBroad := slices.DeleteFunc(all, func(r manifests.Right) bool { return slices.Contains(narrow.value, r) })
	return findFederation(ids, denied, knownOf(tooBroad, narrow.err))
}

// secretRights returns the rights to the Secret of each identity, and to all Secrets of their namespaces.
func secretRights(ids []federation.Identity) (needed, broad []manifests.Right) {
	for _, id := range ids {
		needed = append(needed, manifests.Right{
			Verb: "get", Resource: "secrets", Namespace: id.Namespace, Name: id.Secret,
		})
		all := manifests.Right{Verb: "get", Resource: "secrets", Namespace: id.Namespace}
		if !slices.Contains(broad, all) {
			broad = append(broad, all)
		}
	}
	return needed, broad
}

// findFederation reports the Secrets of identities that the operator may not get, and the namespaces in which it may
// get all of them. Both are the API server's answers to secretRights.
func findFederation(ids known[[]federation.Identity], denied, tooBroad known[[]manifests.Right]) []Finding {
	switch {
	case ids.missing():
		return []Finding{checkFederation.wrong(
			"The operator runs with --federation, and this cluster has no Identities of Liqo v1.").
			do("Install Liqo v1, or leave the component federation out.")}
	case ids.err != nil:
		return []Finding{ids.skip(checkFederation, "list identities.authentication.liqo.io")}
	case denied.err != nil:
		return []Finding{denied.skip(checkFederation, "create subjectaccessreviews.authorization.k8s.io")}
	}
	var findings []Finding
	if len(denied.value) > 0 {
		findings = append(findings, checkFederation.wrong(
			"The operator cannot read what some providers publish: it may not %s.", manifests.List(denied.value)).
			do("kubectl proffer catalog --roles | kubectl apply -f -"))
	}
	if len(tooBroad.value) > 0 {
		namespaces := output.Texts(tooBroad.value, func(r manifests.Right) string { return r.Namespace })
		findings = append(findings, checkFederation.warning(
			"The operator may get every Secret of %s, and needs only those of identities.", kube.First(namespaces)).
			do("Delete the Role that allows it, and apply what kubectl proffer catalog --roles prints."))
	}
	if len(findings) == 0 {
		findings = append(findings, checkFederation.ok(
			"The operator may get the Secrets of its identities at providers (%d), and no others there. "+
				"Whoever takes it over can use them.", len(ids.value)))
	}
	return findings
}
