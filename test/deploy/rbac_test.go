package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
)

// The test lists every permission of the operator, so that each new one has to be added here.
func TestTheServiceAccountHasExactlyThesePermissions(t *testing.T) {
	const crds = "foreignclusters.core.liqo.io,foreignclusters.discovery.liqo.io," +
		"quotas.offloading.liqo.io,resourceslices.authentication.liqo.io,shadowpods.offloading.liqo.io," +
		"tenants.authentication.liqo.io,virtualnodes.offloading.liqo.io"
	want := []string{
		// Read for offers.
		"cluster: list nodes",
		"cluster: watch nodes",
		"cluster: list pods",
		"cluster: watch pods",
		"cluster: list proffer.dev/resourcepolicies",
		"cluster: watch proffer.dev/resourcepolicies",
		"cluster: list core.liqo.io/foreignclusters",
		"cluster: watch core.liqo.io/foreignclusters",
		"cluster: list discovery.liqo.io/foreignclusters",
		"cluster: watch discovery.liqo.io/foreignclusters",
		"cluster: list authentication.liqo.io/tenants",
		"cluster: watch authentication.liqo.io/tenants",
		"cluster: list offloading.liqo.io/shadowpods",
		"cluster: watch offloading.liqo.io/shadowpods",
		"cluster: list offloading.liqo.io/virtualnodes",
		"cluster: watch offloading.liqo.io/virtualnodes",
		"cluster: list resource.k8s.io/deviceclasses",
		"cluster: watch resource.k8s.io/deviceclasses",
		"cluster: list resource.k8s.io/devicetaintrules",
		"cluster: watch resource.k8s.io/devicetaintrules",
		"cluster: list resource.k8s.io/resourceclaims",
		"cluster: watch resource.k8s.io/resourceclaims",
		"cluster: list resource.k8s.io/resourceslices",
		"cluster: watch resource.k8s.io/resourceslices",
		// Read for answers to slices.
		"cluster: list offloading.liqo.io/quotas",
		"cluster: watch offloading.liqo.io/quotas",
		"cluster: list authentication.liqo.io/resourceslices",
		"cluster: watch authentication.liqo.io/resourceslices",
		"cluster: list namespaces",
		"cluster: watch namespaces",
		"cluster: list storage.k8s.io/storageclasses",
		"cluster: watch storage.k8s.io/storageclasses",
		// Read to notice Liqo's installation.
		"cluster: list apiextensions.k8s.io/customresourcedefinitions " + crds,
		"cluster: watch apiextensions.k8s.io/customresourcedefinitions " + crds,
		// Written by the leader.
		"cluster: update proffer.dev/resourcepolicies/status",
		"cluster: patch authentication.liqo.io/resourceslices/status",
		"cluster: create events.k8s.io/events",
		"cluster: patch events.k8s.io/events",
		// Used to authorize readers of metrics and explanations.
		"cluster: create authentication.k8s.io/tokenreviews",
		"cluster: create authorization.k8s.io/subjectaccessreviews",
		// The record of what was granted. Only the operator may write it.
		"namespace proffer-system: create proffer.dev/grants",
		"namespace proffer-system: delete proffer.dev/grants",
		"namespace proffer-system: get proffer.dev/grants",
		"namespace proffer-system: list proffer.dev/grants",
		"namespace proffer-system: update proffer.dev/grants",
		"namespace proffer-system: watch proffer.dev/grants",
		// The record of what was offered.
		"namespace proffer-system: create configmaps proffer-offered",
		"namespace proffer-system: get configmaps proffer-offered",
		"namespace proffer-system: patch configmaps proffer-offered",
		"namespace proffer-system: update configmaps proffer-offered",
		// Leader election.
		"namespace proffer-system: create coordination.k8s.io/leases",
		"namespace proffer-system: get coordination.k8s.io/leases proffer.dev",
		"namespace proffer-system: update coordination.k8s.io/leases proffer.dev",
		"namespace proffer-system: create events",
		"namespace proffer-system: patch events",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, granted(t)); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}

