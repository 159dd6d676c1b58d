package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	liqoforge "github.com/liqotech/liqo/pkg/liqo-controller-manager/offloading/forge"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"proffer.dev/proffer/test"
)

// usingCluster has clients for a cluster that uses the resources of the provider rome.
type usingCluster struct {
	// liqo is Liqo's controller-manager, replicator its crd-replicator. admin may do anything.
	liqo, replicator, admin client.Client
}

// newUsingCluster installs Liqo's CRDs and roles. The component is not installed yet.
func newUsingCluster(t *testing.T) *usingCluster {
	t.Helper()
	newPeering(t) // the tenant namespace
	test.Must(t, offloadingv1beta1.AddToScheme(scheme.Scheme))
	liqoCRD(t, "offloading.liqo.io_virtualnodes.yaml")
	liqoCRD(t, "offloading.liqo.io_namespacemaps.yaml")
	// Liqo's chart gives its crd-replicator this role too.
	const replicator = "system:serviceaccount:liqo:liqo-crd-replicator"
	meta := metav1.ObjectMeta{Namespace: tenantNamespace, Name: "deploy-test-replicator"}
	create(t, &rbacv1.Role{ObjectMeta: meta, Rules: rulesOf(t, "liqo-remote-controlplane")})
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: replicator}},
	})
	return &usingCluster{
		liqo: as(t, "system:serviceaccount:liqo:liqo-controller-manager"), replicator: as(t, replicator), admin: cluster.client,
	}
}

// guard installs the component, and waits until it is enforced.
func (c *usingCluster) guard(t *testing.T) {
	t.Helper()
	applyComponent(t, "provider-guard")
	node := liqoforge.VirtualNode("probe", tenantNamespace)
	node.Spec.Labels = map[string]string{"liqo.io/type": "x"}
	test.Eventually(t, func() error {
		err := c.liqo.Create(t.Context(), node.DeepCopy(), client.DryRunAll)
		return refusal{metav1.StatusReasonInvalid, "the label liqo.io/type"}.of(err)
	})
	probe := c.newMap(t, "probe", nil)
	probe.Status.CurrentMapping = entries{"x": accepted("x")}
	test.Eventually(t, func() error {
		err := c.replicator.Status().Update(t.Context(), probe.DeepCopy(), client.DryRunAll)
		return refusal{metav1.StatusReasonInvalid, "status.currentMapping has"}.of(err)
	})
}

// reflect has Liqo's code write the VirtualNode for a ResourceSlice that rome answered with these
// nodeLabels.
func (c *usingCluster) reflect(t *testing.T, name string, nodeLabels map[string]string) error {
	return c.reflectFrom(t, "rome", name, nodeLabels)
}

func (c *usingCluster) reflectFrom(t *testing.T, provider liqov1beta1.ClusterID, name string, nodeLabels map[string]string) error {
	t.Helper()
	answer := &authv1beta1.ResourceSlice{Status: authv1beta1.ResourceSliceStatus{NodeLabels: nodeLabels}}
	node := liqoforge.VirtualNode(name, tenantNamespace)
	_, err := controllerutil.CreateOrUpdate(t.Context(), c.liqo, node, func() error {
		options := liqoforge.VirtualNodeOptionsFromResourceSlice(answer, "kubeconfig", nil)
		return liqoforge.MutateVirtualNode(t.Context(), c.liqo, node, provider, options, new(true), nil, nil)
	})
	return err
}

// labels returns the labels that Liqo's kubelet gives the Node.
func (c *usingCluster) labels(t *testing.T, name string) map[string]string {
	t.Helper()
	node := liqoforge.VirtualNode(name, tenantNamespace)
	test.Must(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(node), node))
	return node.Spec.Labels
}

