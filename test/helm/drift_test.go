package helm

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/test"
)

// Labels and annotations that differ between the chart and config.
const (
	managedBy      = "app.kubernetes.io/managed-by"
	chartLabel     = "helm.sh/chart"
	resourcePolicy = "helm.sh/resource-policy"
	checksum       = "checksum/configuration"
)

// likeConfig removes from the objects of the chart what only Helm needs:
//
//   - managed-by names Helm, which does not take over an object with another value;
//   - helm.sh/chart names the chart, by convention;
//   - helm.sh/resource-policy keeps the CRDs and the namespace when the release is uninstalled, but not
//     the CRD of the component catalog, which is removed with its objects;
//   - checksum/configuration starts new pods when the configuration file changes.
func likeConfig(t *testing.T, all objects) objects {
	t.Helper()
	for name, u := range all {
		labels, annotations := u.GetLabels(), u.GetAnnotations()
		if labels[managedBy] != "Helm" || !strings.HasPrefix(labels[chartLabel], "proffer-") {
			t.Errorf("%s has the labels %v", name, labels)
		}
		labels[managedBy] = "kustomize"
		delete(labels, chartLabel)
		u.SetLabels(labels)
		kept := u.GetKind() == "CustomResourceDefinition" && u.GetName() != "offers.proffer.dev" || u.GetKind() == "Namespace"
		if kept != (annotations[resourcePolicy] == "keep") {
			t.Errorf("%s has the annotations %v", name, annotations)
		}
		delete(annotations, resourcePolicy)
		if len(annotations) == 0 {
			annotations = nil
		}
		u.SetAnnotations(annotations)
	}
	return withoutChecksum(all)
}

func withoutChecksum(all objects) objects {
	for _, u := range all {
		if u.GetKind() == "Deployment" {
			unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "annotations", checksum)
		}
	}
	return all
}

// hashed is the name of the ConfigMap of the configuration file, to which kustomize adds a hash of the
// content.
var hashed = regexp.MustCompile(`^proffer-configuration-[a-z0-9]{10}$`)

// likeChart removes the hash from the name of the ConfigMap of the configuration file, and parses the
// file, which has comments in config.
func likeChart(t *testing.T, all objects) objects {
	t.Helper()
	result := objects{}
	for _, u := range all {
		switch {
		case u.GetKind() == "Deployment":
			volumes, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "volumes")
			test.Must(t, err)
			for _, v := range volumes {
				if source, ok := v.(map[string]any)["configMap"].(map[string]any); ok && hashed.MatchString(source["name"].(string)) {
					source["name"] = "proffer-configuration"
					test.Must(t, unstructured.SetNestedSlice(u.Object, volumes, "spec", "template", "spec", "volumes"))
				}
			}
		case u.GetKind() == "ConfigMap" && (hashed.MatchString(u.GetName()) || u.GetName() == "proffer-configuration"):
			u.SetName("proffer-configuration")
			text, _, err := unstructured.NestedString(u.Object, "data", "config.yaml")
			test.Must(t, err)
			var file map[string]any
			test.Must(t, yaml.UnmarshalStrict([]byte(text), &file))
			test.Must(t, unstructured.SetNestedMap(u.Object, file, "data", "config.yaml"))
		}
		result[key(u)] = u
	}
	return result
}

// noNamespace lists cluster-scoped kinds that kustomize does not know: it sets the namespace of the
// overlay in them, and the API server drops it.
var noNamespace = []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}

func withoutNamespaces(all objects) objects {
	result := objects{}
	for _, u := range all {
		if slices.Contains(noNamespace, u.GetKind()) {
			u.SetNamespace("")
		}
		result[key(u)] = u
	}
	return result
}

func requireEqual(t *testing.T, config, chart objects) {
	t.Helper()
	plain := func(all objects) map[string]any {
		contents := map[string]any{}
		for name, u := range all {
			contents[name] = u.Object
		}
		return contents
	}
	if diff := cmp.Diff(plain(likeChart(t, config)), plain(likeChart(t, chart))); diff != "" {
		t.Errorf("the chart differs (-config +chart):\n%s", diff)
	}
}

