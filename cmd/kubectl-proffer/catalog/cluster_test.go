package catalog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/exit"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/operatortest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// The namespaces of this cluster for its provider, and of the provider for this cluster. One API server
// is both.
const (
	atConsumer = "liqo-tenant-milan"
	atProvider = operatortest.TenantNamespace
)

// newPeering makes what Liqo v1.2.0 keeps for a provider that knows this cluster as user rome.
func newPeering(t *testing.T) {
	t.Helper()
	kubetest.Install(t, "testdata/identities-crd.yaml")
	for _, name := range []string{atConsumer, atProvider} {
		ns := &corev1.Namespace{}
		ns.Name = name
		if err := client.IgnoreAlreadyExists(kubetest.API(t).Create(t.Context(), ns)); err != nil { // It cannot be removed here.
			t.Fatal(err)
		}
	}
	newSecret(t, "kubeconfig-controlplane-milan", atProvider, map[string][]byte{"kubeconfig": kubeconfigOf(t, "rome")})
	newIdentity(t, "controlplane-milan", "milan", "ControlPlane", "kubeconfig-controlplane-milan")
	newIdentity(t, "resourceslice-mine", "milan", "ResourceSlice", "kubeconfig-resourceslice-mine")
}

func newIdentity(t *testing.T, name, provider, kind, secret string) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.liqo.io/v1beta1", "kind": "Identity", "metadata": map[string]any{"namespace": atConsumer, "name": name},
		"spec": map[string]any{"clusterID": provider, "type": kind},
	}}
	if secret != "" {
		u.Object["status"] = map[string]any{"kubeconfigSecretRef": map[string]any{"name": secret}}
	}
	kubetest.Create(t, u)
}

// kubeconfigOf returns a kubeconfig with a client certificate of a user, as Liqo writes it.
func kubeconfigOf(t *testing.T, user string) []byte {
	t.Helper()
	config, err := kubetest.Cluster(t).UserConfig(user)
	test.Must(t, err)
	return controlplane.KubeconfigOf(t, config)
}

// publish lets user rome read Offers, and creates some.
func publish(t *testing.T) {
	t.Helper()
	allow(t, atProvider, "rome", `{apiGroups: [proffer.dev], resources: [offers], verbs: [get, list, watch]}`)
	offers := operatortest.ProviderOffers(time.Now())
	for i := range offers {
		kubetest.Create(t, &offers[i])
	}
}

// call runs the command as a user, and returns what it printed and its exit status.
func call(t *testing.T, user string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	test.Must(t, os.WriteFile(file, kubeconfigOf(t, user), 0o600))
	config := genericclioptions.NewConfigFlags(false)
	config.KubeConfig = &file
	var out, errOut bytes.Buffer
	cmd := NewCommand(operatorclient.NewFlags(config), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut})
	cmd.SetArgs(append([]string{}, args...)) // Nil stands for those of the test.
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	status, printed := exit.Of(cmd, err)
	if printed {
		errOut.WriteString(err.Error())
	}
	return out.String(), errOut.String(), status
}

// The rights of the page are enough, and none of them can be left out.
func TestTheRightsOfThePageAreThoseThatTheCommandNeeds(t *testing.T) {
	newPeering(t)
	publish(t)
	expect := func(want string, wantStatus int) {
		t.Helper()
		test.Eventually(t, func() string { // The API server learns of roles and CRDs a moment later.
			stdout, stderr, status := call(t, "alice")
			if !strings.Contains(stdout+stderr, want) || status != wantStatus {
				return stdout + stderr
			}
			return ""
		})
	}
	expect("you may not list identities.authentication.liqo.io in this cluster", 3)
	for i, object := range objectsOfPage(t) {
		kubetest.Create(t, object)
		if i == 1 {
			expect("milan: you may not get Secret kubeconfig-controlplane-milan in namespace "+atConsumer, 1)
		}
	}
	expect("--class gold --cpu 3500m --memory 18Gi --pods 106", 0)
}

