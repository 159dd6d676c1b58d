package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	proffer "proffer.dev/proffer/internal/operator"
	"proffer.dev/proffer/test"
)

// existingCluster returns a cluster with the CRD and these policies, each of which offers rome this
// much cpu.
func existingCluster(t *testing.T, policies map[string]string) (kubeconfig string, c client.Client) {
	t.Helper()
	cluster := controlplane.StartTest(t, controlplane.Options{CRDDirs: []string{"../../config/crd/bases"}})
	kubeconfig = cluster.KubeconfigFile(t)
	c = newClient(t, kubeconfig)
	for name, cpu := range policies {
		test.Must(t, c.Create(t.Context(), fixedFor(name, "rome", cpu)))
	}
	return kubeconfig, c
}

// fixedFor returns a policy for a class with its own name, which offers a consumer this much cpu.
func fixedFor(name string, consumer v1alpha1.ClusterID, cpu string) *v1alpha1.ResourcePolicy {
	return &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ResourcePolicySpec{
		Class:     name,
		Consumers: &v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{consumer}},
		Offer: v1alpha1.PolicyOffer{Fixed: v1alpha1.Quantities{
			"cpu": {Quantity: resource.MustParse(cpu)}, "memory": {Quantity: resource.MustParse("1Gi")},
			"pods": {Quantity: resource.MustParse("10")},
		}},
	}}
}

// createLease creates a Lease as another Proffer in that namespace would hold it.
func createLease(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: proffer.LeaderElectionID, Namespace: namespace},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("proffer-0"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now,
			RenewTime: &now,
		},
	}
	test.Must(t, c.Create(t.Context(), lease))
}

func set(t *testing.T, c client.Client, policy, cpu string) {
	t.Helper()
	p := &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: policy}}
	test.Must(t, c.Patch(t.Context(), p,
		client.RawPatch("application/merge-patch+json",
			[]byte(`{"spec":{"offer":{"fixed":{"cpu":"`+cpu+`"}}}}`))))
}

