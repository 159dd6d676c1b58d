package helm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

// readValues returns the default of each value of the chart by its path, such as image.tag, and the
// sorted paths. A value is a property in values.schema.json without properties of its own.
func readValues(t *testing.T) (defaults map[string]any, paths []string) {
	t.Helper()
	var values map[string]any
	test.Must(t, yaml.UnmarshalStrict([]byte(test.Read(t, chart+"/values.yaml")), &values))
	var schema map[string]any
	test.Must(t, json.Unmarshal([]byte(test.Read(t, chart+"/values.schema.json")), &schema))
	definitions := schema["$defs"].(map[string]any)

	defaults = map[string]any{}
	var walk func(path string, schema map[string]any, value any)
	walk = func(path string, schema map[string]any, value any) {
		if ref, ok := schema["$ref"].(string); ok {
			schema = definitions[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		properties, ok := schema["properties"].(map[string]any)
		if !ok {
			defaults[path] = value
			return
		}
		if schema["additionalProperties"] != false {
			t.Errorf("the schema of %q accepts names that it does not list", path)
		}
		for name, property := range properties {
			// Helm passes it to each chart that is a dependency.
			if path == "" && name == "global" {
				continue
			}
			inner, ok := value.(map[string]any)[name]
			if !ok {
				t.Errorf("values.yaml has no %s.%s, and the schema does", path, name)
				continue
			}
			walk(strings.TrimPrefix(path+"."+name, "."), property.(map[string]any), inner)
		}
	}
	walk("", schema, values)
	for path := range defaults {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return defaults, paths
}

// valueRow matches a row of the table of values in the README: path, default and description.
var valueRow = regexp.MustCompile("(?m)^\\| `([a-zA-Z.]+)` \\| (.+?) \\| (.+) \\|$")

func TestTheReadmeListsEachValueWithItsDefault(t *testing.T) {
	defaults, paths := readValues(t)
	text := test.Read(t, chart+"/README.md")
	var listed []string
	for _, row := range valueRow.FindAllStringSubmatch(text, -1) {
		path := row[1]
		listed = append(listed, path)
		value, err := json.Marshal(defaults[path])
		test.Must(t, err)
		// A long default is only in values.yaml.
		want := "`" + string(value) + "`"
		if len(want) > 40 {
			want = "see `values.yaml`"
		}
		if row[2] != want {
			t.Errorf("the README says of the default of %s: %s, want %s", path, row[2], want)
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(paths, listed); diff != "" {
		t.Errorf("the README lists other values (-values.yaml +README):\n%s", diff)
	}
}

func TestLintFindsNothing(t *testing.T) {
	out := mustHelm(t, slices.Concat([]string{"lint", "--strict", chart, "--kube-version", controlplane.KubernetesVersion}, withImage)...)
	if strings.Contains(out, "[WARNING]") || strings.Contains(out, "[ERROR]") {
		t.Error(out)
	}
}

func TestNoDocumentIsEmpty(t *testing.T) {
	for document := range strings.SplitSeq(mustHelm(t, templateArgs()...), "\n---\n") {
		if !strings.Contains(document, "kind: ") {
			t.Errorf("a document without an object:\n%s", document)
		}
	}
}

// TestWrongValuesAreRefused checks that the schema or a template refuses a value, with a message that
// names it.
func TestWrongValuesAreRefused(t *testing.T) {
	for _, tc := range []struct{ name, yaml, want string }{
		{"a misspelt value", "replica: 3", "additional properties 'replica' not allowed"},
		{"a misspelt value of a part", "guards: {enable: false}", "at '/guards': additional properties 'enable' not allowed"},
		{"a text for a number", `replicas: "3"`, "at '/replicas': got string, want integer"},
		{"a text for a toggle", `flat: {enabled: "yes"}`, "at '/flat/enabled': got string, want boolean"},
		{"a toggle for a part", "tls: true", "at '/tls': got boolean, want object"},
		{"a negative number", "replicas: -1", "at '/replicas': minimum: got -1, want 0"},
		{"an unknown form", "grpc: {form: pool}", "at '/grpc/form': value must be one of 'pools', 'flat'"},
		{"an unknown format of logs", "log: {format: text}", "at '/log/format': value must be one of 'json', 'console'"},
		{"an unknown level", "log: {level: warn}", "at '/log/level': 'warn' does not match pattern '^(error|info|debug)$'"},
		{"a pull policy in lower case", "image: {pullPolicy: always}", "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"},
		{"an image in upper case", "image: {repository: Proffer}", "at '/image/repository': 'Proffer' does not match pattern"},
		{"a tag with a colon", `image: {tag: ":v0.1.0"}`, "at '/image/tag': ':v0.1.0' does not match pattern"},
		{"a digest without its algorithm", "image: {digest: 0a0a}", "at '/image/digest': '0a0a' does not match pattern"},
		{"a period beyond a minute", "batchPeriod: 61s", "at '/batchPeriod': '61s' does not match pattern"},
		{"a period without a unit", "batchPeriod: 100", "at '/batchPeriod': got number, want string"},
		{"an argument that is no flag", "extraArgs: [grpc-form=flat]", "at '/extraArgs/0': 'grpc-form=flat' does not match pattern"},
		{"a variable that the chart sets", "extraEnv: [{name: GOMEMLIMIT, value: 1GiB}]", "at '/extraEnv/0/name': 'not' failed"},
		{"a memory limit in bytes", "resources: {limits: {memory: 536870912}}", "at '/resources/limits/memory': got number, want string"},
		{"an amount that is none", "resources: {requests: {cpu: lots}}", "at '/resources/requests/cpu': 'lots' does not match pattern"},
		{"a source that is empty", "networkPolicy: {offersFrom: []}", "at '/networkPolicy/offersFrom': minItems: got 0, want 1"},
		{"a source that is everybody", "networkPolicy: {metricsFrom: [{}]}", "at '/networkPolicy/metricsFrom/0': minProperties: got 0, want 1"},
		{"an address for a network", "networkPolicy: {apiServerCIDRs: [192.0.2.1]}", "at '/networkPolicy/apiServerCIDRs/0': '192.0.2.1' does not match pattern"},
		{"a port that is none", "networkPolicy: {apiServerPorts: [70000]}", "at '/networkPolicy/apiServerPorts/0': maximum: got 70,000, want 65,535"},
		{"a class twice", "servedClasses: {others: [default, default]}", "at '/servedClasses/others': items at 0 and 1 are equal"},
		{"a level that protects nothing", "slicePodGuard: {podSecurity: privileged}", "at '/slicePodGuard/podSecurity': value must be one of 'baseline', 'restricted'"},
		{"a rate of nothing", "catalog: {qps: 0}", "at '/catalog/qps': minimum: got 0, want 1"},
		{"a subject of everybody", "catalog: {subjects: ['Group:all']}", "at '/catalog/subjects/0': 'Group:all' does not match pattern"},
		{"a class that is none", "servedClasses: {others: [Gold]}", "at '/servedClasses/others/0': 'Gold' does not match pattern"},
		{"a version of Kubernetes for a choice", `olderKubernetes: "1.29"`, "at '/olderKubernetes': value must be one of 'auto', true, false"},
		{"an annotation that is a number", "service: {annotations: {weight: 1}}", "at '/service/annotations/weight': got number, want string"},
		{"a label with a space", "podLabels: {team: a b}", "at '/podLabels/team': 'a b' does not match pattern"},
		{"a toleration of an unknown effect", "tolerations: [{effect: NoSchedul}]", "at '/tolerations/0/effect': value must be one of"},
		{"an unknown kind of affinity", "affinity: {nodeAntiAffinity: {}}", "at '/affinity': additional properties 'nodeAntiAffinity' not allowed"},
		{"a misspelt part of the configuration", "configuration: {clusterId: milan}", "at '/configuration': additional properties 'clusterId' not allowed"},
		{"a number for the ID of the cluster", "configuration: {clusterID: 7}", "at '/configuration/clusterID': got number, want string"},
		{"an unknown engine", "accounting: {engine: MariaDB}", "at '/accounting/engine': value must be one of 'PostgreSQL', 'MySQL'"},
		{"a sample of an hour and more", "accounting: {sampleSeconds: 3601}", "at '/accounting/sampleSeconds': maximum: got 3,601, want 3,600"},
		{"a rule for all connections", "networkPolicy: {extraEgress: [{}]}", "at '/networkPolicy/extraEgress/0': minProperties: got 0, want 1"},

		{"no image", "image: {repository: null}", "set image.repository to an image that the nodes can pull"},
		{"books of no cluster", "accounting: {enabled: true}", "accounting.enabled=true needs the ID of this cluster in Liqo: set configuration.clusterID"},
		{"the books twice", "configuration: {clusterID: milan, reconcilers: [MetaSync]}\naccounting: {enabled: true}", "accounting.enabled=true and configuration.reconcilers both list MetaSync"},
		{"the flat form twice", "flat: {enabled: true}\ngrpc: {form: flat}", "grpc.form=flat and flat.enabled=true serve the flat form twice"},
		{"admission policies where there are none", "servedClasses: {enabled: true}\nolderKubernetes: true", "servedClasses.enabled=true needs Kubernetes 1.30"},
		{"a guard of providers where there are none", "providerGuard: {enabled: true}\nolderKubernetes: true", "providerGuard.enabled=true needs Kubernetes 1.30"},
		{"a guard where there are none", "slicePodGuard: {enabled: true}\nolderKubernetes: true", "slicePodGuard.enabled=true needs Kubernetes 1.30"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := writeValues(t, tc.yaml)
			args := templateArgs("--values", file)
			if strings.Contains(tc.yaml, "repository") {
				args = slices.DeleteFunc(args, func(arg string) bool { return slices.Contains(withImage, arg) })
			}
			out, err := runHelm(args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("helm says %v, want %q\n%.500s", err, tc.want, out)
			}
		})
	}
}

func TestAKubernetesBefore125IsRefused(t *testing.T) {
	if _, err := runHelm(templateArgs("--kube-version", "v1.24.17")...); err == nil || !strings.Contains(err.Error(), "requires kubeVersion: >=1.25.0-0") {
		t.Errorf("helm says %v", err)
	}
}

// TestTheChartCanBeADependency sets the value global, which Helm then adds.
func TestTheChartCanBeADependency(t *testing.T) {
	template(t, "--set", "global.any=thing")
}

func writeValues(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	test.Must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}
