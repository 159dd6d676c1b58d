package operator

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/controllers/catalog"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// orchestrating has the operator put Orchestrations into force.
func orchestrating(t *testing.T) func(*parts) {
	t.Helper()
	subject, err := catalog.ParseSubject(catalog.DefaultSubject)
	test.Must(t, err)
	return func(p *parts) {
		p.OrchestrateAs, p.Tenants = "turin", Tenants{Subjects: []catalog.Subject{subject}, QPS: catalog.DefaultQPS}
	}
}

// newBroker is a broker with the providers milan and paris, and the consumers rome and oslo, each of which
// has sent a namespace. It returns the configuration of an operator that has the rights of the default
// manifests, of the component and of these files, and no others.
func newBroker(t *testing.T, roles ...string) *rest.Config {
	t.Helper()
	withLiqo(t)
	for _, name := range []string{"namespaceoffloadings", "virtualnodes"} {
		kubetest.Keep(t, controlplane.LiqoCRD(t, "offloading.liqo.io_"+name+".yaml"))
	}
	config, err := kubetest.Cluster(t).UserConfig("operator-with-catalog")
	test.Must(t, err)
	installRoles(t, append(roles, "../../config/rbac/role.yaml", "../../config/components/orchestrator/role.yaml")...)
	for _, id := range []string{"rome", "oslo"} {
		newTenant(t, "liqo-tenant-"+id, id)
		sentNamespace(t, "team-"+id, id)
	}
	for _, id := range []string{"milan", "paris"} {
		newProvider(t, id)
	}
	return config
}

// newProvider creates what Liqo has of a provider.
func newProvider(t *testing.T, id string) {
	t.Helper()
	kubetest.Create(t, kubetest.OfLiqo(t, "offloading.liqo.io/v1beta1", "VirtualNode", &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: metav1.NamespaceDefault}, Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: liqov1beta1.ClusterID(id)},
	}))
	kubetest.Create(t, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: id, Labels: map[string]string{"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": id}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
}

// sentNamespace has Liqo create a namespace that a consumer has sent. It is never gone without its
// controller, so tests reuse it.
func sentNamespace(t *testing.T, name, consumer string) {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"liqo.io/remote-cluster-id": consumer}, Annotations: map[string]string{
		"liqo.io/managed-by-namespace-map": "liqo-tenant-" + consumer + "/turin", "liqo.io/original-name": "team",
	}}}
	labels, annotations := n.Labels, n.Annotations
	if err := kubetest.API(t).Create(t.Context(), n); err != nil {
		kubetest.Edit(t, n, func(o client.Object) { o.SetLabels(labels); o.SetAnnotations(annotations) }, kubetest.WriteSpec)
	}
	t.Cleanup(func() {
		none := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":null,"annotations":null}}`))
		test.Must(t, kubetest.API(t).Patch(context.WithoutCancel(t.Context()), n, none))
		o := newOffloading()
		o.SetNamespace(name)
		test.Must(t, client.IgnoreNotFound(kubetest.API(t).Delete(context.WithoutCancel(t.Context()), o)))
	})
}

func newOffloading() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("offloading.liqo.io/v1beta1")
	u.SetKind("NamespaceOffloading")
	u.SetName("offloading")
	return u
}

// awaitSelected waits until the NamespaceOffloading in a namespace selects these providers.
func awaitSelected(t *testing.T, namespace, want string) {
	t.Helper()
	test.Eventually(t, func() string {
		u := newOffloading()
		if err := kubetest.API(t).Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "offloading"}, u); err != nil {
			return err.Error()
		}
		terms, _, _ := unstructured.NestedSlice(u.Object, "spec", "clusterSelector", "nodeSelectorTerms")
		got := strings.Join(strings.Fields(fmt.Sprint(terms)), " ")
		if !strings.Contains(got, "values:["+want+"]") {
			return fmt.Sprintf("%s: %s, want %s", namespace, got, want)
		}
		return ""
	})
}