// objectsOfPage returns what the commands of the page create.
func objectsOfPage(t *testing.T) (all []*unstructured.Unstructured) {
	t.Helper()
	c := kubetest.Cluster(t)
	for _, command := range regexp.MustCompile(`(?m)^\$ kubectl (.* ?create .*)$`).FindAllStringSubmatch(readPage(t), -1) {
		args := append(strings.Fields(command[1]), "--dry-run=client", "--output=yaml")
		text, err := test.Kubectl(t.Context(), filepath.Join(c.Assets, "kubectl"), c.KubeconfigFile(t), "", args...)
		test.Must(t, err)
		all = append(all, objects(t, text)...)
	}
	if len(all) != 4 {
		t.Fatalf("%d objects, want two roles and their bindings", len(all))
	}
	return all
}

// objects parses a manifest.
func objects(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	all, err := controlplane.ParseObjects([]byte(manifest))
	test.Must(t, err)
	return all
}

// What Liqo has not finished, or would not use, harms only its own provider.
func TestAnIdentityThatCannotBeUsedIsReported(t *testing.T) {
	newPeering(t)
	publish(t)
	for _, object := range objectsOfPage(t) {
		kubetest.Create(t, object)
	}
	newIdentity(t, "controlplane-bern", "bern", "ControlPlane", "")
	newIdentity(t, "controlplane-oslo", "oslo", "ControlPlane", "kubeconfig-1")
	newIdentity(t, "controlplane-oslo-again", "oslo", "ControlPlane", "kubeconfig-2")
	newIdentity(t, "controlplane-paris", "Paris; reboot", "ControlPlane", "kubeconfig-paris")
	newSecret(t, "kubeconfig-lyon", "", nil)
	newIdentity(t, "controlplane-lyon", "lyon", "ControlPlane", "kubeconfig-lyon")
	newSecret(t, "kubeconfig-zurich", atProvider, map[string][]byte{"awsAccessKeyID": []byte("key")})
	newIdentity(t, "controlplane-zurich", "zurich", "ControlPlane", "kubeconfig-zurich")
	newSecret(t, "kubeconfig-turin", atProvider, map[string][]byte{"kubeconfig": kubeconfigOf(t, "nobody")})
	newIdentity(t, "controlplane-turin", "turin", "ControlPlane", "kubeconfig-turin")
	allow(t, atConsumer, "alice", `{apiGroups: [""], resources: [secrets], resourceNames: [kubeconfig-lyon, kubeconfig-zurich, kubeconfig-turin], verbs: [get]}`)

	want := []string{
		"warning: Paris; reboot: its cluster ID is not one of Liqo v1",
		"warning: bern: Liqo has not written its kubeconfig yet",
		"warning: lyon: its Secret kubeconfig-lyon has no tenant namespace in annotation liqo.io/remote-tenant-namespace",
		"warning: oslo: namespace liqo-tenant-milan has one of 2 identities for it, and Liqo uses none of them",
		"warning: oslo: namespace liqo-tenant-milan has one of 2 identities for it, and Liqo uses none of them",
		"warning: turin: it publishes no catalog to this cluster",
		"warning: zurich: its identity is one of AWS IAM, which cannot be used",
		"",
	}
	test.Eventually(t, func() string {
		stdout, stderr, status := call(t, "alice")
		if !strings.Contains(stdout, "--remote-cluster-id milan --class gold ") || strings.Contains(stdout, "reboot") || status != 1 {
			return stdout + stderr
		}
		return cmp.Diff(want, strings.Split(stderr, "\n"))
	})
}

func newSecret(t *testing.T, name, namespace string, data map[string][]byte) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: atConsumer, Name: name}, Data: data}
	if namespace != "" {
		secret.Annotations = map[string]string{liqo.RemoteTenantNamespaceAnnotation: namespace}
	}
	kubetest.Create(t, secret)
}