// versions returns the resourceVersions of everything that the demo or its operator could write, by
// kind and name. It omits the API server's own Leases.
func versions(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, kind := range []schema.GroupVersionKind{
		v1alpha1.GroupVersion.WithKind("ResourcePolicyList"),
		v1alpha1.GroupVersion.WithKind("GrantList"),
		{Version: "v1", Kind: "ConfigMapList"},
		{Group: "events.k8s.io", Version: "v1", Kind: "EventList"},
		{Group: "coordination.k8s.io", Version: "v1", Kind: "LeaseList"},
		{Version: "v1", Kind: "ServiceAccountList"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleList"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBindingList"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"},
	} {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(kind)
		test.Must(t, c.List(t.Context(), &list))
		for i := range list.Items {
			object := &list.Items[i]
			if kind.Kind == "LeaseList" && object.Name != proffer.LeaderElectionID ||
				kind.Kind == "ConfigMapList" && object.Name != proffer.OfferedConfigMap {
				continue
			}
			all[kind.Kind+" "+client.ObjectKeyFromObject(object).String()] = object.ResourceVersion
		}
	}
	return all
}

func TestNoSamplesAreAppliedToAClusterWithPolicies(t *testing.T) {
	kubeconfig, c := existingCluster(t, map[string]string{"gold": "7", "silver": "3"})
	d := start(t, demoOptions{kubeconfig: kubeconfig})
	await(t, d.progress, "^watching 2 policies$")
	await(t, d.progress, "^$")
	await(t, d.table, `^rome +gold +cpu +7 +0 +0 +gold$`)
	await(t, d.table, `^rome +silver +cpu +3 +0 +0 +silver$`)
	await(t, d.table, `^  kubectl --kubeconfig `+kubeconfig+` edit rpol$`)
	set(t, c, "silver", "4")
	await(t, d.table, `^\d\d:\d\d:\d\d  policy silver edited: Offering$`)
	await(t, d.table, `^rome +silver +cpu +3 -> 4 +0 +0 +silver +fixed at 4$`)
	var policies v1alpha1.ResourcePolicyList
	test.Must(t, c.List(t.Context(), &policies))
	if n := len(policies.Items); n != 2 {
		t.Errorf("%d policies, want the 2 that were there", n)
	}
	d.end(t)
}

func TestTheDemoWritesNothingToAnExistingCluster(t *testing.T) {
	for name, leader := range map[string]string{
		"with another Proffer": metav1.NamespaceSystem, "without another Proffer": "",
	} {
		t.Run(name, func(t *testing.T) { testNothingIsWritten(t, leader) })
	}
}

func testNothingIsWritten(t *testing.T, leader string) {
	t.Helper()
	kubeconfig, c := existingCluster(t, map[string]string{"gold": "7"})
	if leader != "" {
		createLease(t, c, leader)
	}
	d := start(t, demoOptions{kubeconfig: kubeconfig})
	await(t, d.progress, "^Proffer only reads here")
	if leader != "" {
		await(t, d.progress, "^a Proffer runs here .proffer-0 in namespace kube-system")
	}
	await(t, d.progress, "^watching 1 policy$")
	await(t, d.progress, "^$")
	await(t, d.table, `^rome +gold +cpu +7 `)
	// A leader would write the status of an edited policy at once.
	for _, cpu := range []string{"8", "9", "10"} {
		set(t, c, "gold", cpu)
		before := versions(t, c)
		await(t, d.table, `^rome +gold +cpu +\d -> `+cpu+` `)
		if diff := cmp.Diff(before, versions(t, c)); diff != "" {
			t.Errorf("written (-before +after):\n%s", diff)
		}
	}
	before := versions(t, c)
	d.end(t)
	after := versions(t, c)
	for object, version := range before {
		// The demo deletes its own account.
		if now, there := after[object]; there && now != version {
			t.Errorf("%s was written", object)
		}
	}
	for object := range after {
		if _, there := before[object]; !there {
			t.Errorf("%s is left behind", object)
		}
	}
	var policy v1alpha1.ResourcePolicy
	test.Must(t, c.Get(t.Context(), client.ObjectKey{Name: "gold"}, &policy))
	if diff := cmp.Diff(v1alpha1.ResourcePolicyStatus{}, policy.Status); diff != "" {
		t.Errorf("the status was written:\n%s", diff)
	}
}

func TestAnotherProfferWithoutPoliciesGetsNoSamples(t *testing.T) {
	kubeconfig, c := existingCluster(t, nil)
	createLease(t, c, metav1.NamespaceDefault)
	var undo cleanup
	joined, err := prepare(t.Context(), demoOptions{kubeconfig: kubeconfig}, &undo, io.Discard)
	test.Must(t, err)
	var policies v1alpha1.ResourcePolicyList
	test.Must(t, c.List(t.Context(), &policies))
	if len(policies.Items) > 0 || joined.samples || joined.leaseNamespace != metav1.NamespaceDefault {
		t.Errorf("got %d policies, samples %v, the namespace %q of the Lease", len(policies.Items), joined.samples, joined.leaseNamespace)
	}
	test.Check(t, undo.run(io.Discard))
}

func TestSamplesAreRefusedOnAClusterWithPolicies(t *testing.T) {
	kubeconfig, c := existingCluster(t, map[string]string{"gold": "7"})
	before := versions(t, c)
	err := run(t.Context(), demoOptions{kubeconfig: kubeconfig, samples: true}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "without policies") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(before, versions(t, c)); diff != "" {
		t.Errorf("written (-before +after):\n%s", diff)
	}
}

func TestAPolicyThatOthersCreateMeanwhileStays(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	kubeconfig := cluster.KubeconfigFile(t)
	d := start(t, demoOptions{kubeconfig: kubeconfig})
	await(t, d.progress, "^watching for policies: the cluster has none yet$")
	await(t, d.progress, "^$")
	c := newClient(t, kubeconfig)
	await(t, d.progress, "^No offers: no ResourcePolicy offers anything.$")
	test.Must(t, c.Create(t.Context(), fixedFor("gold", "rome", "7")))
	await(t, d.table, `  policy gold: - -> Offering$`)
	await(t, d.table, `^CONSUMER +CLASS `)
	await(t, d.table, `^rome +gold +cpu +- -> 7 `)
	d.end(t)
	var policy v1alpha1.ResourcePolicy
	if err := c.Get(t.Context(), client.ObjectKey{Name: "gold"}, &policy); err != nil {
		t.Errorf("the policy is gone: %v", err)
	}
}

// An older Proffer does not have the CRD of Grants.
func TestOnlyAMissingCRDIsInstalledAndRemoved(t *testing.T) {
	cluster := controlplane.StartTest(t,
		controlplane.Options{CRDDirs: []string{"../../config/crd/bases/" + crds["resourcepolicies.proffer.dev"].file}})
	kubeconfig := cluster.KubeconfigFile(t)
	c := newClient(t, kubeconfig)
	createLease(t, c, metav1.NamespaceDefault)
	there := func(name string) bool {
		var crd metav1.PartialObjectMetadata
		crd.SetGroupVersionKind(crdKind)
		err := c.Get(t.Context(), client.ObjectKey{Name: name}, &crd)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil && crd.DeletionTimestamp == nil
	}
	var undo cleanup
	if _, err := prepare(t.Context(), demoOptions{kubeconfig: kubeconfig}, &undo, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !there("grants.proffer.dev") {
		t.Error("the CRD of Grants was not installed")
	}
	test.Check(t, undo.run(io.Discard))
	if there("grants.proffer.dev") || !there("resourcepolicies.proffer.dev") {
		t.Errorf("at the end the CRD of Grants exists: %t, that of ResourcePolicies: %t; want only the latter",
			there("grants.proffer.dev"), there("resourcepolicies.proffer.dev"))
	}
}

func TestAnExpiredOrReleasedLeaseIsNotAnotherProffer(t *testing.T) {
	now := time.Now()
	lease := func(change func(*coordinationv1.LeaseSpec)) coordinationv1.LeaseSpec {
		renewed := metav1.NewMicroTime(now)
		l := coordinationv1.LeaseSpec{
			HolderIdentity: new("proffer-0"), LeaseDurationSeconds: new(int32(15)), RenewTime: &renewed,
		}
		change(&l)
		return l
	}
	renewed := func(at time.Duration) func(*coordinationv1.LeaseSpec) {
		return func(l *coordinationv1.LeaseSpec) { l.RenewTime = new(metav1.NewMicroTime(now.Add(at))) }
	}
	for name, tc := range map[string]struct {
		lease coordinationv1.LeaseSpec
		want  bool
	}{
		"just renewed":           {lease(renewed(0)), true},
		"a clock that is ahead":  {lease(renewed(30 * time.Second)), true},
		"a clock that is behind": {lease(renewed(-74 * time.Second)), true},
		"expired":                {lease(renewed(-76 * time.Second)), false},
		"released":               {lease(func(l *coordinationv1.LeaseSpec) { l.HolderIdentity = new("") }), false},
		"never held":             {coordinationv1.LeaseSpec{}, false},
		"never renewed":          {lease(func(l *coordinationv1.LeaseSpec) { l.RenewTime = nil }), false},
		"without a duration":     {lease(func(l *coordinationv1.LeaseSpec) { l.LeaseDurationSeconds = nil }), false},
	} {
		if got := held(tc.lease, now); got != tc.want {
			t.Errorf("%s: held is %v, want %v", name, got, tc.want)
		}
	}
}
