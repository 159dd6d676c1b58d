package check

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

var (
	errForbidden = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no rights"))
	errNotFound  = apierrors.NewNotFound(schema.GroupResource{}, "")
	errBroken    = errors.New("connection refused")
)

// is one case of a check: its finding has this status, and this in its texts.
type is struct {
	status Status
	says   []string
}

func (want is) diff(got Finding) string {
	if got.Status != want.status {
		return cmp.Diff(want.status, got.Status) + got.Message
	}
	for _, part := range want.says {
		if text := got.Message + " " + got.Do; !strings.Contains(text, part) {
			return "no " + part + " in: " + text
		}
	}
	if got.Status != OK && got.Status != Skipped && got.Do == "" {
		return "nothing to do about: " + got.Message
	}
	return ""
}

func there[T any](value T) known[T]     { return knownOf(value, nil) }
func failing[T any](err error) known[T] { var none T; return knownOf(none, err) }
func v0() known[liqoAPIs]               { return there(liqoAPIs(resourcesOfV0)) }
func v1() known[liqoAPIs]               { return there(liqoAPIs(resourcesOfV1)) }
func modify[T any](o T, with ...func(T)) T {
	for _, f := range with {
		f(o)
	}
	return o
}
func args(of ...string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { c := &d.Spec.Template.Spec.Containers[0]; c.Args = append(c.Args, of...) }
}

// deployment is the operator's, with two replicas that are available.
func deployment(with ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "proffer-system", Name: "proffer", Generation: 3}}
	d.Spec.Replicas = new(int32(2))
	d.Spec.Template.Labels = map[string]string{"app.kubernetes.io/name": "proffer"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "proffer", Image: "example.com/proffer:v1", Args: []string{"--leader-elect"},
		Ports: []corev1.ContainerPort{{Name: "grpc", ContainerPort: 6001}, {Name: "grpc-flat", ContainerPort: 6002}},
	}}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 3, AvailableReplicas: 2, UpdatedReplicas: 2}
	return modify(d, with...)
}

