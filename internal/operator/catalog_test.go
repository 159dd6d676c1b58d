package operator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	core "proffer.dev/proffer/internal/catalog"
	"proffer.dev/proffer/internal/controllers/catalog"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// publishing has the operator publish the catalog, with the subjects of these templates.
func publishing(t *testing.T, qps int, templates ...string) func(*parts) {
	t.Helper()
	if len(templates) == 0 {
		templates = []string{catalog.DefaultSubject}
	}
	p := Tenants{QPS: qps}
	for _, template := range templates {
		subject, err := catalog.ParseSubject(template)
		test.Must(t, err)
		p.Subjects = append(p.Subjects, subject)
	}
	return func(o *parts) { o.PublishOffers, o.Tenants = true, p }
}

// rbac returns a client that knows the kinds of RBAC and of Events.
func rbac(t testing.TB) client.WithWatch {
	t.Helper()
	scheme := kubetest.Scheme()
	for _, add := range []error{rbacv1.AddToScheme(scheme), eventsv1.AddToScheme(scheme)} {
		if add != nil {
			t.Fatal(add)
		}
	}
	api, err := client.NewWithWatch(kubetest.Cluster(t).Config, client.Options{Scheme: scheme})
	test.Must(t, err)
	return api
}

// installCatalog creates the roles of the component, for a user with no other rights in their place:
// it returns the configuration of an operator that has these rights and those of the default manifests.
func installCatalog(t *testing.T) *rest.Config {
	t.Helper()
	config, err := kubetest.Cluster(t).UserConfig("operator-with-catalog")
	test.Must(t, err)
	installRoles(t, "../../config/rbac/role.yaml", "../../config/components/catalog/role.yaml")
	return config
}

// createAs creates an object until the end of the test.
func createAs(t *testing.T, api client.Client, object client.Object) {
	t.Helper()
	test.Must(t, api.Create(t.Context(), object))
	nodestest.DeleteAfter(t, api, object)
}

func readObjects(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := controlplane.ReadObjects(file)
	test.Must(t, err)
	return objects
}

// installRoles creates the roles in the files, and binds those of the operator to its user.
func installRoles(t *testing.T, files ...string) {
	t.Helper()
	api := rbac(t)
	create := func(object client.Object) {
		t.Helper()
		createAs(t, api, object)
	}
	for _, file := range files {
		for _, u := range readObjects(t, file) {
			if !strings.HasPrefix(u.GetKind(), "ClusterRole") || u.GetKind() == "ClusterRoleBinding" {
				continue
			}
			create(u)
			if u.GetName() == catalog.OfferBinding.ClusterRole || u.GetName() == catalog.ChoiceBinding.ClusterRole {
				continue
			}
			create(&rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: u.GetName()},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: u.GetName()},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "operator-with-catalog"}},
			})
		}
	}
	// The Grants and the record of what was offered are in the namespace of the test.
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "operator-with-catalog", Namespace: metav1.NamespaceDefault},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"proffer.dev"}, Resources: []string{"grants"}, Verbs: []string{"*"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
		},
	}
	create(role)
	create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: role.Namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "operator-with-catalog"}},
	})
}

// newTenant creates the namespace of a consumer as Liqo labels it, with a Tenant.
func newTenant(t *testing.T, namespace, consumer string) *unstructured.Unstructured {
	t.Helper()
	labels := map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": consumer}
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}
	// A namespace is never gone without its controller, so tests reuse it.
	if err := kubetest.API(t).Create(t.Context(), n); err != nil {
		kubetest.Edit(t, n, func(o client.Object) { o.SetLabels(labels) }, kubetest.WriteSpec)
	}
	t.Cleanup(func() {
		unlabel := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))
		test.Check(t, kubetest.API(t).Patch(context.WithoutCancel(t.Context()), n, unlabel))
		test.Check(t, removePublished(context.WithoutCancel(t.Context()), rbac(t), namespace))
	})
	return newTenantIn(t, namespace, "tenant", consumer)
}

