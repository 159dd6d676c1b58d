package helm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Prefixes of the lines that changes returns.
const (
	pod       = "Deployment/proffer-system/proffer spec.template.spec."
	container = pod + "containers.0."
	service   = "Service/proffer-system/proffer "
	network   = "NetworkPolicy/proffer-system/proffer "
	board     = "ConfigMap/proffer-system/proffer-dashboard"
	monitor   = "ServiceMonitor/proffer-system/proffer "
	file      = "ConfigMap/proffer-system/proffer-configuration"
	content   = file + " data.config.yaml."
)

// books are values with which the configuration file has the arguments of an accounting database.
const books = "configuration: {clusterID: milan}\naccounting: {enabled: true}"

// effects has at least one case for each value: the value, what it is set to, other values that are
// set before and after, and all lines that changes returns.
var effects = []struct {
	value, yaml, with string
	want              []string
}{
	{"image.repository", "image: {repository: localhost:5000/proffer}", "", []string{container + "image: registry.example.com/proffer:v0.1.0 -> localhost:5000/proffer:v0.1.0"}},
	{"image.tag", "image: {tag: v9}", "", []string{container + "image: registry.example.com/proffer:v0.1.0 -> registry.example.com/proffer:v9"}},
	{"image.digest", "image: {digest: 'sha256:" + zeros + "'}", "", []string{container + "image: registry.example.com/proffer:v0.1.0 -> registry.example.com/proffer@sha256:" + zeros}},
	{"image.pullPolicy", "image: {pullPolicy: Always}", "", []string{container + "imagePullPolicy: IfNotPresent -> Always"}},
	{"imagePullSecrets", "imagePullSecrets: [{name: a}]", "", []string{pod + "imagePullSecrets.0.name: none -> a"}},
	{"replicas", "replicas: 3", "", []string{"Deployment/proffer-system/proffer spec.replicas: 2 -> 3"}},
	{"batchPeriod", "batchPeriod: 1s", "", []string{container + "args.4: none -> --batch-period=1s"}},
	{"grpc.form", "grpc: {form: flat}", "", []string{container + "args.4: none -> --grpc-form=flat"}},
	{"log.level", "log: {level: debug}", "", []string{container + "args.4: none -> --zap-log-level=debug"}},
	{"log.level", "log: {level: 3}", "", []string{container + "args.4: none -> --zap-log-level=3"}},
	{"log.format", "log: {format: console}", "", []string{container + "args.4: none -> --zap-encoder=console"}},
	{"extraArgs", "extraArgs: [--pprof-bind-address=:6060]", "flat: {enabled: true}", []string{container + "args.5: none -> --pprof-bind-address=:6060"}},
	{"extraEnv", "extraEnv: [{name: A, value: b}]", "", []string{container + "env.1.name: none -> A", container + "env.1.value: none -> b"}},
	{"configuration", "configuration: {clusterID: milan}", "", []string{
		file + ": none -> an object", container + "args.4: none -> --config=/etc/proffer/configuration/config.yaml",
		container + "volumeMounts.0.mountPath: none -> /etc/proffer/configuration", container + "volumeMounts.0.name: none -> configuration",
		container + "volumeMounts.0.readOnly: none -> true", pod + "volumes.0.configMap.name: none -> proffer-configuration", pod + "volumes.0.name: none -> configuration",
	}},
	{"configuration", "configuration: {flags: {grpc-form: flat}}", "configuration: {clusterID: milan}", []string{content + "flags.grpc-form: none -> flat"}},
	{"accounting.enabled", "accounting: {enabled: true}", "configuration: {clusterID: milan, reconcilers: [Audit], pluginConfig: [{name: Audit}]}", []string{
		content + "pluginConfig.1.args.dsnFile: none -> /etc/proffer/database/dsn", content + "pluginConfig.1.args.engine: none -> PostgreSQL",
		content + "pluginConfig.1.name: none -> MetaSync", content + "reconcilers.1: none -> MetaSync",
		container + "volumeMounts.1.mountPath: none -> /etc/proffer/database", container + "volumeMounts.1.name: none -> database", container + "volumeMounts.1.readOnly: none -> true",
		pod + "volumes.1.name: none -> database", pod + "volumes.1.secret.defaultMode: none -> 288", pod + "volumes.1.secret.secretName: none -> proffer-database",
	}},
	{"accounting.engine", "accounting: {engine: MySQL}", books, []string{content + "pluginConfig.0.args.engine: PostgreSQL -> MySQL"}},
	{"accounting.secretName", "accounting: {secretName: mine}", books, []string{pod + "volumes.1.secret.secretName: proffer-database -> mine"}},
	{"accounting.ca", "accounting: {ca: true}", books, []string{content + "pluginConfig.0.args.tls.caFile: none -> /etc/proffer/database/ca.crt"}},
	{"accounting.migrate", "accounting: {migrate: Manual}", books, []string{content + "pluginConfig.0.args.migrate: none -> Manual"}},
	{"accounting.sampleSeconds", "accounting: {sampleSeconds: 10}", books, []string{content + "pluginConfig.0.args.sampleSeconds: none -> 10"}},
	{"accounting.retentionDays", "accounting: {retentionDays: 400}", books, []string{content + "pluginConfig.0.args.retentionDays: none -> 400"}},
	{"flat.enabled", "flat: {enabled: true}", "", []string{
		container + "args.4: none -> --grpc-flat-bind-address=:6002",
		container + "ports.3.containerPort: none -> 6002", container + "ports.3.name: none -> grpc-flat", container + "ports.3.protocol: none -> TCP",
		service + "spec.ports.1.appProtocol: none -> tcp", service + "spec.ports.1.name: none -> grpc-flat", service + "spec.ports.1.port: none -> 6002",
		service + "spec.ports.1.protocol: none -> TCP", service + "spec.ports.1.targetPort: none -> grpc-flat",
	}},
	{"tls.enabled", "tls: {enabled: true}", "", []string{
		container + "args.4: none -> --grpc-tls-cert=/etc/proffer/tls/tls.crt", container + "args.5: none -> --grpc-tls-key=/etc/proffer/tls/tls.key", container + "args.6: none -> --grpc-client-ca=/etc/proffer/tls/ca.crt",
		container + "volumeMounts.0.mountPath: none -> /etc/proffer/tls", container + "volumeMounts.0.name: none -> grpc-tls", container + "volumeMounts.0.readOnly: none -> true",
		pod + "volumes.0.name: none -> grpc-tls", pod + "volumes.0.secret.defaultMode: none -> 288", pod + "volumes.0.secret.secretName: none -> proffer-grpc-tls",
	}},
	{"tls.secretName", "tls: {secretName: mine}", "tls: {enabled: true}", []string{pod + "volumes.0.secret.secretName: proffer-grpc-tls -> mine"}},
	{"tls.clientCertificates", "tls: {clientCertificates: false}", "tls: {enabled: true}", []string{container + "args.6: --grpc-client-ca=/etc/proffer/tls/ca.crt -> none"}},
	{"catalog.enabled", "catalog: {enabled: true}", "", []string{
		"ClusterRole//proffer-catalog: none -> an object", "ClusterRole//proffer-offer-viewer: none -> an object",
		"ClusterRoleBinding//proffer-catalog: none -> an object", "CustomResourceDefinition//offers.proffer.dev: none -> an object",
		container + "args.4: none -> --publish-offers",
	}},
	{"catalog.qps", "catalog: {qps: 100}", "catalog: {enabled: true}", []string{container + "args.5: none -> --publish-offers-qps=100"}},
	{"catalog.subjects", "catalog: {subjects: ['Group:liqo:{clusterID}']}", "catalog: {enabled: true}", []string{
		container + "args.5: none -> --offers-subject=Group:liqo:{clusterID}",
	}},
	{"orchestrator.enabled", "orchestrator: {enabled: true}", "", []string{
		"ClusterRole//proffer-orchestration-editor: none -> an object", "ClusterRole//proffer-orchestration-viewer: none -> an object",
		"ClusterRole//proffer-orchestrator: none -> an object", "ClusterRole//proffer-provider-choice: none -> an object", "ClusterRole//proffer-toggle: none -> an object",
		"ClusterRole//proffer-toggle-reader: none -> an object",
		"ClusterRoleBinding//proffer-orchestrator: none -> an object", "ClusterRoleBinding//proffer-plugin-toggle: none -> an object",
		"CustomResourceDefinition//orchestrations.proffer.dev: none -> an object", "CustomResourceDefinition//providerchoices.proffer.dev: none -> an object",
		container + "args.4: none -> --orchestrate", container + "args.5: none -> --cluster-id=$(CLUSTER_ID)",
		container + "env.1.name: none -> CLUSTER_ID", container + "env.1.valueFrom.configMapKeyRef.key: none -> clusterID", container + "env.1.valueFrom.configMapKeyRef.name: none -> proffer-cluster",
	}},
	{"federation.enabled", "federation: {enabled: true}", "", []string{
		"ClusterRole//proffer-federation: none -> an object", "ClusterRoleBinding//proffer-federation: none -> an object",
		container + "args.4: none -> --federation",
	}},
	{"orchestrator.legacyToggle", "orchestrator: {legacyToggle: true}", "orchestrator: {enabled: true}", []string{container + "args.6: none -> --legacy-toggle"}},
	{"catalogHTTP.enabled", "catalogHTTP: {enabled: true}", "", []string{
		container + "args.4: none -> --catalog-bind-address=:8444", container + "args.5: none -> --catalog-tls-cert-file=/etc/proffer/catalog-tls/tls.crt",
		container + "args.6: none -> --catalog-tls-key-file=/etc/proffer/catalog-tls/tls.key",
		container + "ports.3.containerPort: none -> 8444", container + "ports.3.name: none -> catalog", container + "ports.3.protocol: none -> TCP",
		container + "volumeMounts.0.mountPath: none -> /etc/proffer/catalog-tls", container + "volumeMounts.0.name: none -> catalog-tls", container + "volumeMounts.0.readOnly: none -> true",
		pod + "volumes.0.name: none -> catalog-tls", pod + "volumes.0.secret.defaultMode: none -> 288", pod + "volumes.0.secret.secretName: none -> proffer-catalog-tls",
		"Service/proffer-system/proffer-catalog: none -> an object",
	}},
	{"catalogHTTP.secretName", "catalogHTTP: {secretName: mine}", "catalogHTTP: {enabled: true}", []string{pod + "volumes.0.secret.secretName: proffer-catalog-tls -> mine"}},
	{"catalogHTTP.anonymous", "catalogHTTP: {anonymous: true}", "catalogHTTP: {enabled: true}", []string{container + "args.7: none -> --catalog-anonymous"}},
	{"catalogHTTP.annotations", "catalogHTTP: {annotations: {a: b}}", "catalogHTTP: {enabled: true}", []string{"Service/proffer-system/proffer-catalog metadata.annotations.a: none -> b"}},
	{"servedClasses.enabled", "servedClasses: {enabled: true}", "", []string{
		container + "args.4: none -> --served-classes=proffer-served-classes",
		"Role/proffer-system/proffer-served-classes: none -> an object", "RoleBinding/proffer-system/proffer-served-classes: none -> an object",
		"ValidatingAdmissionPolicy//proffer-served-classes: none -> an object", "ValidatingAdmissionPolicyBinding//proffer-served-classes: none -> an object",
	}},
	{"servedClasses.others", "servedClasses: {others: [default]}", "servedClasses: {enabled: true}", []string{container + "args.5: none -> --other-served-class=default"}},
	{"slicePodGuard.enabled", "slicePodGuard: {enabled: true}", "", []string{
		"ClusterRole//proffer-slice-pod-guard: none -> an object", "ClusterRoleBinding//proffer-slice-pod-guard: none -> an object",
		container + "args.4: none -> --placements=proffer-placements", container + "args.5: none -> --offloaded-pod-security=baseline",
		"Role/proffer-system/proffer-placements: none -> an object", "RoleBinding/proffer-system/proffer-placements: none -> an object",
		"ValidatingAdmissionPolicy//proffer-slice-pod-deletion-guard: none -> an object", "ValidatingAdmissionPolicy//proffer-slice-pod-guard: none -> an object",
		"ValidatingAdmissionPolicy//proffer-slice-pod-overhead-guard: none -> an object",
		"ValidatingAdmissionPolicyBinding//proffer-slice-pod-deletion-guard: none -> an object", "ValidatingAdmissionPolicyBinding//proffer-slice-pod-guard: none -> an object",
		"ValidatingAdmissionPolicyBinding//proffer-slice-pod-overhead-guard: none -> an object",
	}},
	{"slicePodGuard.podSecurity", "slicePodGuard: {podSecurity: restricted}", "slicePodGuard: {enabled: true}", []string{
		container + "args.5: --offloaded-pod-security=baseline -> --offloaded-pod-security=restricted",
	}},
	{"providerGuard.enabled", "providerGuard: {enabled: true}", "", []string{
		"ValidatingAdmissionPolicy//proffer-namespace-map-guard: none -> an object", "ValidatingAdmissionPolicy//proffer-virtual-node-guard: none -> an object",
		"ValidatingAdmissionPolicyBinding//proffer-namespace-map-guard: none -> an object", "ValidatingAdmissionPolicyBinding//proffer-virtual-node-guard: none -> an object",
	}},
	{"guards.enabled", "guards: {enabled: false}", "", gone(both, "csr-guard", "slice-deletion-guard", "slice-guard", "slice-status-guard")},
	{"admission.enabled", "admission: {enabled: false}", "", gone(both, "resourcepolicy")},
	{"olderKubernetes", "olderKubernetes: true", "", append([]string{
		container + "lifecycle.preStop.sleep.seconds: 10 -> none", "PodDisruptionBudget/proffer-system/proffer spec.unhealthyPodEvictionPolicy: AlwaysAllow -> none",
	}, gone(both, "csr-guard", "resourcepolicy", "slice-deletion-guard", "slice-guard", "slice-status-guard")...)},
	{"openshift.enabled", "openshift: {enabled: true}", "", []string{
		pod + "securityContext.fsGroup: 65532 -> none", pod + "securityContext.runAsGroup: 65532 -> none", pod + "securityContext.runAsUser: 65532 -> none",
	}},
	{"crds.install", "crds: {install: false}", "", []string{"CustomResourceDefinition//admissionparams.proffer.dev: an object -> none", "CustomResourceDefinition//grants.proffer.dev: an object -> none", "CustomResourceDefinition//resourcepolicies.proffer.dev: an object -> none"}},
	{"crds.keep", "crds: {keep: false}", "", []string{
		"CustomResourceDefinition//admissionparams.proffer.dev metadata.annotations.helm.sh/resource-policy: keep -> none",
		"CustomResourceDefinition//grants.proffer.dev metadata.annotations.helm.sh/resource-policy: keep -> none",
		"CustomResourceDefinition//resourcepolicies.proffer.dev metadata.annotations.helm.sh/resource-policy: keep -> none",
	}},
	{"namespace.create", "namespace: {create: true}", "", []string{"Namespace//proffer-system: none -> an object"}},
	{"networkPolicy.enabled", "networkPolicy: {enabled: true}", "", []string{"NetworkPolicy/proffer-system/proffer: none -> an object"}},
	{"networkPolicy.offersFrom", "networkPolicy: {offersFrom: [{podSelector: {matchLabels: {a: b}}}]}", "networkPolicy: {enabled: true}", []string{
		network + "spec.ingress.0.from.0.namespaceSelector.matchLabels.kubernetes.io/metadata.name: liqo -> none", network + "spec.ingress.0.from.0.podSelector.matchLabels.a: none -> b",
	}},
	{"networkPolicy.metricsFrom", "networkPolicy: {metricsFrom: [{ipBlock: {cidr: 192.0.2.0/24}}]}", "networkPolicy: {enabled: true}", []string{
		network + "spec.ingress.1.from.0.ipBlock.cidr: none -> 192.0.2.0/24", network + "spec.ingress.1.from.0.namespaceSelector.matchLabels.metrics: enabled -> none",
	}},
	{"networkPolicy.apiServerPorts", "networkPolicy: {apiServerPorts: [8443]}", "networkPolicy: {enabled: true}", []string{
		network + "spec.egress.0.ports.0.port: 443 -> 8443", network + "spec.egress.0.ports.1.port: 6443 -> none", network + "spec.egress.0.ports.1.protocol: TCP -> none",
	}},
	{"networkPolicy.apiServerCIDRs", "networkPolicy: {apiServerCIDRs: ['2001:db8::/64']}", "networkPolicy: {enabled: true}", []string{network + "spec.egress.0.to.0.ipBlock.cidr: none -> 2001:db8::/64"}},
	{"networkPolicy.extraEgress", "networkPolicy: {extraEgress: [{to: [{ipBlock: {cidr: 192.0.2.20/32}}], ports: [{protocol: TCP, port: 5432}]}]}", "networkPolicy: {enabled: true}", []string{
		network + "spec.egress.1.ports.0.port: none -> 5432", network + "spec.egress.1.ports.0.protocol: none -> TCP", network + "spec.egress.1.to.0.ipBlock.cidr: none -> 192.0.2.20/32",
	}},
	{"serviceMonitor.enabled", "serviceMonitor: {enabled: true}", "", []string{"ServiceMonitor/proffer-system/proffer: none -> an object"}},
	{"serviceMonitor.labels", "serviceMonitor: {labels: {release: prometheus}}", "serviceMonitor: {enabled: true}", []string{monitor + "metadata.labels.release: none -> prometheus"}},
	{"serviceMonitor.interval", "serviceMonitor: {interval: 15s}", "serviceMonitor: {enabled: true}", []string{monitor + "spec.endpoints.0.interval: none -> 15s"}},
	{"alerts.enabled", "alerts: {enabled: true}", "", []string{"PrometheusRule/proffer-system/proffer: none -> an object"}},
	{"alerts.labels", "alerts: {labels: {release: prometheus}}", "alerts: {enabled: true}", []string{"PrometheusRule/proffer-system/proffer metadata.labels.release: none -> prometheus"}},
	{"dashboard.enabled", "dashboard: {enabled: true}", "", []string{board + ": none -> an object"}},
	{"dashboard.labels", "dashboard: {labels: {grafana_dashboard: null, mine: '1'}}", "dashboard: {enabled: true}", []string{
		board + " metadata.labels.grafana_dashboard: 1 -> none", board + " metadata.labels.mine: none -> 1",
	}},
	{"dashboard.annotations", "dashboard: {annotations: {a: b}}", "dashboard: {enabled: true}", []string{board + " metadata.annotations.a: none -> b"}},
	{"podDisruptionBudget.enabled", "podDisruptionBudget: {enabled: false}", "", []string{"PodDisruptionBudget/proffer-system/proffer: an object -> none"}},
	{"priorityClass.create", "priorityClass: {create: false}", "", []string{"PriorityClass//proffer: an object -> none"}},
	{"priorityClass.name", "priorityClass: {name: mine}", "", []string{
		pod + "priorityClassName: proffer -> mine", "PriorityClass//mine: none -> an object", "PriorityClass//proffer: an object -> none",
	}},
	{"priorityClass.name", "priorityClass: {name: ''}", "", []string{pod + "priorityClassName: proffer -> none", "PriorityClass//proffer: an object -> none"}},
	{"resources.requests", "resources: {requests: {cpu: 1, ephemeral-storage: 10Mi}}", "", []string{
		container + "resources.requests.cpu: 50m -> 1", container + "resources.requests.ephemeral-storage: none -> 10Mi",
	}},
	{"resources.limits", "resources: {limits: {cpu: '2', ephemeral-storage: 1Gi}}", "", []string{
		container + "resources.limits.cpu: none -> 2", container + "resources.limits.ephemeral-storage: none -> 1Gi",
	}},
	{"resources.limits", "resources: {limits: {memory: 2Gi}}", "", []string{container + "env.0.value: 460MiB -> 1843MiB", container + "resources.limits.memory: 512Mi -> 2Gi"}},
	{"resources.limits", "resources: {limits: null}", "", []string{
		container + "env.0.name: GOMEMLIMIT -> none", container + "env.0.value: 460MiB -> none", container + "resources.limits.memory: 512Mi -> none",
	}},
	{"nodeSelector", "nodeSelector: {a: b}", "", []string{pod + "nodeSelector.a: none -> b"}},
	{"tolerations", "tolerations: [{key: a, operator: Exists}]", "", []string{pod + "tolerations.0.key: none -> a", pod + "tolerations.0.operator: none -> Exists"}},
	{"affinity", "affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 7}]}}", "", []string{
		pod + "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution.0.weight: none -> 7",
	}},
	{"topologySpreadConstraints", "topologySpreadConstraints: [{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}]", "topologySpreadConstraints: []", []string{
		pod + "topologySpreadConstraints.0.maxSkew: none -> 2", pod + "topologySpreadConstraints.0.topologyKey: none -> rack",
		pod + "topologySpreadConstraints.0.whenUnsatisfiable: none -> ScheduleAnyway",
	}},
	{"podAnnotations", "podAnnotations: {a: b}", "", []string{"Deployment/proffer-system/proffer spec.template.metadata.annotations.a: none -> b"}},
	{"podLabels", "podLabels: {a: b, app.kubernetes.io/name: ignored}", "", []string{"Deployment/proffer-system/proffer spec.template.metadata.labels.a: none -> b"}},
	{"serviceAccount.annotations", "serviceAccount: {annotations: {a: b}}", "", []string{"ServiceAccount/proffer-system/proffer metadata.annotations.a: none -> b"}},
	{"service.annotations", "service: {annotations: {a: b}}", "", []string{service + "metadata.annotations.a: none -> b"}},
	{"metricsService.annotations", "metricsService: {annotations: {a: b}}", "", []string{"Service/proffer-system/proffer-metrics metadata.annotations.a: none -> b"}},
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

var both = []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}

