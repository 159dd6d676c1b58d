package deploy

import (
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/nodestest"
)

// gracefulStop is how long the operator may take to end after SIGTERM.
const gracefulStop = 30 * time.Second

func TestApplyingASecondTimeChangesNothing(t *testing.T) {
	applyAgain(t, config+"/default", len(render(t)))
}

// applyAgain applies the manifests in dir once more, and fails the test if that writes an object.
func applyAgain(t *testing.T, dir string, objects int) {
	t.Helper()
	versions := func() string {
		return mustKubectl(t, "get", "-k", dir, "-o",
			`jsonpath={range .items[*]}{.kind}/{.metadata.name} at {.metadata.resourceVersion}{"\n"}{end}`)
	}
	before := versions()
	if got := strings.Count(before, "\n"); got != objects {
		t.Fatalf("%d objects exist, %d are rendered:\n%s", got, objects, before)
	}
	mustKubectl(t, "apply", "-k", dir)
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("applying again wrote (-before +after):\n%s", diff)
	}
}

// monitoringCRDs installs the kinds of the Prometheus operator that components have.
func monitoringCRDs(t *testing.T) {
	t.Helper()
	installCRD(t, "testdata/servicemonitor-crd.yaml")
	installCRD(t, "testdata/prometheusrule-crd.yaml")
}

func TestEachComponentIsAccepted(t *testing.T) {
	monitoringCRDs(t)
	all := components(t)
	if len(all) == 0 {
		t.Fatal("there are no components")
	}
	sets := [][]string{all}
	for _, c := range all {
		sets = append(sets, []string{c})
	}
	for _, set := range sets {
		t.Run(strings.Join(set, "+"), func(t *testing.T) {
			objects := render(t, set...)
			with := names(objects)
			for _, name := range names(renderBase(t)) {
				if !slices.Contains(with, name) {
					t.Errorf("%s is not rendered", name)
				}
			}
			// TestMain has applied all objects that are the same without the component.
			applied := renderAt(t, manifests)
			changed := slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool {
				return slices.ContainsFunc(applied, func(a *unstructured.Unstructured) bool {
					return equality.Semantic.DeepEqual(a.Object, u.Object)
				})
			})
			if len(changed) == 0 {
				t.Fatal("the component changes nothing")
			}
			put(t, dryRun(), changed)
		})
	}
}

// Kubernetes before 1.30 has no ValidatingAdmissionPolicies and does not enable the preStop action
// sleep by default. Before 1.27 it has no unhealthyPodEvictionPolicy.
func TestOlderKubernetesGetsOnlyWhatItSupports(t *testing.T) {
	if slices.Equal(names(render(t)), names(renderBase(t))) {
		t.Error("config/default adds nothing to config/base")
	}
	older := render(t, withoutAdmissionPolicies)
	if diff := cmp.Diff(names(renderBase(t)), names(older)); diff != "" {
		t.Errorf("the objects differ from those without guards (-want +got):\n%s", diff)
	}
	if c := container(t, deployment(t, older)); c.Lifecycle != nil {
		t.Errorf("the container has the lifecycle %+v, want none", c.Lifecycle)
	}
	budget := find[policyv1.PodDisruptionBudget](t, older, "PodDisruptionBudget", "proffer")
	if p := budget.Spec.UnhealthyPodEvictionPolicy; p != nil {
		t.Errorf("the PodDisruptionBudget has unhealthyPodEvictionPolicy %s", *p)
	}
	put(t, dryRun(), renderBase(t))
}

func TestTheDeploymentAllowsARollingUpdateWithoutDowntime(t *testing.T) {
	var d appsv1.Deployment
	get(t, "proffer", &d)
	pod := d.Spec.Template.Spec

	if *d.Spec.Replicas < 2 {
		t.Errorf("replicas = %d, want at least 2: one replica must be able to stop", *d.Spec.Replicas)
	}
	if u := d.Spec.Strategy.RollingUpdate; d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType ||
		u.MaxUnavailable.IntValue() != 0 || u.MaxSurge.IntValue() < 1 {
		t.Errorf("strategy = %+v, want a rolling update that starts the new replica before it stops an old one",
			d.Spec.Strategy)
	}
	if d.Spec.MinReadySeconds < 1 {
		t.Error("minReadySeconds is 0: an old replica would stop before the nodes know of the new one")
	}
	c := container(t, &d)
	if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Sleep == nil {
		t.Fatal("there is no preStop sleep: SIGTERM would overtake the removal of the endpoint")
	}
	sleep := time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
	if sleep < 5*time.Second {
		t.Errorf("preStop sleeps %v, want at least 5s", sleep)
	}
	grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
	if grace < sleep+gracefulStop+10*time.Second {
		t.Errorf("the grace period %v does not cover preStop %v and a graceful stop of %v with 10s to spare", grace,
			sleep, gracefulStop)
	}
	if c.ReadinessProbe.HTTPGet.Path != "/readyz" {
		t.Errorf("the readiness probe asks %q, want /readyz", c.ReadinessProbe.HTTPGet.Path)
	}
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe} {
		if probe.HTTPGet.Path != "/healthz" {
			t.Errorf("the %s probe asks %q: only readiness may depend on caches and the API server", name, probe.HTTPGet.Path)
		}
	}
	for _, s := range pod.TopologySpreadConstraints {
		if s.WhenUnsatisfiable != corev1.ScheduleAnyway {
			t.Errorf("the spread over %s is required: a cluster with one node could not roll", s.TopologyKey)
		}
	}
	if !slices.ContainsFunc(pod.TopologySpreadConstraints, func(s corev1.TopologySpreadConstraint) bool {
		return s.TopologyKey == corev1.LabelHostname
	}) {
		t.Error("no constraint spreads the replicas over nodes")
	}
	if a := pod.Affinity.PodAntiAffinity; len(a.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		t.Error("the anti-affinity is required: a cluster with two nodes could not roll with a surge")
	}

	var budget policyv1.PodDisruptionBudget
	get(t, "proffer", &budget)
	if budget.Spec.MaxUnavailable.IntValue() != 1 || budget.Spec.MinAvailable != nil {
		t.Errorf("the budget is %+v, want one replica at a time", budget.Spec)
	}
}

