package deploy

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

const anImage = "registry.example.com/proffer:v0.1.0"

// makefile runs make targets against a cluster.
type makefile struct {
	kubeconfig string
	// kubectl is a script that runs the real kubectl and appends each call to the file calls.
	kubectl, calls string
}

func newMakefile(t *testing.T, flags map[string][]string) *makefile {
	t.Helper()
	c := controlplane.StartTest(t, controlplane.Options{APIServerFlags: flags})
	dir := t.TempDir()
	m := &makefile{
		kubeconfig: filepath.Join(dir, "kubeconfig"),
		kubectl:    filepath.Join(dir, "kubectl"),
		calls:      filepath.Join(dir, "calls"),
	}
	test.Must(t, c.WriteKubeconfig(m.kubeconfig))
	// Collecting garbage less often takes a quarter of its processor time off.
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >>%s\nGOGC=400 exec %s \"$@\"\n", m.calls, filepath.Join(c.Assets, "kubectl"))
	test.Must(t, os.WriteFile(m.kubectl, []byte(script), 0o700))
	return m
}

// run runs make and returns its output.
func (m *makefile) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"-C", "../..", "--no-print-directory"}, args...)...)
	// The Makefile must ignore these exported variables.
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(m.kubectl)+":"+os.Getenv("PATH"), "KUBECONFIG="+m.kubeconfig,
		"IMG="+anImage, "NAMESPACE=exported", "WITH_POLICIES=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// mustMake runs make with the cluster's kubeconfig and fails the test on an error.
func (m *makefile) mustMake(t *testing.T, args ...string) string {
	t.Helper()
	out, err := m.run(t, append(args, "KUBECONFIG="+m.kubeconfig)...)
	if err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// mustRefuse runs make, which must fail with this message in at most a few lines.
func (m *makefile) mustRefuse(t *testing.T, message string, args ...string) {
	t.Helper()
	out, err := m.run(t, args...)
	if err == nil || !strings.Contains(out, message) || strings.Count(out, "\n") > 4 {
		t.Errorf("make %s: %v, want an error with %q:\n%s", strings.Join(args, " "), err, message, out)
	}
}

// mustKubectl runs kubectl and fails the test on an error.
func (m *makefile) mustKubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := test.Kubectl(t.Context(), m.kubectl, m.kubeconfig, "", args...)
	test.Must(t, err)
	return out
}

// objects returns the kinds and names of those objects of the list that the cluster has.
func (m *makefile) objects(t *testing.T, list rendered) []string {
	t.Helper()
	file := writeObjects(t, filepath.Dir(m.calls), list)
	out := m.mustKubectl(t, "get", "--ignore-not-found", "--output",
		`jsonpath={range .items[*]}{.kind}/{.metadata.name}{"\n"}{end}`, "-f", file)
	got := strings.Fields(out)
	slices.Sort(got)
	return got
}

func status(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "status", "--porcelain").CombinedOutput()
	if err != nil {
		t.Fatalf("git status: %v\n%s", err, out)
	}
	return string(out)
}