// asConsumer returns a client of the control plane of a consumer, with all rights that Liqo gives it.
func asConsumer(t *testing.T, id string) client.WithWatch {
	t.Helper()
	text, err := os.ReadFile(controlplane.LiqoFile(t, "files/liqo-remote-controlplane-ClusterRole.yaml"))
	test.Must(t, err)
	var r rbacv1.ClusterRole
	test.Must(t, yaml.UnmarshalStrict(text, &r))
	name := metav1.ObjectMeta{Namespace: "liqo-tenant-" + id, Name: "liqo-remote-controlplane"}
	createAs(t, rbac(t), &rbacv1.Role{ObjectMeta: name, Rules: r.Rules})
	createAs(t, rbac(t), &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: id}},
	})
	config, err := kubetest.Cluster(t).UserConfig(id, "liqo.io")
	test.Must(t, err)
	config.QPS = -1
	api, err := client.NewWithWatch(config, client.Options{Scheme: rbac(t).Scheme()})
	test.Must(t, err)
	return api
}

// providerChoice is a ProviderChoice in a namespace.
func providerChoice(namespace, name string, providers ...v1alpha1.ClusterID) *v1alpha1.ProviderChoice {
	return &v1alpha1.ProviderChoice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.ProviderChoiceSpec{Providers: providers},
	}
}

// choose creates the ProviderChoice of a consumer, as soon as it has the right to.
func choose(t *testing.T, api client.Client, consumer string, providers ...v1alpha1.ClusterID) *v1alpha1.ProviderChoice {
	t.Helper()
	choice := providerChoice("liqo-tenant-"+consumer, v1alpha1.ChoiceName, providers...)
	test.Eventually(t, func() string {
		if err := api.Create(t.Context(), choice); err != nil {
			return err.Error()
		}
		return ""
	})
	t.Cleanup(func() {
		test.Must(t, client.IgnoreNotFound(kubetest.API(t).Delete(context.WithoutCancel(t.Context()), choice)))
	})
	return choice
}

// awaitChoice waits until the status of a ProviderChoice has this reason for this generation.
func awaitChoice(t *testing.T, api client.Client, choice *v1alpha1.ProviderChoice, reason string) {
	t.Helper()
	test.Eventually(t, func() string {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(choice), choice); err != nil {
			return err.Error()
		}
		s := choice.Status
		if s.ObservedGeneration != choice.Generation || len(s.Conditions) != 1 || s.Conditions[0].Reason != reason {
			return fmt.Sprintf("generation %d, status %+v, want %s", choice.Generation, s, reason)
		}
		return ""
	})
}

func TestAConsumerChoosesAmongWhatTheOrchestrationAllows(t *testing.T) {
	config := newBroker(t)
	o := kubetest.Create(t, &v1alpha1.Orchestration{
		ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.OrchestrationSpec{ConsumersMay: v1alpha1.ConsumersMayChoose},
	})
	rome := asConsumer(t, "rome")
	launchOperator(t, config, orchestrating(t))
	awaitSelected(t, "team-rome", "milan paris")
	choice := choose(t, rome, "rome", "paris", "lima")
	awaitChoice(t, rome, choice, v1alpha1.ProviderChoiceInForce)
	if s := choice.Status; s.ChosenProviders != "paris" || len(s.Unknown) != 1 || len(s.Providers) != 2 || s.Providers[0].RejectedBy != v1alpha1.RejectedByConsumer {
		t.Errorf("status %+v", s)
	}
	awaitSelected(t, "team-oslo", "milan paris") // The choice is rome's alone.
	// Milan is drained: nothing has the namespace in this test, so it stays until then.
	test.Eventually(t, func() string {
		u := newOffloading()
		if err := kubetest.API(t).Get(t.Context(), client.ObjectKey{Namespace: "team-rome", Name: "offloading"}, u); err != nil {
			return err.Error()
		}
		if text := u.GetAnnotations()["proffer.dev/draining"]; !strings.HasPrefix(text, "milan=") {
			return "draining " + text
		}
		return ""
	})
	kubetest.Edit(t, o, func(o client.Object) {
		o.(*v1alpha1.Orchestration).Spec.ConsumersMay = v1alpha1.ConsumersMayNone
	}, kubetest.WriteSpec)
	awaitChoice(t, rome, choice, v1alpha1.ProviderChoiceNotAllowed)
	if n := len(choice.Status.Providers); n > 0 {
		t.Errorf("%d providers are shown to a consumer that may not choose", n)
	}
}

