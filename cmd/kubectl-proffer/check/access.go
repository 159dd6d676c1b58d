package check

import (
	"slices"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
)

const checkAccess Check = "rights"

// neededRights returns what the manifests of this version allow an operator in the namespace, with
// these flags.
func neededRights(namespace string, f flags) ([]manifests.Right, error) {
	files := append([]string{manifests.OperatorRole, "rbac/metrics_auth_role.yaml"}, f.inComponents("role.yaml")...)
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