// removePublished removes what the Tenant and the ClusterRole of a namespace own: no controller collects it.
func removePublished(ctx context.Context, api client.Client, namespace string) error {
	return errors.Join(api.DeleteAllOf(ctx, &v1alpha1.Offer{}, client.InNamespace(namespace)),
		api.DeleteAllOf(ctx, &rbacv1.RoleBinding{}, client.InNamespace(namespace)))
}

func newTenantIn(t *testing.T, namespace, name, consumer string) *unstructured.Unstructured {
	t.Helper()
	return kubetest.Create(t, kubetest.Tenant(t, namespace, name, consumer, nil))
}

// offersIn is offersOf the control plane of all tests.
func offersIn(t testing.TB) map[string]string {
	t.Helper()
	return offersOf(t, kubetest.API(t))
}

// offersOf returns what is available of cpu, by namespace and class.
func offersOf(t testing.TB, api client.Client) map[string]string {
	t.Helper()
	var all v1alpha1.OfferList
	test.Must(t, api.List(t.Context(), &all))
	found := map[string]string{}
	for _, o := range all.Items {
		cpu := o.Status.Available[corev1.ResourceCPU]
		found[o.Namespace+"/"+o.Name] = cpu.String()
	}
	return found
}

// awaitOffersIn waits until there are exactly these Offers.
func awaitOffersIn(t *testing.T, want map[string]string) {
	t.Helper()
	test.Eventually(t, func() string { return cmp.Diff(want, offersIn(t)) })
}

// awaitBindings waits until the namespaces with a RoleBinding of ours are these.
func awaitBindings(t *testing.T, want ...string) {
	t.Helper()
	api := rbac(t)
	test.Eventually(t, func() string {
		var all rbacv1.RoleBindingList
		if err := api.List(t.Context(), &all); err != nil {
			return err.Error()
		}
		found := map[string]bool{}
		for _, b := range all.Items {
			if b.Name == catalog.OfferBinding.Name {
				found[b.Namespace] = true
			}
		}
		return cmp.Diff(want, slices.Sorted(maps.Keys(found)))
	})
}

func withLiqo(t *testing.T) {
	t.Helper()
	kubetest.Keep(t, controlplane.LiqoCRD(t, "authentication.liqo.io_tenants.yaml"))
}

// TestEachConsumerReadsItsOffersAndNothingElse runs the operator with exactly the rights of the
// manifests, and reads with the user that Liqo creates for a consumer.
func TestEachConsumerReadsItsOffersAndNothingElse(t *testing.T) {
	withLiqo(t)
	config := installCatalog(t)
	rome, oslo := newTenant(t, "liqo-tenant-rome", "rome"), newTenant(t, "liqo-tenant-oslo", "oslo")
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "4", "memory", "8Gi", "pods", "10"), inClass("gold")))
	hidden := kubetest.Create(t, kubetest.Policy("silver", kubetest.Fixed("cpu", "2", "memory", "8Gi", "pods", "10"), inClass("silver"), kubetest.ForIDs("rome")))
	launchOperator(t, config, publishing(t, catalog.DefaultQPS, catalog.DefaultSubject, "Group:iam:{clusterID}"))
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "4", "liqo-tenant-rome/silver": "2", "liqo-tenant-oslo/gold": "4"})
	awaitBindings(t, "liqo-tenant-oslo", "liqo-tenant-rome")

	var offer v1alpha1.Offer
	test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKey{Namespace: "liqo-tenant-rome", Name: "gold"}, &offer))
	if owners := offer.OwnerReferences; len(owners) != 1 || owners[0].UID != rome.GetUID() || owners[0].Kind != "Tenant" {
		t.Errorf("the Offer is owned by %+v", owners)
	}
	if valid := offer.Status.ValidUntil.Sub(offer.Status.ObservedTime.Time); valid != core.Validity {
		t.Errorf("the Offer is valid for %v", valid)
	}
	for _, identity := range []struct{ user, group string }{{"rome", "liqo.io"}, {"someone", "iam:rome"}} {
		t.Run(identity.user, func(t *testing.T) { requireReadOnly(t, identity.user, identity.group) })
	}

	kubetest.Edit(t, hidden, func(o client.Object) {
		o.(*v1alpha1.ResourcePolicy).Spec.Catalog = &v1alpha1.Catalog{Hidden: true}
	}, kubetest.WriteSpec)
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "4", "liqo-tenant-oslo/gold": "4"})
	kubetest.Edit(t, oslo, func(o client.Object) {
		kubetest.SetField(o, string(authv1beta1.TenantConditionDrained), "spec", "tenantCondition")
	},
		kubetest.WriteSpec)
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "4"})
	awaitBindings(t, "liqo-tenant-rome")
	kubetest.Edit(t, rome, func(o client.Object) {
		kubetest.SetField(o, string(authv1beta1.TenantConditionCordoned), "spec", "tenantCondition")
	},
		kubetest.WriteSpec)
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "0"})
	kubetest.Remove(t, rome)
	awaitOffersIn(t, map[string]string{})
	awaitBindings(t)
}