// The permissions that a component needs are part of the component.
func TestEachComponentAddsExactlyThesePermissions(t *testing.T) {
	want := map[string][]string{
		// The operator writes only RoleBindings of this name, and binds only this role.
		"catalog": {
			"cluster: bind rbac.authorization.k8s.io/clusterroles proffer-offer-viewer",
			"cluster: create proffer.dev/offers",
			"cluster: create rbac.authorization.k8s.io/rolebindings proffer-offers",
			"cluster: delete proffer.dev/offers",
			"cluster: delete rbac.authorization.k8s.io/rolebindings proffer-offers",
			"cluster: get proffer.dev/offers",
			"cluster: get rbac.authorization.k8s.io/rolebindings proffer-offers",
			"cluster: list apiextensions.k8s.io/customresourcedefinitions offers.proffer.dev",
			"cluster: list proffer.dev/offers",
			"cluster: list rbac.authorization.k8s.io/clusterroles proffer-offer-viewer",
			"cluster: list rbac.authorization.k8s.io/rolebindings proffer-offers",
			"cluster: patch rbac.authorization.k8s.io/rolebindings proffer-offers",
			"cluster: update proffer.dev/offers",
			"cluster: update rbac.authorization.k8s.io/rolebindings proffer-offers",
			"cluster: watch apiextensions.k8s.io/customresourcedefinitions offers.proffer.dev",
			"cluster: watch proffer.dev/offers",
			"cluster: watch rbac.authorization.k8s.io/clusterroles proffer-offer-viewer",
			"cluster: watch rbac.authorization.k8s.io/rolebindings proffer-offers",
		},
		// The operator patches spec.disabled and spec.enabled for callers of /api/toggle. It never creates
		// Orchestrations. Of the objects of Liqo, the operator writes only NamespaceOffloadings, of the one name
		// that Liqo reads.
		"orchestrator": {
			"cluster: bind rbac.authorization.k8s.io/clusterroles proffer-provider-choice",
			"cluster: create offloading.liqo.io/namespaceoffloadings",
			"cluster: create rbac.authorization.k8s.io/rolebindings proffer-provider-choice",
			"cluster: delete offloading.liqo.io/namespaceoffloadings offloading",
			"cluster: delete rbac.authorization.k8s.io/rolebindings proffer-provider-choice",
			"cluster: get rbac.authorization.k8s.io/rolebindings proffer-provider-choice",
			"cluster: list apiextensions.k8s.io/customresourcedefinitions orchestrations.proffer.dev,providerchoices.proffer.dev,namespaceoffloadings.offloading.liqo.io,virtualnodes.offloading.liqo.io,connections.networking.liqo.io",
			"cluster: list networking.liqo.io/connections",
			"cluster: list offloading.liqo.io/namespaceoffloadings",
			"cluster: list proffer.dev/orchestrations",
			"cluster: list proffer.dev/providerchoices",
			"cluster: list rbac.authorization.k8s.io/clusterroles proffer-provider-choice",
			"cluster: list rbac.authorization.k8s.io/rolebindings proffer-provider-choice",
			"cluster: patch offloading.liqo.io/namespaceoffloadings offloading",
			"cluster: patch proffer.dev/orchestrations",
			"cluster: patch rbac.authorization.k8s.io/rolebindings proffer-provider-choice",
			"cluster: update proffer.dev/orchestrations/status",
			"cluster: update proffer.dev/providerchoices/status",
			"cluster: update rbac.authorization.k8s.io/rolebindings proffer-provider-choice",
			"cluster: watch apiextensions.k8s.io/customresourcedefinitions orchestrations.proffer.dev,providerchoices.proffer.dev,namespaceoffloadings.offloading.liqo.io,virtualnodes.offloading.liqo.io,connections.networking.liqo.io",
			"cluster: watch networking.liqo.io/connections",
			"cluster: watch offloading.liqo.io/namespaceoffloadings",
			"cluster: watch proffer.dev/orchestrations",
			"cluster: watch proffer.dev/providerchoices",
			"cluster: watch rbac.authorization.k8s.io/clusterroles proffer-provider-choice",
			"cluster: watch rbac.authorization.k8s.io/rolebindings proffer-provider-choice",
		},
		"federation": {
			"cluster: list apiextensions.k8s.io/customresourcedefinitions identities.authentication.liqo.io",
			"cluster: list authentication.liqo.io/identities",
			"cluster: watch apiextensions.k8s.io/customresourcedefinitions identities.authentication.liqo.io",
			"cluster: watch authentication.liqo.io/identities",
		},
		"served-classes": {
			"namespace proffer-system: create proffer.dev/admissionparams proffer-served-classes",
			"namespace proffer-system: list proffer.dev/admissionparams proffer-served-classes",
			"namespace proffer-system: patch proffer.dev/admissionparams proffer-served-classes",
			"namespace proffer-system: watch proffer.dev/admissionparams proffer-served-classes",
		},
		"slice-pod-guard": {
			"cluster: patch namespaces",
			"namespace proffer-system: create proffer.dev/admissionparams proffer-placements",
			"namespace proffer-system: list proffer.dev/admissionparams proffer-placements",
			"namespace proffer-system: patch proffer.dev/admissionparams proffer-placements",
			"namespace proffer-system: watch proffer.dev/admissionparams proffer-placements",
		},
	}
	base := granted(t)
	for _, c := range components(t) {
		more := slices.DeleteFunc(granted(t, c), func(permission string) bool { return slices.Contains(base, permission) })
		if diff := cmp.Diff(want[c], more, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("permissions that %s adds (-want +got):\n%s", c, diff)
		}
	}
}