// A consumer uses all rights that Liqo gives it, and those of the component.
func TestAConsumerChoosesForItselfAndChangesNothingElse(t *testing.T) {
	config := newBroker(t)
	o := kubetest.Create(t, &v1alpha1.Orchestration{
		ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.OrchestrationSpec{ConsumersMay: v1alpha1.ConsumersMayChoose},
	})
	rome, oslo := asConsumer(t, "rome"), asConsumer(t, "oslo")
	launchOperator(t, config, orchestrating(t))
	mine, osloChoice := choose(t, rome, "rome", "paris"), choose(t, oslo, "oslo", "milan")
	awaitChoice(t, rome, mine, v1alpha1.ProviderChoiceInForce)
	awaitChoice(t, oslo, osloChoice, v1alpha1.ProviderChoiceInForce)
	forged := mine.DeepCopy()
	forged.Status.ChosenProviders = "milan"
	merge := func(text string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(text)) }
	offloading := newOffloading()
	offloading.SetNamespace("team-rome")
	for _, tc := range []struct {
		name string
		code int32
		err  error
	}{
		{"write its status", 403, rome.Status().Update(t.Context(), forged)},
		{"patch its status", 403, rome.Status().Patch(t.Context(), mine.DeepCopy(), merge(`{"status":{"chosenProviders":"milan"}}`))},
		{"write in another tenant", 403, rome.Create(t.Context(), providerChoice("liqo-tenant-oslo", v1alpha1.ChoiceName))},
		{"write in another namespace", 403, rome.Create(t.Context(), providerChoice("default", v1alpha1.ChoiceName))},
		{"write in one that it sent", 403, rome.Create(t.Context(), providerChoice("team-rome", v1alpha1.ChoiceName))},
		{"change another's", 403, rome.Patch(t.Context(), osloChoice.DeepCopy(), merge(`{"spec":{"providers":["paris"]}}`))},
		{"delete another's", 403, rome.Delete(t.Context(), osloChoice.DeepCopy())},
		{"read another's", 403, rome.Get(t.Context(), client.ObjectKeyFromObject(osloChoice), &v1alpha1.ProviderChoice{})},
		{"read all", 403, rome.List(t.Context(), &v1alpha1.ProviderChoiceList{})},
		{"delete all of its own", 403, rome.DeleteAllOf(t.Context(), &v1alpha1.ProviderChoice{}, client.InNamespace(mine.Namespace))},
		{"read Orchestrations", 403, rome.List(t.Context(), &v1alpha1.OrchestrationList{})},
		{"change the Orchestration", 403, rome.Patch(t.Context(), o.DeepCopy(), merge(`{"spec":{"providers":null}}`))},
		{"change its status", 403, rome.Status().Patch(t.Context(), o.DeepCopy(), merge(`{"status":{"choices":null}}`))},
		{"change the offloading", 403, rome.Patch(t.Context(), offloading, merge(`{"spec":{"podOffloadingStrategy":"Local"}}`))},
		{"read RoleBindings", 403, rome.List(t.Context(), &rbacv1.RoleBindingList{}, client.InNamespace(mine.Namespace))},
		{"bind somebody else", 403, rome.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: mine.Namespace, Name: "x"}})},
		{"write beyond its one object", 422, rome.Create(t.Context(), providerChoice(mine.Namespace, "second"))},
		{"name more than 64 providers", 422, rome.Patch(t.Context(), mine.DeepCopy(), merge(`{"spec":{"providers":[`+numberedIDs(65)+`]}}`))},
		{"write a megabyte of annotations", 422, rome.Patch(t.Context(), mine.DeepCopy(), merge(`{"metadata":{"annotations":{"a":"`+strings.Repeat("x", 1<<20)+`"}}}`))},
	} {
		if code := statusCode(tc.err); code != tc.code {
			t.Errorf("%s: got %v, want %d", tc.name, tc.err, tc.code)
		}
	}
	// A status in a spec's place is dropped.
	forged.Spec.Providers = []v1alpha1.ClusterID{"milan"}
	test.Must(t, rome.Update(t.Context(), forged))
	awaitChoice(t, rome, mine, v1alpha1.ProviderChoiceInForce)
	if mine.Status.ChosenProviders != "milan" || mine.Status.Providers[1].Chosen {
		t.Errorf("status %+v", mine.Status)
	}
}

// numberedIDs are IDs in JSON.
func numberedIDs(n int) string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf(`"p%d"`, i)
	}
	return strings.Join(ids, ",")
}