func TestAnOfferStaysWhileItsPolicyIsReplaced(t *testing.T) {
	withLiqo(t)
	config, api := installCatalog(t), kubetest.API(t)
	newTenant(t, "liqo-tenant-rome", "rome")
	policy := kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "4"), inClass("gold")))
	launch := func() *operator {
		return launchOperator(t, config, publishing(t, catalog.DefaultQPS), func(p *parts) { p.replaceGrace = time.Minute })
	}
	o := launch()
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "4"})
	o.stop()
	gold := &v1alpha1.Offer{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "gold"}}
	test.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(gold), gold))
	// It is old enough to be written again at once.
	gold.Status.ObservedTime.Time = gold.Status.ObservedTime.Add(-time.Minute)
	gold.Status.ValidUntil.Time = gold.Status.ObservedTime.Add(core.Validity)
	test.Must(t, api.Update(t.Context(), gold))
	o = launch()
	test.Eventually(t, func() string { return cmp.Diff(true, o.table.Current() != nil) }) // It awaits what it has seen.

	kubetest.Remove(t, policy)
	kubetest.Create(t, kubetest.Policy("silver", kubetest.Fixed("cpu", "2"), inClass("silver")))
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "4", "liqo-tenant-rome/silver": "2"})
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "5"), inClass("gold")))
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "5", "liqo-tenant-rome/silver": "2"})
	var after v1alpha1.Offer
	test.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(gold), &after))
	if after.UID != gold.UID {
		t.Errorf("the Offer was deleted and created again")
	}
}

// What is as it should be is not written again by the next leader.
func TestARestartWritesNothingThatStands(t *testing.T) {
	withLiqo(t)
	config, api := installCatalog(t), kubetest.API(t)
	newTenant(t, "liqo-tenant-rome", "rome")
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "4"), inClass("gold")))
	versions := func() []string {
		offer, binding := &v1alpha1.Offer{}, &rbacv1.RoleBinding{}
		test.Must(t, api.Get(t.Context(), client.ObjectKey{Namespace: "liqo-tenant-rome", Name: "gold"}, offer))
		key := client.ObjectKey{Namespace: "liqo-tenant-rome", Name: catalog.OfferBinding.Name}
		test.Must(t, rbac(t).Get(t.Context(), key, binding))
		return []string{offer.ResourceVersion, binding.ResourceVersion}
	}
	o := launchOperator(t, config, publishing(t, catalog.DefaultQPS))
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "4"})
	awaitBindings(t, "liqo-tenant-rome")
	o.stop()
	before := versions()
	launchOperator(t, config, publishing(t, catalog.DefaultQPS))
	kubetest.Create(t, kubetest.Policy("silver", kubetest.Fixed("cpu", "2"), inClass("silver")))
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "4", "liqo-tenant-rome/silver": "2"})
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("written again:\n%s", diff)
	}
}

