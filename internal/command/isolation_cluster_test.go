package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/test"
)

// operatorNamespace is the namespace of the operator in config/default.
const operatorNamespace = "proffer-system"

// etcdLimit is etcd's --max-request-bytes in these clusters: the largest object. It is a sixth of the
// default, so that tests that fill it up do so in a sixth of the time.
const etcdLimit = 256 << 10

// isolationClusters has one cluster with the admission policies of config and one without. Tests
// use them one after the other and leave them empty, so that few API servers start.
var isolationClusters = map[bool]*isolationCluster{false: {}, true: {guarded: true}}

type isolationCluster struct {
	guarded bool
	once    sync.Once
	err     error
	*controlplane.Cluster
}

// isolationClusterOf returns the cluster, and starts it for its first test.
func isolationClusterOf(t *testing.T, guarded bool) *controlplane.Cluster {
	t.Helper()
	c := isolationClusters[guarded]
	c.once.Do(func() { c.err = c.start(t) })
	if c.err != nil {
		t.Fatal(c.err)
	}
	return c.Cluster
}

func (c *isolationCluster) start(t *testing.T) error {
	t.Helper()
	// The cluster outlives the test that starts it.
	ctx := context.WithoutCancel(t.Context())
	var err error
	c.Cluster, err = controlplane.Start(ctx, controlplane.Options{
		Progress: os.Stderr,
		CRDDirs: []string{
			filepath.Join("..", "..", "config", "crd", "bases"),
			controlplane.LiqoCRD(t, "authentication.liqo.io_resourceslices.yaml"),
			controlplane.LiqoCRD(t, "authentication.liqo.io_tenants.yaml"),
			shadowPodCRD(t),
		},
		EtcdFlags: map[string][]string{"max-request-bytes": {strconv.Itoa(etcdLimit)}},
	})
	if err != nil {
		return err
	}
	test.AtEnd(c.Stop)
	admin, err := client.New(c.Config, client.Options{Scheme: newScheme(t)})
	if err != nil {
		return err
	}
	for _, o := range c.objects(t) {
		if err := admin.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// shadowPodCRD returns a file with Liqo's definition of ShadowPods, without its schema, which is larger than
// etcdLimit.
func shadowPodCRD(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(controlplane.LiqoCRD(t, "offloading.liqo.io_shadowpods.yaml"))
	test.Must(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	test.Must(t, yaml.Unmarshal(text, &crd))
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: new(true),
		}
	}
	text, err = yaml.Marshal(crd)
	test.Must(t, err)
	file := filepath.Join(t.TempDir(), "shadowpods.yaml")
	test.Must(t, os.WriteFile(file, text, 0o600))
	return file
}

// objects returns what the cluster has before a test: namespaces, the roles that Liqo gives
// consumers, and the guards.
func (c *isolationCluster) objects(t *testing.T) []client.Object {
	t.Helper()
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}}
	for _, id := range []string{"rome", "oslo"} {
		objects = append(objects, tenantNamespaceOf(id))
		objects = append(objects, consumerRole(t, id)...)
	}
	if c.guarded {
		for _, list := range []string{"proffer-served-classes", "proffer-placements"} {
			objects = append(objects, &v1alpha1.AdmissionParams{
				ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: list},
			})
		}
		objects = append(objects, guards(t)...)
	}
	return objects
}

func tenantNamespaceOf(id string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(id), Labels: map[string]string{
		"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": id,
	}}}
}

// consumerRole returns the rights in its tenant namespace that Liqo's chart gives a consumer.
func consumerRole(t *testing.T, id string) []client.Object {
	t.Helper()
	text := test.Read(t, controlplane.LiqoFile(t, "files/liqo-remote-controlplane-ClusterRole.yaml"))
	var r rbacv1.ClusterRole
	test.Must(t, yaml.UnmarshalStrict([]byte(text), &r))
	name := metav1.ObjectMeta{Namespace: namespaceOf(id), Name: "liqo-remote-controlplane"}
	return []client.Object{
		&rbacv1.Role{ObjectMeta: name, Rules: r.Rules},
		&rbacv1.RoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: id}},
		},
	}
}

// guards returns all admission policies in config.
func guards(t *testing.T) []client.Object {
	t.Helper()
	var out []client.Object
	found := map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", "..", "config"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for part := range strings.SplitSeq(string(text), "\n---\n") {
			var value any
			if err := yaml.Unmarshal([]byte(part), &value); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			u := &unstructured.Unstructured{}
			u.Object, _ = value.(map[string]any) // A list of patches has no kind.
			switch u.GetKind() {
			case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
				found[u.GetName()] = true
				out = append(out, u)
			}
		}
		return nil
	})
	test.Must(t, err)
	for _, name := range []string{"proffer-slice-status-guard", "proffer-served-classes"} {
		if !found[name] {
			t.Fatalf("config has no %s", name)
		}
	}
	return out
}