func TestReplicasAreReportedUnlessAllAreAvailable(t *testing.T) {
	cases := map[string]struct {
		deployment known[*appsv1.Deployment]
		want       is
	}{
		"available":         {there(deployment()), is{OK, []string{"2 of 2", "example.com/proffer:v1"}}},
		"none is installed": {failing[*appsv1.Deployment](errNotFound), is{Wrong, []string{"no Deployment proffer in namespace proffer-system", "--operator-namespace"}}},
		"no right":          {failing[*appsv1.Deployment](errForbidden), is{Skipped, []string{"You may not get deployments.apps in proffer-system"}}},
		"no image":          {there(deployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = unsetImage })), is{Wrong, []string{"names no image"}}},
		"scaled to 0":       {there(deployment(func(d *appsv1.Deployment) { *d.Spec.Replicas = 0 })), is{Wrong, []string{"scaled to 0"}}},
		"two writers":       {there(deployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = nil })), is{Wrong, []string{"without --leader-elect"}}},
		"all are down":      {there(deployment(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 })), is{Wrong, []string{"None of 2"}}},
		"one is down":       {there(deployment(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 })), is{Warning, []string{"1 of 2"}}},
		"a rollout":         {there(deployment(func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 2 })), is{Warning, []string{"rollout"}}},
		"invalid arguments": {there(deployment(args("--leader-elect=perhaps"))), is{Wrong, []string{"leader-elect"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := c.want.diff(findReplicas("proffer-system", c.deployment)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheImageOfTheManifestsCountsAsNone(t *testing.T) {
	text := test.Read(t, "../../../config/manager/deployment.yaml")
	if !strings.Contains(text, "image: "+unsetImage+"\n") {
		t.Errorf("config/manager has another image than %s", unsetImage)
	}
}

func TestALeaderThatStoppedRenewingIsReported(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	renewed := func(ago time.Duration) known[*coordinationv1.Lease] {
		return there(&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("pod-1"), LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: now.Add(-ago)},
		}})
	}
	elects := flags{leaderElect: true, leaseNamespace: "proffer-system"}
	cases := map[string]struct {
		flags flags
		lease known[*coordinationv1.Lease]
		want  is
	}{
		"renewed":           {elects, renewed(time.Second), is{OK, []string{"pod-1 leads"}}},
		"by another clock":  {elects, renewed(-30 * time.Second), is{OK, []string{"pod-1 leads"}}},
		"just not expired":  {elects, renewed(75 * time.Second), is{OK, nil}},
		"expired":           {elects, renewed(76 * time.Second), is{Wrong, []string{"pod-1 renewed the Lease 1m16s ago"}}},
		"given up":          {elects, there(&coordinationv1.Lease{}), is{Wrong, []string{"no holder"}}},
		"never taken":       {elects, failing[*coordinationv1.Lease](errNotFound), is{Wrong, []string{"no Lease proffer.dev in namespace proffer-system"}}},
		"no right":          {elects, failing[*coordinationv1.Lease](errForbidden), is{Skipped, []string{"get leases"}}},
		"without election":  {flags{}, failing[*coordinationv1.Lease](errNotFound), is{OK, []string{"only replica"}}},
		"no answer to this": {elects, failing[*coordinationv1.Lease](errBroken), is{Skipped, []string{"connection refused"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := c.want.diff(findLeader(c.flags, c.lease, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStaleNewsOfAReplicaIsReported(t *testing.T) {
	two := there([]string{"a", "b"})
	ready := probe{pod: "a", status: 200, body: "[+]offers ok\n[+]watches ok\nhealthz check passed\n"}
	stale := probe{pod: "b", status: 500, body: "[+]offers ok\n[-]watches failed: reason withheld\nhealthz check failed\n", err: errBroken}
	cases := map[string]struct {
		pods   known[[]string]
		probes []probe
		want   is
	}{
		"fresh":         {two, []probe{ready, ready}, is{OK, []string{"Each of 2 replicas", "3m0s"}}},
		"stale":         {two, []probe{ready, stale}, is{Wrong, []string{"b fails watches"}}},
		"no replica":    {there[[]string](nil), nil, is{Skipped, []string{"No replica"}}},
		"no right":      {failing[[]string](errForbidden), nil, is{Skipped, []string{"list pods"}}},
		"no right (2)":  {two, []probe{{pod: "a", status: 403, err: errForbidden}}, is{Skipped, []string{"pods/proxy", "proffer_watch_oldest_news_seconds"}}},
		"not reachable": {two, []probe{{pod: "a", status: 503, err: errBroken}}, is{Skipped, []string{"does not reach", "connection refused"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := c.want.diff(findNews("proffer-system", flags{probes: ":8081"}, c.pods, c.probes)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReplicasWithoutProbesAreNotAsked(t *testing.T) {
	got := findNews("proffer-system", flags{probes: "0"}, there([]string{"a"}), nil)
	if diff := (is{Skipped, []string{"--health-probe-bind-address"}}).diff(got); diff != "" {
		t.Error(diff)
	}
}

func TestTheVersionsOfLiqoAreRecognised(t *testing.T) {
	cases := map[string]struct {
		apis known[liqoAPIs]
		want is
	}{
		"v0":       {v0(), is{OK, []string{"Installed: Liqo v0.x (foreignclusters.discovery.liqo.io/v1alpha1)."}}},
		"v1":       {v1(), is{OK, []string{"Installed: Liqo v1 (resourceslices.authentication.liqo.io/v1beta1)."}}},
		"both":     {there(append(liqoAPIs(resourcesOfV0), resourcesOfV1...)), is{OK, []string{"v0.x", " and ", "v1"}}},
		"none":     {there[liqoAPIs](nil), is{Warning, []string{"not installed"}}},
		"too old":  {there(liqoAPIs{"resourceslices.authentication.liqo.io/v1alpha1"}), is{Warning, []string{"v1alpha1, but not "}}},
		"in part":  {there(liqoAPIs(resourcesOfV1[:1])), is{Warning, []string{resourcesOfV1[0] + ", but not " + resourcesOfV1[1]}}},
		"no right": {failing[liqoAPIs](errForbidden), is{Skipped, nil}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := c.want.diff(findLiqo(c.apis)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// service is the operator's, with a port for each form.
func service(with ...func(*corev1.Service)) *corev1.Service {
	return modify(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "proffer-system", Name: "proffer"},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.0.0.7", Selector: map[string]string{"app.kubernetes.io/name": "proffer"},
			Ports: []corev1.ServicePort{{Port: 7001, TargetPort: intstr.FromString("grpc")}, {Port: 6002, TargetPort: intstr.FromInt32(6002)}},
		},
	}, with...)
}

func TestThePortsOfTheServiceLeadToTheForms(t *testing.T) {
	const host = "proffer.proffer-system.svc"
	pools, flat := address{host, 7001, resourcereader.Pools}, address{host, 6002, resourcereader.Flat}
	cases := map[string]struct {
		deployment *appsv1.Deployment
		service    known[*corev1.Service]
		want       is
		at         []address
	}{
		"pools":           {deployment(), there(service()), is{OK, []string{host + ":7001 serves pools, for Liqo v0.9 and v0.10."}}, []address{pools}},
		"both forms":      {deployment(args("--grpc-flat-bind-address=:6002")), there(service()), is{OK, []string{"; " + host + ":6002 serves flat, for Liqo v0.6 to v0.8."}}, []address{pools, flat}},
		"flat":            {deployment(args("--grpc-form=flat")), there(service()), is{OK, []string{"7001 serves flat"}}, []address{{host, 7001, resourcereader.Flat}}},
		"flat is off":     {deployment(args("--grpc-flat-bind-address=0")), there(service()), is{OK, nil}, []address{pools}},
		"no Service":      {deployment(), failing[*corev1.Service](errNotFound), is{Wrong, []string{"no Service proffer"}}, nil},
		"no right":        {deployment(), failing[*corev1.Service](errForbidden), is{Skipped, []string{"get services"}}, nil},
		"other pods":      {deployment(), there(service(func(s *corev1.Service) { s.Spec.Selector["app"] = "web" })), is{Wrong, []string{"selects app=web"}}, nil},
		"no port":         {deployment(args("--grpc-bind-address=:9000")), there(service()), is{Wrong, []string{"No port of Service proffer leads to :9000, where the operator serves pools"}}, nil},
		"no port of flat": {deployment(args("--grpc-flat-bind-address=:6003")), there(service()), is{Wrong, []string{":6003, where the operator serves flat"}}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := flagsOf(c.deployment)
			test.Must(t, err)
			got, at := findAddress("proffer-system", there(c.deployment), f, c.service)
			if diff := c.want.diff(got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.at, at, cmp.AllowUnexported(address{})); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
	got, _ := findAddress("proffer-system", failing[*appsv1.Deployment](errNotFound), flags{}, there(service()))
	if diff := (is{Skipped, []string{"Without the Deployment"}}).diff(got); diff != "" {
		t.Error(diff)
	}
}

// controllerManager is Liqo's controller-manager of a version, with these arguments.
func controllerManager(version string, args ...string) known[*appsv1.Deployment] {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: liqoDeployment}}
	d.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "mesh", Image: "mesh:v0.1.0"},
		{Name: "controller-manager", Image: "ghcr.io/liqotech/liqo-controller-manager:" + version, Command: []string{"/usr/bin/liqo-controller-manager"}, Args: args},
	}
	return there(d)
}

func TestLiqoHasToReadFromTheOperatorInItsForm(t *testing.T) {
	const host, flag = "proffer.proffer-system.svc", "--resource-plugin-address="
	pools, both := []address{{host, 6001, resourcereader.Pools}}, []address{{host, 6001, resourcereader.Pools}, {host, 6002, resourcereader.Flat}}
	cases := map[string]struct {
		apis known[liqoAPIs]
		liqo known[*appsv1.Deployment]
		at   []address
		tls  bool
		want is
	}{
		"pools":                   {v0(), controllerManager("v0.10.3", flag+host+":6001"), pools, false, is{OK, []string{"Liqo v0.10 reads pools from " + host + ":6001"}}},
		"flat":                    {v0(), controllerManager("v0.8.3", flag+host+":6002"), both, false, is{OK, []string{"Liqo v0.8 reads flat"}}},
		"a short name":            {v0(), controllerManager("v0.9.4", flag+"proffer.proffer-system:6001"), pools, false, is{OK, nil}},
		"a long name":             {v0(), controllerManager("v0.9.4", flag+host+".cluster.local:6001"), pools, false, is{OK, nil}},
		"the Service's IP":        {v0(), controllerManager("v0.9.4", flag+"10.0.0.7:6001"), pools, false, is{OK, nil}},
		"a name of its namespace": {v0(), controllerManager("v0.9.4", flag+"proffer:6001"), pools, false, is{Warning, []string{"not from Proffer"}}},
		"another port":            {v0(), controllerManager("v0.9.4", flag+host+":6003"), pools, false, is{Warning, []string{"reads from " + host + ":6003, not from Proffer"}}},
		"the flag's value apart":  {v0(), controllerManager("v0.10.3", "--resource-plugin-address", host+":6001", "--other"), pools, false, is{OK, nil}},
		"CRDs that are left over": {v0(), controllerManager("v1.2.0"), nil, false, is{OK, []string{"Not needed", "v1.2.0"}}},
		"the old plugin":          {v0(), controllerManager("v0.10.3", flag+"liqo-fixed-resources-plugin.liqo:6001"), pools, false, is{Warning, []string{"not from Proffer", "resourcePluginAddress", host + ":6001"}}},
		"no address":              {v0(), controllerManager("v0.8.3"), both, false, is{Warning, []string{"no --resource-plugin-address", host + ":6002"}}},
		"the wrong form":          {v0(), controllerManager("v0.8.3", flag+host+":6001"), both, false, is{Wrong, []string{"understands only flat", "resourcePluginAddress", host + ":6002"}}},
		"a form not served":       {v0(), controllerManager("v0.8.3", flag+host+":6001"), pools, false, is{Wrong, []string{"component flat"}}},
		"flat for pools":          {v0(), controllerManager("v0.10.3", flag+host+":6001"), []address{{host, 6001, resourcereader.Flat}}, false, is{Wrong, []string{"--grpc-form=flat"}}},
		"TLS":                     {v0(), controllerManager("v0.10.3", flag+host+":6001"), pools, true, is{Wrong, []string{"TLS"}}},
		"an unknown version":      {v0(), controllerManager("latest", flag+host+":6001"), pools, false, is{Warning, []string{"names no version", "pools is for Liqo v0.9 and v0.10"}}},
		"Liqo v1 alone":           {v1(), failing[*appsv1.Deployment](errNotFound), pools, false, is{OK, []string{"Not needed"}}},
		"another namespace":       {v0(), failing[*appsv1.Deployment](errNotFound), pools, false, is{Skipped, []string{"--liqo-namespace"}}},
		"no right":                {v0(), failing[*appsv1.Deployment](errForbidden), pools, false, is{Skipped, []string{"get deployments.apps in liqo"}}},
		"no operator":             {v0(), controllerManager("v0.10.3"), nil, false, is{Skipped, nil}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := c.want.diff(findLiqoAddress("liqo", c.apis, c.liqo, there(service()), c.at, c.tls)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSettingsOfLiqoThatDoNotFitAreReported(t *testing.T) {
	const address = "--resource-plugin-address=x:1"
	cases := map[string]struct {
		apis    known[liqoAPIs]
		liqo    known[*appsv1.Deployment]
		classes int
		want    []is
	}{
		"as they should be": {v0(), controllerManager("v0.10.3", address, "--offer-update-threshold-percentage=0"), 2, []is{{OK, nil}}},
		"a threshold":       {v0(), controllerManager("v0.10.3", address, "--offer-update-threshold-percentage=20"), 1, []is{{Warning, []string{"up to 20%", "offerUpdateThresholdPercentage"}}}},
		"enforcement":       {v0(), controllerManager("v0.10.3", address, "--enable-resource-enforcement"), 2, []is{{Wrong, []string{"2 classes", "enableResourceEnforcement"}}}},
		"for one class":     {v0(), controllerManager("v0.10.3", address, "--enable-resource-enforcement"), 1, []is{{OK, nil}}},
		"without address":   {v0(), controllerManager("v0.10.3", "--offer-update-threshold-percentage=5"), 1, nil},
		"v1, not set":       {v1(), controllerManager("v1.2.0", address), 1, []is{{Warning, []string{"without requests", "defaultLimitsEnforcement"}}}},
		"v1 as installed":   {v1(), controllerManager("v1.2.0", "--default-limits-enforcement=None"), 1, []is{{Warning, []string{"without requests", "defaultLimitsEnforcement"}}}},
		"v1, strict":        {v1(), controllerManager("v1.2.0", "--default-limits-enforcement=Soft"), 1, []is{{OK, nil}}},
		"v1 without class":  {v1(), controllerManager("v1.2.0", "--default-limits-enforcement=None"), 0, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := findLiqoSettings(c.apis, c.liqo, c.classes)
			if len(got) != len(c.want) {
				t.Fatalf("findings %v, want %d", got, len(c.want))
			}
			for i, want := range c.want {
				if diff := want.diff(got[i]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestEachAdmissionPolicyHasToBeInstalledAndBound(t *testing.T) {
	own, err := ownGuards(flags{})
	test.Must(t, err)
	if want := []guard{{"proffer-csr-guard", "guards"}, {"proffer-slice-deletion-guard", "guards"}, {"proffer-slice-guard", "guards"}, {"proffer-slice-status-guard", "guards"}, {"proffer-resourcepolicy", "admission"}}; !cmp.Equal(want, own, cmp.AllowUnexported(guard{})) {
		t.Fatalf("guards %v, want %v", own, want)
	}
	for f, added := range map[flags]int{{servedClasses: "classes"}: 1, {placements: "placements"}: 3} {
		if more, err := ownGuards(f); err != nil || len(more) != len(own)+added {
			t.Fatalf("guards %v with %+v, error %v", more, f, err)
		}
	}
	broker, err := ownGuards(flags{orchestrate: true})
	if err != nil || len(broker) != len(own)+2 {
		t.Fatalf("guards %v with orchestrator, error %v", broker, err)
	}
	installed := func(names ...string) known[[]admissionregistrationv1.ValidatingAdmissionPolicy] {
		var all []admissionregistrationv1.ValidatingAdmissionPolicy
		for _, name := range names {
			all = append(all, admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return there(all)
	}
	bound := func(action admissionregistrationv1.ValidationAction, names ...string) known[[]admissionregistrationv1.ValidatingAdmissionPolicyBinding] {
		var all []admissionregistrationv1.ValidatingAdmissionPolicyBinding
		for _, name := range names {
			all = append(all, admissionregistrationv1.ValidatingAdmissionPolicyBinding{Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{action},
			}})
		}
		return there(all)
	}
	const deny, audit = admissionregistrationv1.Deny, admissionregistrationv1.Audit
	var names []string
	for _, g := range own {
		names = append(names, g.name)
	}
	cases := map[string]struct {
		apis     known[liqoAPIs]
		policies known[[]admissionregistrationv1.ValidatingAdmissionPolicy]
		bindings known[[]admissionregistrationv1.ValidatingAdmissionPolicyBinding]
		want     is
	}{
		"all":               {v1(), installed(names...), bound(deny, names...), is{OK, []string{"(5) are installed and bound."}}},
		"not needed":        {v0(), installed("proffer-resourcepolicy"), bound(deny, "proffer-resourcepolicy"), is{OK, []string{"(1) are installed and bound."}}},
		"one is missing":    {v1(), installed(names[1:]...), bound(deny, names...), is{Warning, []string{"Not installed: " + names[0] + "."}}},
		"one is not bound":  {v1(), installed(names...), bound(deny, names[1:]...), is{Warning, []string{"Without a binding that denies: " + names[0] + "."}}},
		"they do not deny":  {v1(), installed(names...), bound(audit, names...), is{Warning, []string{"Without a binding that denies: " + strings.Join(names, ", ")}}},
		"an old API server": {v1(), failing[[]admissionregistrationv1.ValidatingAdmissionPolicy](errNotFound), bound(deny), is{Warning, []string{"1.30"}}},
		"no right":          {v1(), failing[[]admissionregistrationv1.ValidatingAdmissionPolicy](errForbidden), bound(deny), is{Skipped, []string{"list validatingadmissionpolicies.admissionregistration.k8s.io"}}},
		"no right (2)":      {v1(), installed(), failing[[]admissionregistrationv1.ValidatingAdmissionPolicyBinding](errForbidden), is{Skipped, []string{"validatingadmissionpolicybindings"}}},
	}
	t.Run("a broker without the guard of providers", func(t *testing.T) {
		want := is{Warning, []string{
			"Not installed: proffer-virtual-node-guard, proffer-namespace-map-guard.", "Apply config/components/provider-guard: see docs/how-to/hold-consumers-to-their-part.md.",
		}}
		if diff := want.diff(findGuards(broker, installed(names...), bound(deny, names...))); diff != "" {
			t.Error(diff)
		}
	})
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := c.want.diff(findGuards(guardsFor(c.apis, own), c.policies, c.bindings)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCRDsOfAnotherVersionAreReported(t *testing.T) {
	own, err := ownCRDs(flags{})
	test.Must(t, err)
	const policies = "resourcepolicies.proffer.dev"
	found := func(change func(*apiextensionsv1.CustomResourceDefinition)) map[string]known[*apiextensionsv1.CustomResourceDefinition] {
		all := map[string]known[*apiextensionsv1.CustomResourceDefinition]{}
		for _, crd := range own {
			if crd = crd.DeepCopy(); crd.Name == policies {
				change(crd)
			}
			all[crd.Name] = there(crd)
		}
		return all
	}
	spec := func(crd *apiextensionsv1.CustomResourceDefinition) map[string]apiextensionsv1.JSONSchemaProps {
		return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	}
	same := found(func(*apiextensionsv1.CustomResourceDefinition) {})
	without := func(err error) map[string]known[*apiextensionsv1.CustomResourceDefinition] {
		all := maps.Clone(same)
		all[policies] = failing[*apiextensionsv1.CustomResourceDefinition](err)
		return all
	}
	cases := map[string]struct {
		found map[string]known[*apiextensionsv1.CustomResourceDefinition]
		want  is
	}{
		"as in this version": {same, is{OK, []string{"All 3 CRDs are installed, with the schemas of this version."}}},
		"missing":            {without(errNotFound), is{Wrong, []string{policies + " is not installed"}}},
		"no right":           {without(errForbidden), is{Skipped, []string{"get customresourcedefinitions"}}},
		"not served":         {found(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Served = false }), is{Wrong, []string{"does not serve v1alpha1"}}},
		"not established": {found(func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Message: "names conflict"}}
		}), is{Wrong, []string{"names conflict"}}},
		"another bound": {found(func(crd *apiextensionsv1.CustomResourceDefinition) {
			class := spec(crd)["class"]
			class.MaxLength = new(int64(7))
			spec(crd)["class"] = class
		}), is{Warning, []string{"differs in spec.class", "one version"}}},
		"a bound in a list": {found(func(crd *apiextensionsv1.CustomResourceDefinition) {
			in := spec(crd)["overrides"].Items.Schema.Properties
			offer := in["offer"]
			offer.Description = "other"
			in["offer"] = offer
		}), is{Warning, []string{"differs in spec.overrides[].offer"}}},
		"a field less": {found(func(crd *apiextensionsv1.CustomResourceDefinition) { delete(spec(crd), "reclaim") }), is{Warning, []string{"differs in spec.reclaim"}}},
		"no schema":    {found(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Schema = nil }), is{Warning, []string{"all fields"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := findCRDs(own, c.found)
			if len(got) != 1 {
				t.Fatalf("findings %v, want one", got)
			}
			if diff := c.want.diff(got[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheCRDsOfComponentsAreCheckedOnlyWhereTheyAreSwitchedOn(t *testing.T) {
	for f, want := range map[flags]int{{}: 3, {publishOffers: true}: 4, {orchestrate: true}: 4, {publishOffers: true, orchestrate: true}: 5} {
		own, err := ownCRDs(f)
		if err != nil || len(own) != want {
			t.Errorf("%+v: %d CRDs, want %d, error %v", f, len(own), want, err)
		}
	}
}

func TestRightsThatTheOperatorLacksAreReported(t *testing.T) {
	needed, err := neededRights("other", flags{})
	test.Must(t, err)
	texts := map[string]bool{}
	for _, r := range needed {
		texts[r.String()] = true
	}
	for _, want := range []string{
		"list nodes", "patch resourceslices.authentication.liqo.io/status", "create tokenreviews.authentication.k8s.io",
		"list customresourcedefinitions.apiextensions.k8s.io tenants.authentication.liqo.io", "update leases.coordination.k8s.io proffer.dev in other",
	} {
		if !texts[want] {
			t.Errorf("the rights lack %q: %v", want, needed)
		}
	}
	catalog, err := neededRights("other", flags{publishOffers: true})
	test.Must(t, err)
	if !slices.ContainsFunc(catalog, func(r manifests.Right) bool { return r.String() == "update offers.proffer.dev" }) {
		t.Errorf("with the catalog, the rights lack that to write Offers: %v", catalog)
	}
	for name, f := range map[string]flags{"served classes": {servedClasses: "classes"}, "placements": {placements: "placements"}} {
		if more, err := neededRights("other", f); err != nil || len(more) <= len(needed) {
			t.Errorf("with %s %d rights, without %d, error %v", name, len(more), len(needed), err)
		}
	}
	cases := map[string]struct {
		denied known[[]manifests.Right]
		want   is
	}{
		"all":      {there[[]manifests.Right](nil), is{OK, []string{"other/proffer has all 3 rights"}}},
		"one":      {there(needed[:1]), is{Wrong, []string{"other/proffer may not " + needed[0].String() + ".", "config/rbac"}}},
		"many":     {there(needed[:7]), is{Wrong, []string{needed[3].String() + ", and 3 more."}}},
		"no right": {failing[[]manifests.Right](errForbidden), is{Skipped, []string{"create subjectaccessreviews.authorization.k8s.io"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := c.want.diff(findAccess("other/proffer", 3, c.denied)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// policyIn is a policy in the state that its condition Ready says.
func policyIn(name string, status metav1.ConditionStatus, reason string, with ...func(*v1alpha1.ResourcePolicySpec)) v1alpha1.ResourcePolicy {
	p := kubetest.Policy(name, with...)
	p.Generation = 2
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, ObservedGeneration: 2, Message: "of the operator"}}
	return *p
}

func TestEachPolicyThatIsNotReadyIsReported(t *testing.T) {
	good := policyIn("good", metav1.ConditionTrue, v1alpha1.ReasonOffering)
	dry := policyIn("dry", metav1.ConditionTrue, v1alpha1.ReasonDryRun)
	empty := policyIn("empty", metav1.ConditionFalse, v1alpha1.ReasonNoNodes)
	away := policyIn("away", metav1.ConditionFalse, v1alpha1.ReasonSourceUnavailable)
	edited := policyIn("edited", metav1.ConditionTrue, v1alpha1.ReasonOffering)
	edited.Generation++
	invalid := policyIn("invalid", metav1.ConditionFalse, v1alpha1.ReasonInvalid, kubetest.Fixed("cpu", "-1"))
	cases := map[string]struct {
		policies known[[]v1alpha1.ResourcePolicy]
		want     []is
	}{
		"good":     {there([]v1alpha1.ResourcePolicy{good, dry}), []is{{OK, []string{"All ResourcePolicies (2) are Ready."}}}},
		"none":     {there[[]v1alpha1.ResourcePolicy](nil), []is{{Warning, []string{"no ResourcePolicy"}}}},
		"no right": {failing[[]v1alpha1.ResourcePolicy](errForbidden), []is{{Skipped, []string{"list resourcepolicies.proffer.dev"}}}},
		"no CRD":   {failing[[]v1alpha1.ResourcePolicy](errNotFound), []is{{Skipped, nil}}},
		"each that is not good": {there([]v1alpha1.ResourcePolicy{good, empty, away, edited, invalid}), []is{
			{Warning, []string{"empty is not Ready, NoNodes: of the operator"}},
			{Warning, []string{"away is not Ready, SourceUnavailable: of the operator"}},
			{Warning, []string{"edited was not evaluated since it was edited"}},
			{Wrong, []string{"invalid is invalid and decides nothing: spec.offer.fixed[cpu]"}},
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := findPolicies(c.policies)
			if len(got) != len(c.want) {
				t.Fatalf("findings %v, want %d", got, len(c.want))
			}
			for i, want := range c.want {
				if diff := want.diff(got[i]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestSlicesNeedAPolicyWithAClass(t *testing.T) {
	in := func(class string, with ...func(*v1alpha1.ResourcePolicySpec)) v1alpha1.ResourcePolicy {
		return policyIn("p", metav1.ConditionTrue, v1alpha1.ReasonOffering, append(with, func(s *v1alpha1.ResourcePolicySpec) { s.Class = class })...)
	}
	dry := func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeDryRun }
	cases := map[string]struct {
		apis     known[liqoAPIs]
		policies []v1alpha1.ResourcePolicy
		want     []is
	}{
		"two":          {v1(), []v1alpha1.ResourcePolicy{in("gold"), in("basic"), in("gold"), in("")}, []is{{OK, []string{"in basic, gold."}}}},
		"none":         {v1(), []v1alpha1.ResourcePolicy{in(""), in("gold", dry)}, []is{{Warning, []string{"No policy in force has a class"}}}},
		"no slices":    {v0(), []v1alpha1.ResourcePolicy{in("")}, nil},
		"no policies":  {v1(), nil, nil},
		"both of Liqo": {there(append(liqoAPIs(resourcesOfV0), resourcesOfV1...)), []v1alpha1.ResourcePolicy{in("")}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := findClasses(c.apis, there(c.policies))
			if len(got) != len(c.want) {
				t.Fatalf("findings %v, want %d", got, len(c.want))
			}
			for i, want := range c.want {
				if diff := want.diff(got[i]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestAPolicyThatEnforcesPlacementNeedsTheComponent(t *testing.T) {
	enforcing := *kubetest.Policy("gold", func(s *v1alpha1.ResourcePolicySpec) { s.Slices = &v1alpha1.Slices{EnforcePlacement: true} })
	free := *kubetest.Policy("silver", func(s *v1alpha1.ResourcePolicySpec) { s.Slices = &v1alpha1.Slices{} })
	all := there([]v1alpha1.ResourcePolicy{free, enforcing, *kubetest.Policy("plain")})
	got := findPlacement(flags{}, all)
	if len(got) != 1 {
		t.Fatalf("findings %v, want one", got)
	}
	if diff := (is{Warning, []string{"no effect without the component slice-pod-guard: gold."}}).diff(got[0]); diff != "" {
		t.Error(diff)
	}
	if got := findPlacement(flags{placements: "placements"}, all); len(got) > 0 {
		t.Errorf("findings %v with the component", got)
	}
	if got := findPlacement(flags{}, there([]v1alpha1.ResourcePolicy{free})); len(got) > 0 {
		t.Errorf("findings %v without such a policy", got)
	}
}

func TestPodsBeyondAGrantAreReported(t *testing.T) {
	list := func(cpu string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(cpu)} }
	grant := func(consumer, slice, cpu string, with ...func(*v1alpha1.Grant)) v1alpha1.Grant {
		return *modify(&v1alpha1.Grant{Spec: v1alpha1.GrantSpec{
			ClusterID: consumer, Slice: v1alpha1.GrantedSlice{Name: slice}, GrantedShare: v1alpha1.GrantedShare{Resources: list(cpu)},
		}}, with...)
	}
	pod := func(consumer, slice, cpu string, with ...func(*corev1.Pod)) corev1.Pod {
		return *modify(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
				"offloading.liqo.io/origin": consumer, "liqo.io/creator-user": liqo.SliceCreator(slice, consumer),
			}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list(cpu)}}}},
		}, with...)
	}
	sidecar := func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{
			RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Resources: corev1.ResourceRequirements{Requests: list("2")},
		}}
	}
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	foreign := func(p *corev1.Pod) { p.Labels["offloading.liqo.io/origin"] = "oslo" }
	moved := func(g *v1alpha1.Grant) {
		g.Spec.Earlier = []v1alpha1.GrantedShare{{Class: "silver", Resources: list("2")}}
	}
	limited := func(g *v1alpha1.Grant) { g.Spec.Resources["pods"] = resource.MustParse("1") }
	// Its pods request what another controller granted in the present class.
	accepted := func(g *v1alpha1.Grant) {
		g.Spec.Class, g.Spec.State, g.Spec.Resources = "platinum", v1alpha1.GrantGranted, nil
	}
	released := func(g *v1alpha1.Grant) { g.Spec.State = v1alpha1.GrantReleased }
	own := func(g *v1alpha1.Grant) { g.Spec.Class, g.Spec.State = "gold", v1alpha1.GrantGranted }
	unraised := func(g *v1alpha1.Grant) { g.Spec.Class, g.Spec.Resources = "gold", nil }
	const full = "The pods of each ResourceSlice (1) request no more than it was granted."
	cases := map[string]struct {
		grants []v1alpha1.Grant
		pods   []corev1.Pod
		want   is
	}{
		"no pods":                      {[]v1alpha1.Grant{grant("rome", "mine", "4")}, nil, is{OK, []string{full}}},
		"all of it":                    {[]v1alpha1.Grant{grant("rome", "mine", "4")}, []corev1.Pod{pod("rome", "mine", "1"), pod("rome", "mine", "3")}, is{OK, []string{full}}},
		"a sidecar":                    {[]v1alpha1.Grant{grant("rome", "mine", "4")}, []corev1.Pod{pod("rome", "mine", "3", sidecar)}, is{Warning, []string{"mine of rome requests cpu 5 of 4.", "docs/explanation/trust.md"}}},
		"a resource that has no grant": {[]v1alpha1.Grant{*modify(new(grant("rome", "mine", "4")), func(g *v1alpha1.Grant) { g.Spec.Resources = nil })}, []corev1.Pod{pod("rome", "mine", "500m")}, is{Warning, []string{"cpu 500m of 0"}}},
		"more pods":                    {[]v1alpha1.Grant{grant("rome", "mine", "4", limited)}, []corev1.Pod{pod("rome", "mine", "1"), pod("rome", "mine", "1")}, is{Warning, []string{"mine of rome requests pods 2 of 1."}}},
		"a small ended pod":            {[]v1alpha1.Grant{grant("rome", "mine", "4")}, []corev1.Pod{pod("rome", "mine", "300m", ended)}, is{OK, []string{full}}},
		"a pod of another consumer":    {[]v1alpha1.Grant{grant("rome", "mine", "4")}, []corev1.Pod{pod("rome", "mine", "9", foreign)}, is{OK, []string{full}}},
		"a pod of another slice":       {[]v1alpha1.Grant{grant("rome", "mine", "4")}, []corev1.Pod{pod("rome", "other", "9")}, is{OK, []string{full}}},
		"an earlier class":             {[]v1alpha1.Grant{grant("rome", "mine", "4", moved)}, []corev1.Pod{pod("rome", "mine", "6")}, is{OK, []string{full}}},
		"an earlier slice of its name": {[]v1alpha1.Grant{grant("rome", "mine", "4"), grant("rome", "mine", "2")}, []corev1.Pod{pod("rome", "mine", "6")}, is{OK, []string{full}}},
		"another controller's":         {[]v1alpha1.Grant{grant("rome", "mine", "0", moved, accepted)}, []corev1.Pod{pod("rome", "mine", "9")}, is{OK, []string{full}}},
		"another controller's, gone":   {[]v1alpha1.Grant{grant("rome", "mine", "0", moved, accepted, released)}, []corev1.Pod{pod("rome", "mine", "9")}, is{OK, []string{full}}},
		"another's after a gone one":   {[]v1alpha1.Grant{grant("rome", "mine", "4", own, released), grant("rome", "mine", "0", moved, accepted)}, []corev1.Pod{pod("rome", "mine", "9")}, is{OK, []string{full}}},
		"granted after another's":      {[]v1alpha1.Grant{grant("rome", "mine", "0", moved, accepted, released), grant("rome", "mine", "4", own)}, []corev1.Pod{pod("rome", "mine", "9")}, is{Warning, []string{"cpu 9 of 6"}}},
		"granted nothing after a move": {[]v1alpha1.Grant{grant("rome", "mine", "0", moved, unraised)}, []corev1.Pod{pod("rome", "mine", "9")}, is{Warning, []string{"cpu 9 of 2"}}},
		"two consumers":                {[]v1alpha1.Grant{grant("rome", "mine", "4"), grant("oslo", "mine", "1")}, []corev1.Pod{pod("rome", "mine", "5"), pod("oslo", "mine", "2")}, is{Warning, []string{"mine of oslo requests cpu 2 of 1, mine of rome requests cpu 5 of 4."}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := findGrants("proffer-system", []string{"gold"}, there(c.grants), there(c.pods))
			if len(got) != 1 {
				t.Fatalf("findings %v, want one", got)
			}
			if diff := c.want.diff(got[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
	one := there([]v1alpha1.Grant{grant("rome", "mine", "4")})
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	for name, c := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"two ended pods":             {[]corev1.Pod{pod("rome", "mine", "1", ended), pod("rome", "mine", "2", failed)}, "mine of rome has cpu 3 of 4."},
		"one beside a running one":   {[]corev1.Pod{pod("rome", "mine", "400m", ended), pod("rome", "mine", "2")}, "mine of rome has cpu 400m of 4."},
		"one that is being deleted":  {[]corev1.Pod{pod("rome", "mine", "3", ended, deleted)}, ""},
		"one of another consumer":    {[]corev1.Pod{pod("rome", "mine", "3", ended, foreign)}, ""},
		"one of a slice that is not": {[]corev1.Pod{pod("rome", "other", "3", ended)}, ""},
	} {
		got := findGrants("proffer-system", []string{"gold"}, one, there(c.pods))
		if diff := (is{OK, []string{full}}).diff(got[0]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if c.want == "" && len(got) == 1 {
			continue
		}
		if len(got) != 2 {
			t.Errorf("%s: findings %v", name, got)
		} else if diff := (is{Warning, []string{c.want, "counts pods until they are deleted", "ttlSecondsAfterFinished"}}).diff(got[1]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := findGrants("proffer-system", []string{"gold"}, there([]v1alpha1.Grant{}), failing[[]corev1.Pod](errForbidden)); len(got) > 0 {
		t.Errorf("findings %v without a grant", got)
	}
	for right, got := range map[string][]Finding{
		"You may not list pods.":                                 findGrants("proffer-system", []string{"gold"}, one, failing[[]corev1.Pod](errForbidden)),
		"You may not list grants.proffer.dev in proffer-system.": findGrants("proffer-system", []string{"gold"}, failing[[]v1alpha1.Grant](errForbidden), there([]corev1.Pod{})),
	} {
		if diff := (is{Skipped, []string{right}}).diff(got[0]); diff != "" {
			t.Error(diff)
		}
	}
}