// older is the component that removes what Kubernetes 1.25 to 1.29 does not support, such as the
// admission policies of served-classes.
const older = "kubernetes-1.25-to-1.29"

// toggles has the value of the chart that corresponds to each component of config.
var toggles = map[string]string{
	"accounting":      "accounting.enabled=true,configuration.clusterID=" + clusterID,
	"alerts":          "alerts.enabled=true",
	"catalog":         "catalog.enabled=true",
	"catalog-http":    "catalogHTTP.enabled=true",
	"dashboard":       "dashboard.enabled=true",
	"federation":      "federation.enabled=true",
	"flat":            "flat.enabled=true",
	older:             "olderKubernetes=true",
	"openshift":       "openshift.enabled=true",
	"orchestrator":    "orchestrator.enabled=true",
	"networkpolicy":   "networkPolicy.enabled=true",
	"provider-guard":  "providerGuard.enabled=true",
	"served-classes":  "servedClasses.enabled=true",
	"slice-pod-guard": "slicePodGuard.enabled=true",
	"servicemonitor":  "serviceMonitor.enabled=true",
	"tls":             "tls.enabled=true",
}

func TestEachComponentOfConfigIsAToggle(t *testing.T) {
	entries, err := os.ReadDir(root + "/config/components")
	test.Must(t, err)
	var components []string
	for _, e := range entries {
		components = append(components, e.Name())
	}
	if diff := cmp.Diff(components, slices.Sorted(maps.Keys(toggles))); diff != "" {
		t.Errorf("the toggles differ (-components +toggles):\n%s", diff)
	}
}

// newer are the components that exclude older: they need ValidatingAdmissionPolicies.
var newer = []string{"provider-guard", "served-classes", "slice-pod-guard"}

// componentSets returns the empty set, each component, each component together with older, and all
// components.
func componentSets() (sets [][]string) {
	all := slices.Sorted(maps.Keys(toggles))
	without := func(excluded ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(c string) bool { return slices.Contains(excluded, c) })
	}
	sets = [][]string{nil, {older}, without(older), without(newer...)}
	for _, component := range without(older) {
		sets = append(sets, []string{component})
		if !slices.Contains(newer, component) {
			sets = append(sets, []string{component, older})
		}
	}
	return sets
}

func TestTheChartInstallsWhatConfigDoesWithComponents(t *testing.T) {
	for _, set := range componentSets() {
		t.Run(strings.Join(set, "+"), func(t *testing.T) {
			parts, args := []string{"default"}, []string{"--set", "namespace.create=true"}
			for _, component := range set {
				parts = append(parts, "components/"+component)
				args = append(args, "--set", toggles[component])
			}
			requireEqual(t, overlay(t, "", parts...), likeConfig(t, template(t, args...)))
		})
	}
}

func TestThePodsFollowTheConfiguration(t *testing.T) {
	sum := func(args ...string) string {
		sum, _, err := unstructured.NestedString(template(t, args...)["Deployment/"+namespace+"/proffer"].Object,
			"spec", "template", "metadata", "annotations", checksum)
		test.Must(t, err)
		return sum
	}
	milan, paris := sum("--set", "configuration.clusterID=milan"), sum("--set", "configuration.clusterID=paris")
	if none := sum(); none != "" || milan == "" || milan == paris {
		t.Errorf("the checksums are %q without a file, %q and %q", none, milan, paris)
	}
}

func TestTheChartInstallsWhatPartsOfConfigDo(t *testing.T) {
	for _, tc := range []struct {
		name  string
		parts []string
		args  []string
	}{
		{"without guards", []string{"base", "admission"}, []string{"--set", "guards.enabled=false"}},
		{"without the rules on policies", []string{"base", "guards"}, []string{"--set", "admission.enabled=false"}},
		{"without both", []string{"base"}, []string{"--set", "guards.enabled=false,admission.enabled=false"}},
		{"on Kubernetes 1.29", []string{"default", "components/" + older}, []string{"--kube-version", "v1.29.15"}},
		{"on Kubernetes 1.30", []string{"default"}, []string{"--kube-version", "v1.30.0-gke.1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := slices.Concat(tc.args, []string{"--set", "namespace.create=true"})
			requireEqual(t, overlay(t, "", tc.parts...), likeConfig(t, template(t, args...)))
		})
	}
}

