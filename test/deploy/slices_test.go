package deploy

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

// tenantNamespace is where the slices of the consumer rome are.
const tenantNamespace = "liqo-tenant-rome"

// peering has clients for the users of a cluster that provides to rome, with Liqo's kind, tenant
// namespace and roles.
type peering struct {
	// rome is the consumer's crd-replicator, manager Liqo's controller-manager, operator Proffer.
	// admin may do anything.
	rome, manager, operator, admin client.Client
}

func newPeering(t *testing.T) *peering {
	t.Helper()
	test.Must(t, authv1beta1.AddToScheme(scheme.Scheme))
	liqoCRD(t, "authentication.liqo.io_resourceslices.yaml")
	// The namespace may exist: it cannot be deleted here, because no controller finalizes it.
	if err := cluster.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   tenantNamespace,
		Labels: map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": "rome"},
	}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	const (
		manager  = "system:serviceaccount:liqo:liqo-controller-manager"
		operator = "system:serviceaccount:" + namespace + ":proffer"
	)
	role(t, "liqo-remote-controlplane", rulesOf(t, "liqo-remote-controlplane"), "rome")
	role(t, "liqo-controller-manager", rulesOf(t, "liqo-controller-manager"), manager)
	role(t, "deploy-test-answers", []rbacv1.PolicyRule{
		{
			APIGroups: []string{authv1beta1.GroupVersion.Group},
			Resources: []string{"resourceslices", "resourceslices/status"},
			Verbs:     []string{"get", "update"},
		},
	}, operator)
	p := &peering{rome: as(t, "rome", "liqo.io"), manager: as(t, manager), operator: as(t, operator),
		admin: cluster.client}
	p.awaitGuards(t)
	return p
}

// rulesOf returns the rules of this role in Liqo's chart.
func rulesOf(t *testing.T, role string) []rbacv1.PolicyRule {
	t.Helper()
	text := test.Read(t, controlplane.LiqoFile(t, "files/"+role+"-ClusterRole.yaml"))
	var r rbacv1.ClusterRole
	test.Must(t, yaml.UnmarshalStrict([]byte(text), &r))
	return r.Rules
}

// role binds the user to a role in the tenant namespace until the end of the test.
func role(t *testing.T, name string, rules []rbacv1.PolicyRule, user string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: tenantNamespace, Name: name}
	create(t, &rbacv1.Role{ObjectMeta: meta, Rules: rules})
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

func as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	config := rest.CopyConfig(cluster.rest)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	c, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	test.Must(t, err)
	return c
}

// aSlice returns the replica of a consumer's slice, as crd-replicator creates it.
func aSlice(name, class string) *authv1beta1.ResourceSlice {
	return &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: tenantNamespace, Name: name,
			Labels: map[string]string{
				"liqo.io/replication": "false", "liqo.io/replicated": "true", "liqo.io/originID": "rome",
				"liqo.io/remote-cluster-id": "rome", "liqo.io/remoteID": "provider",
			},
			Annotations: map[string]string{"liqo.io/create-virtual-node": "true"},
		},
		Spec: authv1beta1.ResourceSliceSpec{
			Class:             authv1beta1.ResourceSliceClass(class),
			ConsumerClusterID: new(corev1beta1.ClusterID("rome")),
			ProviderClusterID: new(corev1beta1.ClusterID("provider")),
			Resources:         corev1.ResourceList{"cpu": resource.MustParse("8")},
		},
	}
}

// tryCreate returns the error of a dry-run create.
func tryCreate(t *testing.T, by client.Client, s *authv1beta1.ResourceSlice) error {
	t.Helper()
	return by.Create(t.Context(), s, client.DryRunAll)
}

// createSlice creates a slice, which is deleted at the end of the test, or returns the error.
func createSlice(t *testing.T, by client.Client, s *authv1beta1.ResourceSlice) error {
	t.Helper()
	err := by.Create(t.Context(), s)
	if err == nil {
		remove(t, s)
	}
	return err
}

// edit updates the current slice, and returns the error.
func edit(t *testing.T, by client.Client, name string, change func(*authv1beta1.ResourceSlice)) error {
	t.Helper()
	return write(t, by, name, change, func(s *authv1beta1.ResourceSlice) error { return by.Update(t.Context(), s) })
}