// allow gives a user the rights of a rule in a namespace.
func allow(t *testing.T, namespace, user, rule string) {
	t.Helper()
	const manifest = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: %[1]s, name: %[2]s-more}
rules: [%[3]s]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %[1]s, name: %[2]s-more}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[2]s-more}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[2]s}]
`
	for _, object := range objects(t, fmt.Sprintf(manifest, namespace, user, rule)) {
		kubetest.Create(t, object)
	}
}

// The Roles let the operator get the Secrets of the identities, and no others.
func TestTheRolesOfTheOperatorAreForTheSecretsOfIdentities(t *testing.T) {
	newPeering(t)
	newIdentity(t, "controlplane-bern", "bern", "ControlPlane", "")
	newSecret(t, "other", "", nil)
	for _, object := range objectsOfPage(t)[:2] {
		kubetest.Create(t, object)
	}
	var stdout, stderr string
	test.Eventually(t, func() string {
		var status int
		if stdout, stderr, status = call(t, "alice", "--roles"); status != 0 {
			return stderr
		}
		return ""
	})
	if want := "warning: bern: Liqo has not written its kubeconfig yet\nwarning: the Roles of identities that are gone are not known: roles.rbac"; !strings.HasPrefix(stderr, want) {
		t.Errorf("it says %s", stderr)
	}
	roles := objects(t, strings.TrimPrefix(stdout, "---\n"))
	for _, object := range roles {
		kubetest.Create(t, object)
	}
	testFormerRoles(t, roles)
	reviews, err := authorizationv1client.NewForConfig(kubetest.Cluster(t).Config)
	test.Must(t, err)
	review := func(secret, verb string) bool {
		r, err := reviews.SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:proffer-system:proffer", ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: verb, Resource: "secrets", Namespace: atConsumer, Name: secret,
			},
		}}, metav1.CreateOptions{})
		test.Must(t, err)
		return r.Status.Allowed
	}
	test.Eventually(t, func() string {
		if !review("kubeconfig-controlplane-milan", "get") {
			return "the operator may not get the Secret"
		}
		return ""
	})
	for _, verb := range []string{"get", "list", "watch", "update"} {
		if review("other", verb) || review("", verb) || verb != "get" && review("kubeconfig-controlplane-milan", verb) {
			t.Errorf("the operator may %s too much", verb)
		}
	}
}

// testFormerRoles makes the same Roles in a namespace without an identity, and deletes them as is printed.
func testFormerRoles(t *testing.T, roles []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range roles {
		object = object.DeepCopy()
		object.SetNamespace("default")
		object.SetResourceVersion("")
		test.Must(t, kubetest.API(t).Create(t.Context(), object))
		other := object.DeepCopy() // It is somebody else's.
		other.SetResourceVersion("")
		other.SetName("other")
		kubetest.Create(t, other)
	}
	warnings := func() []string {
		_, stderr, status := call(t, "admin", "--roles")
		if status != 0 {
			t.Fatal(stderr)
		}
		return strings.Split(stderr, "\n")
	}
	allowAdmin(t)
	var command string
	test.Eventually(t, func() string {
		all := warnings()
		var found bool
		if _, command, found = strings.Cut(all[1], "warning: no identity is left in namespace default: kubectl "); !found || len(all) != 3 {
			return strings.Join(all, "\n")
		}
		return ""
	})
	c := kubetest.Cluster(t)
	_, err := test.Kubectl(t.Context(), filepath.Join(c.Assets, "kubectl"), c.KubeconfigFile(t), "", strings.Fields(command)...)
	test.Must(t, err)
	if all := warnings(); len(all) != 2 {
		t.Errorf("after %s: %s", command, all)
	}
}

// allowAdmin lets user admin list identities and Roles.
func allowAdmin(t *testing.T) {
	t.Helper()
	for _, object := range objects(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: catalog-admin}
rules:
- {apiGroups: [authentication.liqo.io], resources: [identities], verbs: [list]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: catalog-admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: catalog-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: admin}]
`) {
		kubetest.Create(t, object)
	}
}