// An object near the limit of the API server harms its consumer only.
func TestAHugeProviderChoiceHarmsNoOtherConsumer(t *testing.T) {
	config := newBroker(t)
	kubetest.Create(t, &v1alpha1.Orchestration{
		ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.OrchestrationSpec{ConsumersMay: v1alpha1.ConsumersMayChoose},
	})
	rome, api := asConsumer(t, "rome"), kubetest.API(t)
	huge := choose(t, api, "oslo", "milan")
	// Labels have no limit of their own, so etcd's is met: there is no room for the status.
	for n := 1 << 13; n > 0; {
		labels := map[string]string{}
		for i := range n + len(huge.Labels) {
			labels[fmt.Sprintf("%s%08d", strings.Repeat("l", 50), i)] = strings.Repeat("v", 60)
		}
		try := huge.DeepCopy()
		try.Labels = labels
		if err := api.Patch(t.Context(), try, client.MergeFrom(huge)); err != nil {
			n /= 2
			continue
		}
		huge = try
	}
	launchOperator(t, config, orchestrating(t))
	mine := choose(t, rome, "rome", "paris")
	awaitChoice(t, rome, mine, v1alpha1.ProviderChoiceInForce)
	for range 3 {
		mine.Spec.Providers = []v1alpha1.ClusterID{"milan"}
		test.Must(t, rome.Update(t.Context(), mine))
		awaitChoice(t, rome, mine, v1alpha1.ProviderChoiceInForce)
		mine.Spec.Providers = []v1alpha1.ClusterID{"paris"}
		test.Must(t, rome.Update(t.Context(), mine))
		awaitChoice(t, rome, mine, v1alpha1.ProviderChoiceInForce)
	}
	awaitSelected(t, "team-oslo", "milan")
	test.Must(t, api.Get(t.Context(), client.ObjectKeyFromObject(huge), huge))
	if len(huge.Labels) < 1000 || len(huge.Status.Conditions) > 0 {
		t.Errorf("%d labels left room for the status %+v", len(huge.Labels), huge.Status)
	}
}

// passes returns how many passes the operators of this process have made.
func passes(t *testing.T) (n float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	test.Must(t, err)
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" && l.GetValue() == "orchestration" {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// choiceWrites returns how many writes of statuses of ProviderChoices an operator has tried, with any result.
func choiceWrites(t *testing.T, registry *prometheus.Registry) (n float64) {
	t.Helper()
	families, err := registry.Gather()
	test.Must(t, err)
	for _, f := range families {
		if f.GetName() != "proffer_orchestration_writes_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if strings.Contains(m.String(), `"ProviderChoice"`) {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// However often a consumer edits its choice, there is one pass a second, and one write of each status in it.
func TestAFloodOfEditsCostsOnePassAndOneWriteASecond(t *testing.T) {
	const flood, editors = 8 * time.Second, 4
	config := newBroker(t)
	kubetest.Create(t, &v1alpha1.Orchestration{
		ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.OrchestrationSpec{ConsumersMay: v1alpha1.ConsumersMayChoose},
	})
	rome, oslo := asConsumer(t, "rome"), asConsumer(t, "oslo")
	registry := prometheus.NewPedanticRegistry()
	launchOperator(t, config, orchestrating(t), func(p *parts) { p.metrics = registry })
	choice := choose(t, rome, "rome", "paris")
	awaitChoice(t, rome, choice, v1alpha1.ProviderChoiceInForce)
	passed, written, begin := passes(t), choiceWrites(t, registry), time.Now()
	var edits atomic.Int64
	var editing sync.WaitGroup
	for i := range editors {
		editing.Go(func() {
			for n := i; time.Since(begin) < flood; n++ {
				patch := fmt.Sprintf(`{"spec":{"providers":["milan"],"count":%d}}`, 1+n%64)
				if rome.Patch(t.Context(), choice.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch))) == nil {
					edits.Add(1)
				}
			}
		})
	}
	// Another consumer is served meanwhile.
	osloChoice := choose(t, oslo, "oslo", "milan")
	awaitChoice(t, oslo, osloChoice, v1alpha1.ProviderChoiceInForce)
	served := time.Since(begin)
	editing.Wait()
	took := time.Since(begin).Seconds()
	passed, written = passes(t)-passed, choiceWrites(t, registry)-written
	t.Logf("%d edits in %.1f s: %v passes, %v writes; the other consumer waited %v", edits.Load(), took, passed, written, served)
	if written == 0 || passed > took+2 || written > 2*passed {
		t.Errorf("%v passes and %v writes in %.1f s, for two ProviderChoices", passed, written, took)
	}
	test.Must(t, rome.Get(t.Context(), client.ObjectKeyFromObject(choice), choice))
	awaitChoice(t, rome, choice, v1alpha1.ProviderChoiceInForce)
}