// requireReadOnly requires that a user of rome reads rome's Offers, and can do nothing else.
func requireReadOnly(t *testing.T, user, group string) {
	t.Helper()
	config, err := kubetest.Cluster(t).UserConfig(user, group)
	test.Must(t, err)
	consumer, err := client.New(config, client.Options{Scheme: rbac(t).Scheme()})
	test.Must(t, err)
	var all v1alpha1.OfferList
	if err := consumer.List(t.Context(), &all, client.InNamespace("liqo-tenant-rome")); err != nil || len(all.Items) != 2 {
		t.Fatalf("%d Offers: %v", len(all.Items), err)
	}
	mine := &all.Items[0]
	mine.Status.Title = "mine"
	other := &v1alpha1.Offer{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "other"}}
	for name, err := range map[string]error{
		"read oslo's":    consumer.List(t.Context(), &v1alpha1.OfferList{}, client.InNamespace("liqo-tenant-oslo")),
		"read all":       consumer.List(t.Context(), &v1alpha1.OfferList{}),
		"update":         consumer.Update(t.Context(), mine),
		"update status":  consumer.Status().Update(t.Context(), mine),
		"patch":          consumer.Patch(t.Context(), mine, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"title":"mine"}}`))),
		"delete":         consumer.Delete(t.Context(), mine),
		"create":         consumer.Create(t.Context(), other),
		"delete all":     consumer.DeleteAllOf(t.Context(), &v1alpha1.Offer{}, client.InNamespace("liqo-tenant-rome")),
		"read bindings":  consumer.List(t.Context(), &rbacv1.RoleBindingList{}, client.InNamespace("liqo-tenant-rome")),
		"delete binding": consumer.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: catalog.OfferBinding.Name}}),
	} {
		// The API server has no subresource status for Offers.
		if code := statusCode(err); code != 403 && (name != "update status" || code != 404) {
			t.Errorf("%s: got %v, want Forbidden", name, err)
		}
	}
}

func statusCode(err error) int32 {
	if status, ok := err.(interface{ Status() metav1.Status }); ok {
		return status.Status().Code
	}
	return 0
}

// copied is the status of an Offer that somebody else creates.
func copied(reason v1alpha1.CatalogReason) v1alpha1.OfferStatus {
	return v1alpha1.OfferStatus{
		ClusterID: "rome", Class: "gold", Reason: reason, ObservedTime: metav1.Now(), ValidUntil: metav1.Now(),
	}
}

func TestWhatIsNotOursIsReportedAndKept(t *testing.T) {
	withLiqo(t)
	config, api := installCatalog(t), rbac(t)
	newTenant(t, "liqo-tenant-rome", "rome")
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: catalog.OfferBinding.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	offer := &v1alpha1.Offer{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "gold"},
		Status:     copied(v1alpha1.CatalogExhausted),
	}
	for _, object := range []client.Object{binding, offer} {
		createAs(t, api, object)
	}
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "4"), inClass("gold")))
	kubetest.Create(t, kubetest.Policy("silver", kubetest.Fixed("cpu", "2"), inClass("silver")))
	launchOperator(t, config, publishing(t, catalog.DefaultQPS))
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "0", "liqo-tenant-rome/silver": "2"})
	test.Eventually(t, func() string {
		var events eventsv1.EventList
		if err := api.List(t.Context(), &events, client.InNamespace("liqo-tenant-rome")); err != nil {
			return err.Error()
		}
		about := map[string]bool{}
		for _, e := range events.Items {
			if e.Reason == "NotProffers" {
				about[string(e.Regarding.UID)] = true
			}
		}
		return cmp.Diff(map[string]bool{string(binding.UID): true, string(offer.UID): true}, about)
	})

	// Without them, ours are created.
	for _, object := range []client.Object{binding, offer} {
		test.Must(t, api.Delete(t.Context(), object))
	}
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "4", "liqo-tenant-rome/silver": "2"})
	test.Eventually(t, func() string {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(binding), binding); err != nil {
			return err.Error()
		}
		return cmp.Diff(catalog.OfferBinding.ClusterRole, binding.RoleRef.Name)
	})
}

func TestChangesOfOthersAreUndoneAndTheRateIsKept(t *testing.T) {
	withLiqo(t)
	config, api := installCatalog(t), rbac(t)
	newTenant(t, "liqo-tenant-rome", "rome")
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "4"), inClass("gold")))
	launchOperator(t, config, publishing(t, catalog.DefaultQPS))
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "4"})
	awaitBindings(t, "liqo-tenant-rome")
	stray := &v1alpha1.Offer{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "gold", Labels: map[string]string{"app.kubernetes.io/managed-by": "proffer"},
		},
		Status: copied(v1alpha1.CatalogAvailable),
	}
	kubetest.Create(t, stray)
	var offer v1alpha1.Offer
	offer.Namespace, offer.Name = "liqo-tenant-rome", "gold"
	binding := rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: catalog.OfferBinding.Name}}
	began := time.Now()
	kubetest.Edit(t, &offer, func(o client.Object) {
		o.SetLabels(nil)
		o.SetOwnerReferences(nil)
		o.(*v1alpha1.Offer).Status.Title = "another"
	}, kubetest.WriteSpec)
	test.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(&binding), &binding))
	binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"})
	test.Must(t, api.Update(t.Context(), &binding))
	test.Eventually(t, func() string {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(&offer), &offer); err != nil {
			return err.Error()
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(&binding), &binding); err != nil {
			return err.Error()
		}
		return cmp.Diff([]any{v1alpha1.Title(""), 1, 1, offer.Labels["app.kubernetes.io/managed-by"]},
			[]any{offer.Status.Title, len(offer.OwnerReferences), len(binding.Subjects), "proffer"})
	})
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "4"}) // The stray one is gone.
	t.Logf("undone after %v", time.Since(began).Round(time.Millisecond))
}

// A stranger labels a namespace and creates a Tenant there: one that names another consumer, or one
// whose ID is the name of a user or group of Kubernetes.
func TestTenantsOfStrangersPublishNothing(t *testing.T) {
	withLiqo(t)
	config := installCatalog(t)
	newTenant(t, "liqo-tenant-rome", "rome")
	newTenant(t, "labelled-for-bern", "bern")
	newTenantIn(t, "labelled-for-bern", "second", "bern")
	newTenant(t, "of-oslo", "oslo")
	newTenant(t, "of-oslo-too", "oslo")
	stranger := newTenant(t, "of-a-stranger", "stranger")
	kubetest.Remove(t, stranger)
	newTenantIn(t, "of-a-stranger", "other", "rome")
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "4"), inClass("gold")))
	launchOperator(t, config, publishing(t, catalog.DefaultQPS))
	awaitOffersIn(t, map[string]string{"liqo-tenant-rome/gold": "4"})
	awaitBindings(t, "liqo-tenant-rome")
	api := rbac(t)
	test.Eventually(t, func() string {
		var events eventsv1.EventList
		if err := api.List(t.Context(), &events); err != nil {
			return err.Error()
		}
		found := map[string]bool{}
		for _, e := range events.Items {
			if e.Reason == "NotPublished" {
				found[e.Namespace] = true
			}
		}
		return cmp.Diff(map[string]bool{"of-oslo": true, "of-oslo-too": true}, found)
	})
}

func TestTheCRDIsPickedUpLaterWithoutARestart(t *testing.T) {
	withLiqo(t)
	config := installCatalog(t)
	newTenant(t, "liqo-tenant-rome", "rome")
	kubetest.Create(t, kubetest.Policy("gold", kubetest.Fixed("cpu", "4"), inClass("gold")))
	crd := readObjects(t, "../../config/components/catalog/crd.yaml")[0]
	kubetest.Remove(t, crd)
	test.Eventually(t, func() string {
		if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(crd), crd.DeepCopy()); err == nil {
			return "the CRD still exists"
		}
		return ""
	})
	o := launchOperator(t, config, publishing(t, catalog.DefaultQPS))
	<-o.table.Ready()
	test.Must(t, kubetest.API(t).Create(t.Context(), crd))
	test.Eventually(t, func() string {
		var all v1alpha1.OfferList
		if err := kubetest.API(t).List(t.Context(), &all); err != nil {
			return err.Error()
		}
		return cmp.Diff(1, len(all.Items))
	})
}