// gone returns the lines for admission policies that are no longer rendered.
func gone(kinds []string, names ...string) (lines []string) {
	for _, kind := range kinds {
		for _, name := range names {
			lines = append(lines, kind+"//proffer-"+name+": an object -> none")
		}
	}
	return lines
}

func TestEachValueHasItsEffectAndNoOther(t *testing.T) {
	_, paths := readValues(t)
	shown, rendered := map[string]bool{}, map[string]objects{}
	for _, tc := range effects {
		shown[tc.value] = true
		t.Run(tc.value, func(t *testing.T) {
			with := []string{"--values", writeValues(t, tc.with)}
			args := slices.Concat(with, []string{"--values", writeValues(t, tc.yaml)})
			if tc.value == "image.repository" {
				// The file would not override the --set of template.
				args = slices.Concat(with, []string{"--set", "image.repository=localhost:5000/proffer"})
			}
			if rendered[tc.with] == nil {
				rendered[tc.with] = parsed(t, template(t, with...))
			}
			got := changes(rendered[tc.with], parsed(t, template(t, args...)))
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("what changes differs (-want +got):\n%s", diff)
			}
		})
	}
	for _, path := range paths {
		if !shown[path] {
			t.Errorf("no case shows the effect of %s", path)
		}
	}
}