func TestNothingIsGrantedWithAWildcard(t *testing.T) {
	for _, u := range render(t, components(t)...) {
		if kind := u.GetKind(); kind != "Role" && kind != "ClusterRole" {
			continue
		}
		for _, r := range find[rbacv1.ClusterRole](t, rendered{u}, u.GetKind(), u.GetName()).Rules {
			if slices.Contains(r.NonResourceURLs, "*") || slices.Contains(r.NonResourceURLs, "/*") {
				t.Errorf("%s %s grants %+v", u.GetKind(), u.GetName(), r)
			}
			for _, list := range [][]string{r.APIGroups, r.Resources, r.Verbs} {
				if slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "*") }) {
					t.Errorf("%s %s grants %+v", u.GetKind(), u.GetName(), r)
				}
			}
		}
	}
}

func TestTheRolesForPoliciesAreAggregatedToViewAndAdmin(t *testing.T) {
	objects := render(t, "orchestrator")
	for name, want := range map[string]string{
		"proffer-resourcepolicy-viewer": "view",
		"proffer-resourcepolicy-editor": "admin",
		"proffer-orchestration-viewer":  "view",
		"proffer-orchestration-editor":  "admin",
	} {
		labels := find[rbacv1.ClusterRole](t, objects, "ClusterRole", name).Labels
		for _, role := range []string{"view", "edit", "admin"} {
			if got := labels["rbac.authorization.k8s.io/aggregate-to-"+role] == "true"; got != (role == want) {
				t.Errorf("%s is aggregated to %s: %t", name, role, got)
			}
		}
	}
}

// TestOrchestrationsAreReadAndWrittenWithTheirRoles asks the API server what the roles allow.
func TestOrchestrationsAreReadAndWrittenWithTheirRoles(t *testing.T) {
	applyComponent(t, "orchestrator")
	for _, role := range []string{"viewer", "editor"} {
		create(t, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "deploy-test-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "proffer-orchestration-" + role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role}},
		})
	}
	object := func() *v1alpha1.Orchestration {
		return &v1alpha1.Orchestration{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	}
	viewer, editor := as(t, "viewer"), as(t, "editor")
	test.Eventually(t, func() error { return viewer.List(t.Context(), &v1alpha1.OrchestrationList{}) })
	if err := viewer.Create(t.Context(), object()); !apierrors.IsForbidden(err) {
		t.Errorf("the viewer creates one: %v", err)
	}
	o := object()
	test.Must(t, editor.Create(t.Context(), o))
	remove(t, o)
	o.Spec.Mode = v1alpha1.ModeDryRun
	test.Must(t, editor.Update(t.Context(), o))
	if err := editor.Status().Update(t.Context(), o); !apierrors.IsForbidden(err) {
		t.Errorf("the editor writes the status: %v", err)
	}
	for name, by := range map[string]client.Client{"viewer": viewer, "editor": editor} {
		if err := by.List(t.Context(), &v1alpha1.ResourcePolicyList{}); !apierrors.IsForbidden(err) {
			t.Errorf("the %s reads policies: %v", name, err)
		}
	}
	test.Must(t, viewer.Get(t.Context(), client.ObjectKeyFromObject(o), object()))
	test.Must(t, editor.Delete(t.Context(), o))
}

