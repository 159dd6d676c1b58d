package check

import (
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
)

const checkAccess Check = "rights"

// review asks whether a ServiceAccount has the right.
func review(r manifests.Right, namespace, account string) *authorizationv1.SubjectAccessReview {
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + namespace + ":" + account,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: r.Attributes(),
	}}
}

// neededRights returns what the manifests of this version allow an operator in the namespace, with
// these flags.
func neededRights(namespace string, f flags) ([]manifests.Right, error) {
	files, err := manifests.Files("role.yaml", f.components()...)
	if err != nil {
		return nil, err
	}
	files = slices.Concat([]string{manifests.OperatorRole, "rbac/metrics_auth_role.yaml"}, files)
	all, err := manifests.Rights(namespace, files...)
	seen := map[manifests.Right]bool{} // Some rights are in several roles.
	return slices.DeleteFunc(all, func(r manifests.Right) bool {
		again := seen[r]
		seen[r] = true
		return again
	}), err
}

// findAccess reports the rights that the operator lacks. Denied is the API server's answer.
func findAccess(account string, asked int, denied known[[]manifests.Right]) Finding {
	switch lacking := denied.value; {
	case denied.err != nil:
		return denied.skip(checkAccess, "create subjectaccessreviews.authorization.k8s.io")
	case len(lacking) > 0:
		return checkAccess.wrong("The ServiceAccount %s may not %s.", account, manifests.List(lacking)).
			do("Apply the roles and bindings in config/rbac of this version.")
	}
	return checkAccess.ok("The ServiceAccount %s has all %d rights of this version.", account, asked)
}