func TestEverySelectorMatchesOnlyTheReplicas(t *testing.T) {
	objects := render(t, "networkpolicy")
	pod := labels.Set(deployment(t, objects).Spec.Template.Labels)
	selectors := map[string]labels.Selector{}
	for _, u := range objects {
		for _, path := range [][]string{{"spec", "selector"}, {"spec", "podSelector"}} {
			if m, ok, _ := unstructured.NestedMap(u.Object, path...); ok {
				selectors[u.GetKind()+"/"+u.GetName()] = selectorOf(t, m)
			}
		}
	}
	want := []string{"Deployment/proffer", "NetworkPolicy/proffer", "PodDisruptionBudget/proffer", "Service/proffer",
		"Service/proffer-metrics"}
	if got := slices.Sorted(maps.Keys(selectors)); !slices.Equal(got, want) {
		t.Fatalf("the objects with pod selectors are %v, want %v", got, want)
	}
	other := labels.Set{"app.kubernetes.io/name": "another"}
	for name, s := range selectors {
		if !s.Matches(pod) {
			t.Errorf("%s selects %q, which does not match the pods %v", name, s, pod)
		}
		if s.Empty() || s.Matches(other) {
			t.Errorf("%s selects %q, which matches other pods", name, s)
		}
	}
}

// Of those that NetworkPolicies apply to, nobody needs the probes but whoever may read the metrics: the
// kubelet connects from the node of the pod.
func TestTheNetworkPolicyOpensNoPortToEverybody(t *testing.T) {
	policy := find[networkingv1.NetworkPolicy](t, render(t, "networkpolicy"), "NetworkPolicy", "proffer")
	open := map[int]int{}
	for i, rule := range policy.Spec.Ingress {
		if len(rule.From) == 0 {
			t.Errorf("rule %d lets anybody connect to %v", i, rule.Ports)
		}
		for _, port := range rule.Ports {
			open[port.Port.IntValue()] = i
		}
	}
	if want := map[int]int{6001: 0, 6002: 0, 8443: 1, 8081: 1}; !maps.Equal(open, want) {
		t.Errorf("the rules of the ports are %v, want %v", open, want)
	}
}

func TestPortsServicesFlagsAndProbesAgree(t *testing.T) {
	for _, set := range [][]string{nil, {"flat"}, {"tls"}, {"tls", "flat"}} {
		t.Run(strings.Join(set, "+"), func(t *testing.T) {
			objects := render(t, set...)
			c := container(t, deployment(t, objects))
			listening := map[int32]bool{}
			for _, arg := range c.Args {
				if name, value, ok := strings.Cut(arg, "="); ok && strings.HasSuffix(name, "-bind-address") {
					_, port, err := net.SplitHostPort(value)
					if err != nil {
						t.Fatalf("%s: %v", arg, err)
					}
					var n int32
					if _, err := fmt.Sscan(port, &n); err != nil {
						t.Fatalf("%s: %v", arg, err)
					}
					listening[n] = true
				}
			}
			named := map[string]int32{}
			for _, p := range c.Ports {
				named[p.Name] = p.ContainerPort
				if !listening[p.ContainerPort] {
					t.Errorf("no flag listens on port %s %d: %v", p.Name, p.ContainerPort, c.Args)
				}
			}
			if len(named) != len(listening) {
				t.Errorf("the container names the ports %v, the flags listen on %v", named, listening)
			}
			for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if _, ok := named[probe.HTTPGet.Port.StrVal]; !ok {
					t.Errorf("a probe uses port %s, which the container does not name", &probe.HTTPGet.Port)
				}
			}
			for _, name := range []string{"proffer", "proffer-metrics"} {
				for _, p := range find[corev1.Service](t, objects, "Service", name).Spec.Ports {
					if named[p.TargetPort.StrVal] != p.Port {
						t.Errorf("service %s sends port %d to %q, which is %d", name, p.Port, p.TargetPort.StrVal,
							named[p.TargetPort.StrVal])
					}
				}
			}
		})
	}
}