// The targets run in the order of a cluster's life.
func TestMakeKeepsPoliciesAndGrantsUnlessToldOtherwise(t *testing.T) {
	before := status(t)
	m := newMakefile(t, nil)

	t.Run("without KUBECONFIG no cluster is changed", func(t *testing.T) {
		for _, target := range []string{"install", "undeploy", "uninstall"} {
			m.mustRefuse(t, "write make "+target+" KUBECONFIG=$HOME/.kube/config", target)
		}
		m.mustRefuse(t, "write make deploy KUBECONFIG=$HOME/.kube/config", "deploy", "IMG="+anImage)
		m.mustRefuse(t, "KUBECONFIG=/dev/null is not a file", "install", "KUBECONFIG=/dev/null")
	})
	t.Run("deploy needs an image with a tag", func(t *testing.T) {
		m.mustRefuse(t, "write make deploy IMG=registry.example.com/proffer:v0.1.0", "deploy", "KUBECONFIG="+m.kubeconfig)
		m.mustRefuse(t, "write IMG=localhost:5000/proffer:v0.1.0", "deploy", "IMG=localhost:5000/proffer",
			"KUBECONFIG="+m.kubeconfig)
		m.mustRefuse(t, "there is no component flatt: COMPONENTS takes any of accounting alerts catalog catalog-http dashboard federation flat ", "deploy",
			"IMG="+anImage, "COMPONENTS=flatt", "KUBECONFIG="+m.kubeconfig)
	})
	crds := names(renderAt(t, config+"/crd"))
	t.Run("install applies the CRDs", func(t *testing.T) {
		m.mustMake(t, "install")
		if diff := cmp.Diff(crds, m.objects(t, render(t))); diff != "" {
			t.Errorf("the cluster has (-want +got):\n%s", diff)
		}
	})
	m.mustKubectl(t, "apply", "-f", "testdata/servicemonitor-crd.yaml", "-f", "testdata/prometheusrule-crd.yaml")
	m.mustKubectl(t, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	with := []string{"catalog", "catalog-http", "served-classes", "slice-pod-guard", "provider-guard", "networkpolicy", "servicemonitor", "alerts", "dashboard"}
	t.Run("deploy applies all objects with the image, and can be repeated", func(t *testing.T) {
		m.mustMake(t, "deploy", "IMG="+anImage, "COMPONENTS="+strings.Join(with, " "))
		all := render(t, with...)
		if diff := cmp.Diff(names(all), m.objects(t, all)); diff != "" {
			t.Errorf("the cluster has (-want +got):\n%s", diff)
		}
		image := m.mustKubectl(t, "-n", namespace, "get", "deployment", "proffer",
			"-o", "jsonpath={.spec.template.spec.containers[0].image}")
		if image != anImage {
			t.Errorf("the image is %s, want %s", image, anImage)
		}
		out := m.mustMake(t, "deploy", "IMG="+anImage, "COMPONENTS="+strings.Join(with, " "))
		if n := strings.Count(out, " unchanged\n") + strings.Count(out, " configured\n"); n != len(all) ||
			strings.Contains(out, " created\n") {
			t.Errorf("%d of %d objects existed:\n%s", n, len(all), out)
		}
	})
	t.Run("deploy with accounting names what is missing", func(t *testing.T) { m.testAccounting(t, with) })
	m.mustKubectl(t, "apply", "-f", writeFixed(t, "gold", "cpu: 4, memory: 4Gi, pods: 10"))
	m.mustKubectl(t, "apply", "-f", "testdata/grant.yaml")
	t.Run("deploy refuses a second installation", func(t *testing.T) {
		m.mustRefuse(t, "Proffer is installed in namespace "+namespace, "deploy", "IMG="+anImage, "NAMESPACE=other",
			"KUBECONFIG="+m.kubeconfig)
	})
	t.Run("uninstall refuses while the operator runs", func(t *testing.T) {
		m.mustRefuse(t, "write make undeploy NAMESPACE="+namespace, "uninstall", "WITH_POLICIES=1",
			"KUBECONFIG="+m.kubeconfig)
	})
	t.Run("undeploy refuses while Liqo asks for offers", func(t *testing.T) {
		m.mustKubectl(t, "create", "namespace", "liqo")
		m.mustKubectl(t, "apply", "-f", "testdata/liqo-deployment.yaml")
		m.mustRefuse(t, "Deployment liqo/liqo-controller-manager asks Proffer for its offers", "undeploy",
			"KUBECONFIG="+m.kubeconfig)
		m.mustKubectl(t, "delete", "-f", "testdata/liqo-deployment.yaml")
	})
	t.Run("undeploy keeps policies and grants, and deletes the operator first", func(t *testing.T) {
		test.Must(t, os.WriteFile(m.calls, nil, 0o600))
		out := m.mustMake(t, "undeploy")
		want := append([]string{"Namespace/" + namespace}, crds...)
		slices.Sort(want)
		if diff := cmp.Diff(want, m.objects(t, render(t, with...))); diff != "" {
			t.Errorf("left (-want +got):\n%s", diff)
		}
		if got := m.mustKubectl(t, "-n", namespace, "get", "configmaps,secrets", "-o", "name"); strings.Contains(got, "proffer-configuration") ||
			!strings.Contains(got, "secret/proffer-database") {
			t.Errorf("left of the database is %s, want the Secret", got)
		}
		kept := "kept the CRDs, 1 ResourcePolicies and 1 Grants, and namespace " + namespace
		if !strings.Contains(out, kept) {
			t.Errorf("the output lacks %q:\n%s", kept, out)
		}
		calls := test.Read(t, m.calls)
		order := regexp.MustCompile(`(?s)delete deployment proffer.* wait --for=delete pod ` +
			`.*delete validatingadmissionpolicybinding.*delete -k`)
		if !order.MatchString(calls) {
			t.Errorf("the calls are not in the order %s:\n%s", order, calls)
		}
		m.mustMake(t, "undeploy") // may be repeated
	})
	t.Run("uninstall deletes policies only with WITH_POLICIES", func(t *testing.T) {
		m.mustRefuse(t, "1 ResourcePolicies and 1 Grants would be deleted with the CRDs: write WITH_POLICIES=1",
			"uninstall", "KUBECONFIG="+m.kubeconfig)
		m.mustMake(t, "uninstall", "WITH_POLICIES=1")
		m.mustMake(t, "uninstall")
		if got := m.objects(t, renderAt(t, config+"/crd")); len(got) > 0 {
			t.Errorf("%v are left", got)
		}
	})
	if diff := cmp.Diff(before, status(t)); diff != "" {
		t.Errorf("files of the repository changed (-before +after):\n%s", diff)
	}
}

// testAccounting adds the component accounting to a deployment with these components.
func (m *makefile) testAccounting(t *testing.T, with []string) {
	deploy := []string{"deploy", "IMG=" + anImage, "KUBECONFIG=" + m.kubeconfig, "COMPONENTS=" + strings.Join(with, " ") + " accounting"}
	file := filepath.Join(t.TempDir(), "config.yaml")
	test.Must(t, os.WriteFile(file, []byte(exampleConfiguration(t)), 0o600))
	m.mustRefuse(t, "CONFIG="+file+" has no effect without the component accounting", "deploy", "IMG="+anImage, "KUBECONFIG="+m.kubeconfig, "CONFIG="+file)
	m.mustRefuse(t, "copy config/components/accounting/config.yaml, set clusterID, and write CONFIG=file", deploy...)
	m.mustRefuse(t, "CONFIG=/nowhere is not a file", append(deploy, "CONFIG=/nowhere")...)
	deploy = append(deploy, "CONFIG="+file)
	m.mustRefuse(t, "has no clusterID: write the ID of this cluster in Liqo", deploy...)
	test.Must(t, os.WriteFile(file, []byte(newConfiguration(t, "PostgreSQL")), 0o600))
	m.mustRefuse(t, "namespace "+namespace+" has no Secret proffer-database with the key dsn", deploy...)
	m.mustKubectl(t, "-n", namespace, "create", "secret", "generic", "proffer-database", "--from-literal=dsn=postgres://")
	m.mustMake(t, deploy...)
	mounted := m.mustKubectl(t, "-n", namespace, "get", "deployment", "proffer",
		"-o", "jsonpath={.spec.template.spec.volumes[*].configMap.name}")
	if got := m.mustKubectl(t, "-n", namespace, "get", "configmap", mounted, "-o", `jsonpath={.data.config\.yaml}`); got != newConfiguration(t, "PostgreSQL") {
		t.Errorf("the replicas get the configuration %s", got)
	}
}

// What Orchestrations have written sends pods on without the operator, and without the CRD.
func TestMakeLeavesNoBrokerWithoutItsOperator(t *testing.T) {
	m := newMakefile(t, nil)
	crd := controlplane.LiqoCRD(t, "offloading.liqo.io_namespaceoffloadings.yaml")
	m.mustKubectl(t, "apply", "-f", crd)
	m.mustMake(t, "deploy", "IMG="+anImage, "COMPONENTS=orchestrator provider-guard")
	m.mustKubectl(t, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	m.mustKubectl(t, "apply", "-f", "testdata/orchestration.yaml")
	out := m.mustMake(t, "undeploy")
	for _, want := range []string{
		"kept the CRDs, 0 ResourcePolicies, 0 Grants and 1 Orchestrations, and namespace " + namespace,
		"kept 1 NamespaceOffloadings too, so Liqo still sends pods on",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	const refused = "1 NamespaceOffloadings of the operator would stay, and Liqo would go on sending pods"
	m.mustRefuse(t, refused, "uninstall", "KUBECONFIG="+m.kubeconfig)
	m.mustRefuse(t, refused, "uninstall", "KUBECONFIG="+m.kubeconfig, "WITH_POLICIES=1")
	m.mustKubectl(t, "delete", "namespaceoffloadings.offloading.liqo.io", "--all-namespaces", "--selector", "app.kubernetes.io/managed-by=proffer")
	m.mustRefuse(t, "0 ResourcePolicies, 0 Grants and 1 Orchestrations would be deleted with the CRDs: write WITH_POLICIES=1",
		"uninstall", "KUBECONFIG="+m.kubeconfig)
	m.mustMake(t, "uninstall", "WITH_POLICIES=1")
	m.mustMake(t, "uninstall")
	if got := m.mustKubectl(t, "get", "crd", "-o", "name"); got != "customresourcedefinition.apiextensions.k8s.io/namespaceoffloadings.offloading.liqo.io\n" {
		t.Errorf("left are %s", got)
	}
	if got := m.mustKubectl(t, "get", "namespaceoffloadings.offloading.liqo.io", "--all-namespaces", "-o", "name"); !strings.Contains(got, "/offloading") {
		t.Error("a NamespaceOffloading of an admin is gone")
	}
}

// Before Kubernetes 1.30 there are no admission policies.
func TestMakeUndeploysWithoutAdmissionPolicies(t *testing.T) {
	const v1 = "admissionregistration.k8s.io/v1/"
	m := newMakefile(t, map[string][]string{
		"runtime-config": {
			v1 + "validatingadmissionpolicies=false," + v1 + "validatingadmissionpolicybindings=false",
		},
		"disable-admission-plugins": {"ValidatingAdmissionPolicy"},
	})
	older, err := filepath.Glob(config + "/components/kubernetes-1.2*")
	test.Must(t, err)
	component := "COMPONENTS=" + filepath.Base(older[0])
	m.mustRefuse(t, "write "+component, "deploy", "IMG="+anImage, "KUBECONFIG="+m.kubeconfig)
	m.mustMake(t, "deploy", "IMG="+anImage, component)
	m.mustMake(t, "undeploy")
	want := append([]string{"Namespace/" + namespace}, names(renderAt(t, config+"/crd"))...)
	slices.Sort(want)
	if diff := cmp.Diff(want, m.objects(t, renderBase(t))); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// The installer has the same objects in one file, for the given namespace and components.
func TestTheInstallerIsWhatDeployApplies(t *testing.T) {
	m := &makefile{kubectl: cluster.kubectl}
	installer := filepath.Join(t.TempDir(), "dist", "install.yaml")
	file := filepath.Join(t.TempDir(), "config.yaml")
	test.Must(t, os.WriteFile(file, []byte(newConfiguration(t, "PostgreSQL")), 0o600))
	out, err := m.run(t, "build-installer", "IMG="+anImage, "NAMESPACE=other", "COMPONENTS=flat networkpolicy accounting",
		"CONFIG="+file, "INSTALLER="+installer)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := overlayWith(t, docsOverlay(t)+`  options:
    labels:
      app.kubernetes.io/name: proffer
      app.kubernetes.io/component: configuration
      app.kubernetes.io/part-of: proffer
      app.kubernetes.io/managed-by: kustomize
namespace: other
images: [{name: controller, newName: registry.example.com/proffer, newTag: v0.1.0}]
`, "flat", "networkpolicy", "accounting")
	test.Must(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(newConfiguration(t, "PostgreSQL")), 0o600))
	want := mustKubectl(t, "kustomize", dir)
	got := test.Read(t, installer)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the file differs from the overlay (-want +got):\n%s", diff)
	}
}