// parsed replaces the configuration file by its fields, and removes its checksum, which is of no use
// in a list of changes.
func parsed(t *testing.T, all objects) objects {
	t.Helper()
	return likeChart(t, withoutChecksum(all))
}

// changes lists the fields, and the whole objects, that differ.
func changes(before, after objects) (lines []string) {
	for _, name := range keys(before, after) {
		old, renewed := before[name], after[name]
		if old == nil || renewed == nil {
			lines = append(lines, fmt.Sprintf("%s: %s -> %s", name, orNone(old != nil), orNone(renewed != nil)))
			continue
		}
		was, is := fields(old.Object), fields(renewed.Object)
		for _, field := range keys(was, is) {
			if a, b := was[field], is[field]; a != b {
				lines = append(lines, fmt.Sprintf("%s %s: %s -> %s", name, field, text(a), text(b)))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func orNone(there bool) string {
	if there {
		return "an object"
	}
	return "none"
}

func text(value any) string {
	if value == nil {
		return "none"
	}
	return fmt.Sprint(value)
}

// keys returns the keys of both maps, sorted.
func keys[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// fields returns the numbers, texts and booleans of an object by their paths.
func fields(object map[string]any) map[string]any {
	all := map[string]any{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for name, inner := range value {
				walk(strings.TrimPrefix(path+"."+name, "."), inner)
			}
		case []any:
			for i, inner := range value {
				walk(fmt.Sprintf("%s.%d", path, i), inner)
			}
		default:
			all[path] = value
		}
	}
	walk("", object)
	return all
}