// bindingsOfPlugin are the ClusterRoleBindings of the accounts that kubectl-proffer calls the operator as.
var bindingsOfPlugin = map[string]struct {
	role     string
	accounts []string
}{
	"proffer-reader":         {"proffer-offers-reader", []string{"proffer-reader"}},
	"proffer-simulator":      {"proffer-simulator", []string{"proffer-simulator"}},
	"proffer-plugin-catalog": {"proffer-catalog-reader", []string{"proffer-reader", "proffer-simulator"}},
	"proffer-plugin-toggle":  {"proffer-toggle-reader", []string{"proffer-reader", "proffer-simulator"}},
}

// TestUsersOfThePluginGetOneTokenAndReachOneService: neither role leads to the operator's own account.
func TestUsersOfThePluginGetOneTokenAndReachOneService(t *testing.T) {
	objects := render(t)
	service := find[corev1.Service](t, objects, "Service", "proffer-metrics")
	proxy := fmt.Sprintf("https:%s:%s", service.Name, service.Spec.Ports[0].Name)
	for account, verbs := range map[string][]string{"reader": {"get"}, "simulator": {"get", "create"}} {
		core := []string{""}
		want := []rbacv1.PolicyRule{
			{APIGroups: core, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"proffer-" + account}, Verbs: []string{"create"}},
			{APIGroups: core, Resources: []string{"services/proxy"}, ResourceNames: []string{proxy}, Verbs: verbs},
		}
		if diff := cmp.Diff(want, find[rbacv1.Role](t, objects, "Role", "proffer-plugin-"+account).Rules); diff != "" {
			t.Errorf("%s: %s", account, diff)
		}
		if a := find[corev1.ServiceAccount](t, objects, "ServiceAccount", "proffer-"+account); ptr.Deref(a.AutomountServiceAccountToken, true) {
			t.Errorf("%s mounts a token into pods", a.Name)
		}
	}
}

// granted returns, sorted, the permissions that the bindings give the operator's ServiceAccount
// with these components.
func granted(t *testing.T, components ...string) []string {
	t.Helper()
	objects := render(t, components...)
	var all []string
	for _, u := range objects {
		if kind := u.GetKind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}
		binding := find[rbacv1.RoleBinding](t, objects, u.GetKind(), u.GetName())
		if want, ofPlugin := bindingsOfPlugin[u.GetName()]; ofPlugin {
			if binding.RoleRef.Name != want.role || !slices.Equal(binding.Subjects, subjects(want.accounts...)) {
				t.Errorf("%s %s gives %s to %+v", u.GetKind(), u.GetName(), binding.RoleRef.Name, binding.Subjects)
			}
			continue
		}
		if !slices.Equal(binding.Subjects, subjects("proffer")) {
			t.Errorf("%s %s has the subjects %+v, want only the operator", u.GetKind(), u.GetName(), binding.Subjects)
		}
		where := "cluster"
		if binding.Namespace != "" {
			where = "namespace " + binding.Namespace
		}
		for _, r := range find[rbacv1.ClusterRole](t, objects, binding.RoleRef.Kind, binding.RoleRef.Name).Rules {
			all = append(all, permissions(where, r)...)
		}
	}
	slices.Sort(all)
	return all
}

// subjects are these ServiceAccounts in the namespace of the operator.
func subjects(accounts ...string) []rbacv1.Subject {
	var all []rbacv1.Subject
	for _, account := range accounts {
		all = append(all, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account})
	}
	return all
}

// permissions splits a rule into single permissions, such as "cluster: list nodes".
func permissions(where string, r rbacv1.PolicyRule) []string {
	var all []string
	for _, url := range r.NonResourceURLs {
		all = append(all, fmt.Sprintf("%s: %s %s", where, strings.Join(r.Verbs, ","), url))
	}
	names := ""
	if len(r.ResourceNames) > 0 {
		names = " " + strings.Join(r.ResourceNames, ",")
	}
	for _, group := range r.APIGroups {
		if group != "" {
			group += "/"
		}
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				all = append(all, fmt.Sprintf("%s: %s %s%s%s", where, verb, group, resource, names))
			}
		}
	}
	return all
}