// asConsumer returns a client with the identity that Liqo's control plane gives the consumer.
func asConsumer(t *testing.T, config *rest.Config, id string) client.Client {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: id, Groups: []string{"liqo.io"}}
	config.UserAgent = "crd-replicator-of-" + id
	c, err := client.New(config, client.Options{Scheme: newScheme(t)})
	test.Must(t, err)
	return c
}

// emptyTimeout bounds what empty takes. An API server deletes a collection one object after the other: what a
// flood leaves takes 10 s, and more than a minute beside the tests of other packages.
const emptyTimeout = 4 * time.Minute

// empty deletes everything that tests and the operator create, whatever its finalizers.
func empty(ctx context.Context, config *rest.Config, admin client.Client) error {
	deadline, cancel := context.WithTimeout(ctx, emptyTimeout)
	defer cancel()
	kinds := []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Node"),
		authv1beta1.GroupVersion.WithKind("ResourceSlice"), authv1beta1.GroupVersion.WithKind("Tenant"),
		liqo.ShadowPods.GroupVersion().WithKind("ShadowPod"),
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
	}
	own, err := ownKinds(config)
	if err != nil {
		return err
	}
	var errs []error
	for _, kind := range append(own, kinds...) {
		errs = append(errs, emptyKind(deadline, admin, kind))
	}
	list := &v1alpha1.AdmissionParams{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "proffer-served-classes"},
	}
	errs = append(errs, client.IgnoreNotFound(admin.Patch(deadline, list, patchOf(object{"data": nil}))))
	return errors.Join(errs...)
}

// ownKinds returns the kinds of the operator's own API group, but for AdmissionParams: without these,
// the guards refuse even admins.
func ownKinds(config *rest.Config) ([]schema.GroupVersionKind, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	resources, err := d.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil {
		return nil, err
	}
	var kinds []schema.GroupVersionKind
	for _, r := range resources.APIResources {
		if !strings.Contains(r.Name, "/") && r.Kind != "AdmissionParams" {
			kinds = append(kinds, v1alpha1.GroupVersion.WithKind(r.Kind))
		}
	}
	return kinds, nil
}

func emptyKind(ctx context.Context, admin client.Client, kind schema.GroupVersionKind) error {
	for {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := admin.List(ctx, &list); err != nil {
			if meta.IsNoMatchError(err) {
				return nil
			}
			return fmt.Errorf("emptying %s: %w", kind.Kind, err)
		}
		if kind.Kind == "Lease" || kind.Kind == "Event" {
			list.Items = inNamespaces(list.Items, operatorNamespace, namespaceOf("rome"), namespaceOf("oslo"))
		}
		if len(list.Items) == 0 {
			return nil
		}
		if err := removeAll(ctx, admin, list.Items); err != nil {
			return fmt.Errorf("emptying %s: %w", kind.Kind, err)
		}
	}
}

// removeAll deletes everything of the kind of these objects in their namespaces, by one request each: one by one,
// what a flood of slices leaves takes minutes.
func removeAll(ctx context.Context, admin client.Client, items []unstructured.Unstructured) error {
	namespaces := map[string]struct{}{}
	for i := range items {
		if err := dropFinalizers(ctx, admin, &items[i]); err != nil {
			return err
		}
		namespaces[items[i].GetNamespace()] = struct{}{}
	}
	for namespace := range namespaces {
		err := admin.DeleteAllOf(ctx, &items[0], client.InNamespace(namespace), client.GracePeriodSeconds(0))
		if err != nil {
			return err
		}
	}
	return nil
}

func inNamespaces(items []unstructured.Unstructured, namespaces ...string) []unstructured.Unstructured {
	var out []unstructured.Unstructured
	for _, u := range items {
		for _, namespace := range namespaces {
			if u.GetNamespace() == namespace {
				out = append(out, u)
			}
		}
	}
	return out
}

// remove deletes an object at once, whatever its finalizers. A missing object is not an error.
func remove(ctx context.Context, admin client.Client, o client.Object) error {
	if err := dropFinalizers(ctx, admin, o); err != nil {
		return err
	}
	return client.IgnoreNotFound(admin.Delete(ctx, o, client.GracePeriodSeconds(0)))
}

func dropFinalizers(ctx context.Context, admin client.Client, o client.Object) error {
	if len(o.GetFinalizers()) == 0 {
		return nil
	}
	err := admin.Patch(ctx, o, patchOf(object{"metadata": object{"finalizers": nil}}))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsInvalid(err) {
		return err
	}
	return nil
}