func editStatus(t *testing.T, by client.Client, name string, change func(*authv1beta1.ResourceSlice)) error {
	t.Helper()
	update := func(s *authv1beta1.ResourceSlice) error { return by.Status().Update(t.Context(), s) }
	return write(t, by, name, change, update)
}

func write(
	t *testing.T, by client.Client, name string,
	change func(*authv1beta1.ResourceSlice), update func(*authv1beta1.ResourceSlice) error,
) error {
	t.Helper()
	for {
		var s authv1beta1.ResourceSlice
		if err := by.Get(t.Context(), client.ObjectKey{Namespace: tenantNamespace, Name: name}, &s); err != nil {
			return err
		}
		change(&s)
		if err := update(&s); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// applyComponent applies config/default with the component until the end of the test.
func applyComponent(t *testing.T, component string) {
	t.Helper()
	applyOverlay(t, overlay(t, component))
}

// applied are the objects that applyOverlay has applied, by directory, as the API server has them.
var applied = map[string]rendered{}

// applyOverlay applies an overlay of config/default until the end of the test.
func applyOverlay(t *testing.T, dir string) {
	t.Helper()
	key := func(u *unstructured.Unstructured) string {
		if clusterScoped(t, u) {
			return u.GetKind() + "/" + u.GetName()
		}
		return u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()
	}
	base := map[string]*unstructured.Unstructured{}
	for _, u := range render(t) {
		base[key(u)] = u
	}
	var changed, originals rendered
	for _, u := range renderAt(t, dir) {
		if was := base[key(u)]; was == nil || !reflect.DeepEqual(was, u) {
			changed = append(changed, u)
			if was != nil {
				originals = append(originals, was)
			}
		}
	}
	before := stored(t, originals)
	t.Cleanup(func() { put(t, cluster.client, before) })
	for _, u := range changed {
		if base[key(u)] == nil {
			remove(t, u)
		}
	}
	if applied[dir] == nil {
		mustKubectl(t, "apply", "-f", writeObjects(t, t.TempDir(), changed))
		applied[dir] = stored(t, changed)
		return
	}
	put(t, cluster.client, applied[dir])
}

// clusterScoped reports whether objects of this kind have no namespace.
func clusterScoped(t *testing.T, u *unstructured.Unstructured) bool {
	t.Helper()
	namespaced, err := cluster.client.IsObjectNamespaced(u)
	test.Must(t, err)
	return !namespaced
}

// applyPolicy creates a policy until the end of the test.
func applyPolicy(t *testing.T, name, spec string) {
	t.Helper()
	text := fmt.Sprintf("apiVersion: proffer.dev/v1alpha1\nkind: ResourcePolicy\nmetadata: {name: %s}\nspec: %s\n",
		name, spec)
	policy := &unstructured.Unstructured{}
	test.Must(t, yaml.UnmarshalStrict([]byte(text), &policy.Object))
	test.Must(t, cluster.client.Create(t.Context(), policy, client.FieldValidation(metav1.FieldValidationStrict)))
	remove(t, policy)
}

// deleteGrants deletes all Grants at the end of the test.
func deleteGrants(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		test.Check(t, cluster.client.DeleteAllOf(ctx, &v1alpha1.Grant{}, client.InNamespace(namespace)))
	})
}

// createAuthenticated creates the slice as rome, and authenticates it as Liqo does.
func createAuthenticated(t *testing.T, p *peering, s *authv1beta1.ResourceSlice) {
	t.Helper()
	test.Must(t, createSlice(t, p.rome, s))
	authenticate(t, p, s.Name)
}

func authenticate(t *testing.T, p *peering, name string) {
	t.Helper()
	test.Must(t, editStatus(t, p.manager, name, func(s *authv1beta1.ResourceSlice) {
		s.Status.Conditions = []authv1beta1.ResourceSliceCondition{{
			Type: authv1beta1.ResourceSliceConditionTypeAuthentication, Status: authv1beta1.ResourceSliceConditionAccepted,
		}}
	}))
}