// Helm stores a release in its namespace, so the namespace has to exist before the chart is installed.
func TestWithoutValuesTheChartInstallsAllOfConfigButTheNamespace(t *testing.T) {
	want := overlay(t, "", "default")
	delete(want, "Namespace//"+namespace)
	requireEqual(t, want, likeConfig(t, template(t)))
}

func TestEachPatchInTheDocsHasAnEffect(t *testing.T) {
	pages, err := filepath.Glob(root + "/docs/how-to/*.md")
	test.Must(t, err)
	var text strings.Builder
	for _, page := range pages {
		text.WriteString(test.Read(t, page))
	}
	parts := []string{"default"}
	for component := range toggles {
		if component != older {
			parts = append(parts, "components/"+component)
		}
	}
	slices.Sort(parts[1:])
	without, n := overlay(t, "", parts...), 0
	for _, block := range test.Blocks(text.String(), "yaml") {
		if !strings.HasPrefix(block.Text, "patches:") {
			continue
		}
		n++
		if len(changes(without, overlay(t, block.Text, parts...))) == 0 {
			t.Errorf("this patch changes nothing:\n%s", block.Text)
		}
	}
	if n < 4 {
		t.Errorf("%d patches, want at least 4", n)
	}
}

func TestEverythingFollowsTheNamespaceOfTheRelease(t *testing.T) {
	parts, args := []string{"default"}, []string{"--namespace", "other", "--set", "namespace.create=true"}
	for component, toggle := range toggles {
		if component == older {
			continue
		}
		parts, args = append(parts, "components/"+component), append(args, "--set", toggle)
	}
	slices.Sort(parts[1:])
	requireEqual(t, withoutNamespaces(overlay(t, "namespace: other\n", parts...)), likeConfig(t, template(t, args...)))
}

func TestTheNameOfTheReleaseChangesNothing(t *testing.T) {
	args := templateArgs()
	args[1] = "another"
	requireEqual(t, template(t), decode(t, mustHelm(t, args...)))
}

func TestAPackageOfTheChartInstallsTheSame(t *testing.T) {
	dir := t.TempDir()
	mustHelm(t, "package", chart, "--destination", dir)
	args := templateArgs()
	args[2] = dir + "/proffer-0.1.0.tgz"
	requireEqual(t, template(t), decode(t, mustHelm(t, args...)))
}

func TestTheImageIsWrittenAsInAnOverlay(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for lines, args := range map[string]string{
		"newName: registry.example.com/proffer, newTag: v0.1.0":           "image.tag=v0.1.0",
		"newName: localhost:5000/proffer, newTag: v0.2.0":                 "image.repository=localhost:5000/proffer,image.tag=v0.2.0",
		"newName: registry.example.com/proffer, digest: '" + digest + "'": "image.tag=v0.1.0,image.digest=" + digest,
	} {
		config := overlay(t, "images: [{name: controller, "+lines+"}]\n", "default")
		want := containerOf(t, config).image
		if got := containerOf(t, template(t, "--set", args)).image; got != want {
			t.Errorf("with %s the image is %s, that of the overlay %s", args, got, want)
		}
	}
}

// operator is the part of the Deployment's container that tests compare.
type operator struct {
	image string
	args  []string
}

func containerOf(t *testing.T, all objects) operator {
	t.Helper()
	deployment := all["Deployment/"+namespace+"/proffer"]
	if deployment == nil {
		t.Fatal("there is no Deployment")
	}
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	test.Must(t, err)
	only := containers[0].(map[string]any)
	args, _, err := unstructured.NestedStringSlice(only, "args")
	test.Must(t, err)
	return operator{image: only["image"].(string), args: args}
}