func TestAProviderCannotStandForAnother(t *testing.T) {
	c := newUsingCluster(t)
	test.Must(t, c.reflect(t, "before", map[string]string{"liqo.io/remote-cluster-id": "oslo", "liqo.io/type": "worker"}))
	if got := c.labels(t, "before")["liqo.io/remote-cluster-id"]; got != "oslo" {
		t.Fatalf("Liqo itself leaves %q there: the component is no longer needed", got)
	}
	c.guard(t)
	honest := map[string]string{"zone": "a", "liqo.io/remote-cluster-id": "rome", "liqo.io/type": "virtual-node", "proffer.dev/depth": "1"}
	test.Must(t, c.reflect(t, "mine", honest))
	test.Must(t, c.reflect(t, "plain", nil))

	for name, tc := range map[string]struct {
		labels  map[string]string
		refused string
	}{
		"another cluster": {
			map[string]string{"liqo.io/remote-cluster-id": "oslo"},
			"the label liqo.io/remote-cluster-id=oslo is not the ID of the cluster of this virtual node, rome: the provider has to leave it out of nodeLabels",
		},
		"no cluster":       {map[string]string{"liqo.io/remote-cluster-id": ""}, "the label liqo.io/remote-cluster-id= is not the ID"},
		"of no choice":     {map[string]string{"liqo.io/remote-cluster-id": "none"}, "the label liqo.io/remote-cluster-id=none is not the ID"},
		"another case":     {map[string]string{"liqo.io/remote-cluster-id": "Rome"}, "the label liqo.io/remote-cluster-id=Rome is not the ID"},
		"a node of ours":   {map[string]string{"liqo.io/type": "worker"}, "the label liqo.io/type of a virtual node is virtual-node: the provider has to leave it out of nodeLabels"},
		"a node of no use": {map[string]string{"liqo.io/type": ""}, "the label liqo.io/type of a virtual node is virtual-node"},
	} {
		t.Run(name, func(t *testing.T) {
			refused := refusal{metav1.StatusReasonInvalid, tc.refused}
			test.Must(t, refused.of(c.reflect(t, "new", tc.labels)))
			test.Must(t, refused.of(c.reflect(t, "mine", tc.labels)))
			labels, err := json.Marshal(tc.labels)
			test.Must(t, err)
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"labels":%s}}`, labels))
			test.Must(t, refused.of(c.admin.Patch(t.Context(), liqoforge.VirtualNode("mine", tenantNamespace), patch)))
		})
	}
	t.Run("a refused answer changes nothing, and the next honest one counts", func(t *testing.T) {
		if got := c.labels(t, "mine")["liqo.io/remote-cluster-id"]; got != "rome" {
			t.Errorf("the label is %q", got)
		}
		test.Must(t, c.reflect(t, "mine", map[string]string{"zone": "b"}))
		if got := c.labels(t, "mine")["zone"]; got != "b" {
			t.Errorf("the zone is %q, want b", got)
		}
	})
	t.Run("the ID of no provider", func(t *testing.T) {
		test.Must(t, refusal{metav1.StatusReasonInvalid, "a provider with the cluster ID none would get the namespaces for which no provider is chosen"}.
			of(c.reflectFrom(t, "none", "new", nil)))
	})
}

// Liqo writes the finalizers and the amounts of a VirtualNode that exists, whatever its labels are.
func TestAVirtualNodeFromBeforeCanBeChangedAndDeleted(t *testing.T) {
	c := newUsingCluster(t)
	forged := map[string]string{"liqo.io/remote-cluster-id": "oslo"}
	test.Must(t, c.reflect(t, "before", forged))
	test.Must(t, c.reflectFrom(t, "none", "nobody", nil))
	c.guard(t)
	test.Must(t, c.reflect(t, "before", forged)) // Liqo reconciles it again.
	for _, name := range []string{"before", "nobody"} {
		node := liqoforge.VirtualNode(name, tenantNamespace)
		test.Must(t, c.liqo.Get(t.Context(), client.ObjectKeyFromObject(node), node))
		node.Finalizers = []string{"virtualnode-controller.liqo.io/finalizer"}
		node.Spec.CreateNode = new(false)
		test.Must(t, c.liqo.Update(t.Context(), node))
		test.Must(t, c.liqo.Delete(t.Context(), node))
		test.Must(t, c.liqo.Get(t.Context(), client.ObjectKeyFromObject(node), node))
		node.Finalizers = nil
		test.Must(t, c.liqo.Update(t.Context(), node))
	}
	test.Must(t, c.reflect(t, "other", nil))
	test.Must(t, refusal{metav1.StatusReasonInvalid, "liqo.io/remote-cluster-id=oslo"}.of(c.reflect(t, "other", forged)))
}

type entries = map[string]offloadingv1beta1.RemoteNamespaceStatus

func accepted(remote string) offloadingv1beta1.RemoteNamespaceStatus {
	return offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: remote, Phase: offloadingv1beta1.MappingAccepted}
}

func terminating(remote string) offloadingv1beta1.RemoteNamespaceStatus {
	return offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: remote, Phase: offloadingv1beta1.MappingTerminating}
}

// newMap creates the NamespaceMap of this cluster for rome, as Liqo does.
func (c *usingCluster) newMap(t *testing.T, name string, desired map[string]string) *offloadingv1beta1.NamespaceMap {
	t.Helper()
	nm := &offloadingv1beta1.NamespaceMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: name, Labels: map[string]string{
			"liqo.io/replication": "true", "liqo.io/remoteID": "rome", "liqo.io/remote-cluster-id": "rome",
		}},
		Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: desired},
	}
	test.Must(t, c.liqo.Create(t.Context(), nm))
	remove(t, nm)
	return nm
}

// answer has crd-replicator copy the status that rome answers.
func (c *usingCluster) answer(t *testing.T, nm *offloadingv1beta1.NamespaceMap, status entries) error {
	t.Helper()
	copied := nm.DeepCopy()
	test.Must(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(nm), copied))
	copied.Status.CurrentMapping = status
	return c.replicator.Status().Update(t.Context(), copied)
}

// desire has Liqo change which namespaces it sends.
func (c *usingCluster) desire(t *testing.T, nm *offloadingv1beta1.NamespaceMap, desired map[string]string) {
	t.Helper()
	changed := nm.DeepCopy()
	test.Must(t, c.liqo.Get(t.Context(), client.ObjectKeyFromObject(nm), changed))
	original := changed.DeepCopy()
	changed.Spec.DesiredMapping = desired
	test.Must(t, c.liqo.Patch(t.Context(), changed, client.MergeFrom(original)))
}

func TestAProviderGetsNoNamespaceThatItWasNotSent(t *testing.T) {
	c := newUsingCluster(t)
	c.guard(t)
	nm := c.newMap(t, "rome", map[string]string{"team": "team-milan", "lab": "lab-milan"})
	unsent := func(names string) refusal {
		return refusal{metav1.StatusReasonInvalid, "status.currentMapping has " + names + ", which spec.desiredMapping does not send to this provider"}
	}
	// The steps are those of one NamespaceMap.
	test.Must(t, unsent("kube-system").of(c.answer(t, nm, entries{"kube-system": accepted("x")})))
	test.Must(t, unsent("kube-system").of(c.answer(t, nm, entries{"kube-system": accepted("x"), "team": accepted("team-milan")})))
	test.Must(t, c.answer(t, nm, entries{"team": {RemoteNamespace: "team-milan", Phase: offloadingv1beta1.MappingCreationLoopBackOff}}))
	test.Must(t, c.answer(t, nm, entries{"team": accepted("team-milan"), "lab": accepted("lab-milan")}))
	test.Must(t, unsent("default").of(c.answer(t, nm, entries{"team": accepted("team-milan"), "default": accepted("team-milan")})))

	t.Run("a namespace that is no longer sent goes as Liqo deletes it", func(t *testing.T) {
		c.desire(t, nm, map[string]string{"lab": "lab-milan"})
		test.Must(t, c.answer(t, nm, entries{"team": accepted("team-milan")})) // lab is late
		test.Must(t, unsent("team").of(c.answer(t, nm, entries{"team": accepted("kube-system")})))
		test.Must(t, c.answer(t, nm, entries{"team": terminating("team-milan"), "lab": accepted("lab-milan")}))
		test.Must(t, unsent("team").of(c.answer(t, nm, entries{"team": accepted("team-milan"), "lab": accepted("lab-milan")})))
		test.Must(t, c.answer(t, nm, entries{"lab": accepted("lab-milan")}))
		test.Must(t, unsent("team").of(c.answer(t, nm, entries{"team": accepted("team-milan"), "lab": accepted("lab-milan")})))
	})
	t.Run("an admin removes what the provider keeps", func(t *testing.T) {
		c.desire(t, nm, map[string]string{"team": "team-milan", "lab": "lab-milan"})
		kept := entries{"team": accepted("team-milan"), "lab": accepted("lab-milan")}
		test.Must(t, c.answer(t, nm, kept))
		c.desire(t, nm, map[string]string{"lab": "lab-milan"})
		test.Must(t, c.answer(t, nm, kept))
		mustKubectl(t, "-n", tenantNamespace, "patch", "namespacemaps.offloading.liqo.io", "rome", "--subresource=status",
			"--type=json", "-p", `[{"op":"remove","path":"/status/currentMapping/team"}]`)
		test.Must(t, unsent("team").of(c.answer(t, nm, kept)))
		test.Must(t, c.answer(t, nm, entries{"lab": accepted("lab-milan")}))
	})
	t.Run("it holds up the deletion of no other namespace", func(t *testing.T) {
		test.Must(t, unsent("kube-system").of(c.answer(t, nm, entries{"kube-system": terminating("x")})))
		test.Must(t, unsent("default").of(c.answer(t, nm, entries{"default": {RemoteNamespace: "x"}})))
		test.Must(t, c.answer(t, nm, nil))
	})
	t.Run("every way to write the status", func(t *testing.T) {
		const status = `"status":{"currentMapping":{"kube-system":{"remoteNamespace":"x","phase":"Accepted"}}}`
		for name, patch := range map[string]client.Patch{
			"merge": client.RawPatch(types.MergePatchType, []byte("{"+status+"}")),
			"json": client.RawPatch(types.JSONPatchType, []byte(
				`[{"op":"add","path":"/status","value":{"currentMapping":{"kube-system":{"remoteNamespace":"x","phase":"Accepted"}}}}]`)),
			"apply": client.RawPatch(types.ApplyPatchType, []byte(`{"apiVersion":"offloading.liqo.io/v1beta1","kind":"NamespaceMap","metadata":{"name":"rome"},`+status+"}")),
		} {
			if err := unsent("kube-system").of(c.replicator.Status().Patch(t.Context(), nm.DeepCopy(), patch, client.FieldOwner("test"))); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		// A write of the object leaves its status as it is.
		written := nm.DeepCopy()
		test.Must(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(nm), written))
		written.Status.CurrentMapping = entries{"kube-system": accepted("x")}
		test.Must(t, c.admin.Update(t.Context(), written))
		test.Must(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(nm), written))
		if len(written.Status.CurrentMapping) > 0 {
			t.Errorf("the status is %v", written.Status.CurrentMapping)
		}
	})
}

// At 10,000 namespaces, a NamespaceMap is near etcd's limit on an object.
func TestALargeNamespaceMapIsAccepted(t *testing.T) {
	c := newUsingCluster(t)
	c.guard(t)
	desired, status := map[string]string{}, entries{}
	for i := range 8_000 {
		name := fmt.Sprintf("namespace-%05d", i)
		desired[name], status[name] = name+"-milan", accepted(name+"-milan")
	}
	nm := c.newMap(t, "large", desired)
	test.Must(t, c.answer(t, nm, status))
	more := maps.Clone(status)
	more["kube-system"] = accepted("x")
	test.Must(t, refusal{metav1.StatusReasonInvalid, "status.currentMapping has kube-system, which"}.of(c.answer(t, nm, more)))
	for i := range 2_000 { // too many for a message that names them
		more[fmt.Sprintf("other-%05d", i)] = accepted("x")
	}
	test.Must(t, refusal{metav1.StatusReasonInvalid, "status.currentMapping has "}.of(c.answer(t, nm, more)))
	c.desire(t, nm, nil) // All of them are to be deleted.
	delete(status, "namespace-00000")
	test.Must(t, c.answer(t, nm, status))
}

// The copy of a consumer's NamespaceMap is written by Liqo here.
func TestTheProviderGuardLeavesConsumersAlone(t *testing.T) {
	c := newUsingCluster(t)
	c.guard(t)
	nm := &offloadingv1beta1.NamespaceMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: "of-rome", Labels: map[string]string{
			"liqo.io/replication": "false", "liqo.io/replicated": "true", "liqo.io/originID": "rome", "liqo.io/remote-cluster-id": "rome",
		}},
		Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"team": "team-rome"}},
	}
	rome := as(t, "rome", "liqo.io")
	test.Must(t, rome.Create(t.Context(), nm))
	remove(t, nm)
	for _, step := range []struct {
		desired map[string]string
		current entries
	}{
		{map[string]string{"team": "team-rome"}, entries{"team": accepted("team-rome")}},
		{nil, entries{"team": terminating("team-rome")}},
		{nil, nil},
	} {
		test.Must(t, c.liqo.Get(t.Context(), client.ObjectKeyFromObject(nm), nm))
		nm.Spec.DesiredMapping = step.desired
		test.Must(t, rome.Update(t.Context(), nm))
		nm.Status.CurrentMapping = step.current
		test.Must(t, c.admin.Status().Update(t.Context(), nm))
	}
}