// A replica notifies only callers whose reads it has answered. A mesh that detects HTTP/2 balances
// each call, which separates Liqo's stream from its reads, so that Liqo would receive no
// notifications.
func TestServicePortsTellMeshesToBalanceConnectionsNotCalls(t *testing.T) {
	for _, set := range [][]string{nil, {"flat"}, {"tls"}, {"tls", "flat"}} {
		for _, p := range find[corev1.Service](t, render(t, set...), "Service", "proffer").Spec.Ports {
			if got := ptr.Deref(p.AppProtocol, ""); got != "tcp" {
				t.Errorf("%v: port %d has the application protocol %q, want tcp", set, p.Port, got)
			}
		}
	}
}

func TestTLSFilesLieWhereTheSecretIsMounted(t *testing.T) {
	d := deployment(t, render(t, "tls"))
	c := container(t, d)
	if len(c.VolumeMounts) != 1 || !c.VolumeMounts[0].ReadOnly {
		t.Fatalf("mounts = %+v, want only the secret, read-only", c.VolumeMounts)
	}
	for flag, file := range map[string]string{"--grpc-tls-cert": "tls.crt", "--grpc-tls-key": "tls.key",
		"--grpc-client-ca": "ca.crt"} {
		if want := flag + "=" + c.VolumeMounts[0].MountPath + "/" + file; !slices.Contains(c.Args, want) {
			t.Errorf("args %v lack %s", c.Args, want)
		}
	}
	// Only group 65532 can read it, through fsGroup.
	if secret := d.Spec.Template.Spec.Volumes[0].Secret; secret == nil || *secret.DefaultMode != 0o440 {
		t.Errorf("volume = %+v, want a secret of mode 0440", d.Spec.Template.Spec.Volumes[0])
	}
}

// Grafana's sidecar imports each file of a ConfigMap with this label whose name ends in .json. The
// name of the ConfigMap stays the same, so that an update replaces the dashboard.
func TestTheDashboardIsAConfigMapThatGrafanaImports(t *testing.T) {
	m := find[corev1.ConfigMap](t, render(t, "dashboard"), "ConfigMap", "proffer-dashboard")
	if got := m.Labels["grafana_dashboard"]; got != "1" {
		t.Errorf("the label grafana_dashboard is %q, want 1", got)
	}
	file := test.Read(t, config+"/components/dashboard/proffer.json")
	if diff := cmp.Diff(map[string]string{"proffer.json": file}, m.Data); diff != "" {
		t.Errorf("the data differ from the file (-want +got):\n%s", diff)
	}
}

// imageTag matches the valid tags, see github.com/distribution/reference. The kubelet does not pull
// anything else.
var imageTag = regexp.MustCompile(`^[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}$`)

// TestTheImageIsSetByAnOverlay also checks that the default image can never be pulled, whoever owns
// its name in a public registry.
func TestTheImageIsSetByAnOverlay(t *testing.T) {
	name, tag, _ := strings.Cut(container(t, deployment(t, render(t))).Image, ":")
	if name != "controller" || imageTag.MatchString(tag) || !strings.Contains(tag, "set-the-image") {
		t.Errorf("the image is %s:%s, want the name controller, which overlays replace, "+
			"and an invalid tag with the advice set-the-image", name, tag)
	}
	digest := "sha256:" + strings.Repeat("0a", 32)
	for lines, want := range map[string]string{
		"newName: registry.example.com/proffer, newTag: v0.1.0":           "registry.example.com/proffer:v0.1.0",
		"newName: localhost:5000/proffer, newTag: v0.1.0":                 "localhost:5000/proffer:v0.1.0",
		"newName: registry.example.com/proffer, digest: '" + digest + "'": "registry.example.com/proffer@" + digest,
		// A missing newTag does not mean latest.
		"newName: registry.example.com/proffer": "registry.example.com/proffer:" + tag,
	} {
		dir := overlayWith(t, "images: [{name: controller, "+lines+"}]\n")
		if got := container(t, deployment(t, renderAt(t, dir))).Image; got != want {
			t.Errorf("with %s the image is %s, want %s", lines, got, want)
		}
	}
}

func get[T client.Object](t *testing.T, name string, into T) {
	t.Helper()
	test.Must(t, cluster.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into))
}

// remove deletes the object at the end of the test.
func remove(t *testing.T, obj client.Object) {
	t.Helper()
	nodestest.DeleteAfter(t, cluster.client, obj)
}

func selectorOf(t *testing.T, m map[string]any) labels.Selector {
	t.Helper()
	// A Service's selector is a plain map; all others are label selectors.
	inner, ok := m["matchLabels"].(map[string]any)
	if !ok {
		inner = m
	}
	set := map[string]string{}
	for k, v := range inner {
		s, ok := v.(string)
		if !ok {
			t.Fatalf("selector %v: want plain labels only", m)
		}
		set[k] = s
	}
	return labels.SelectorFromValidatedSet(set)
}
