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
)

const anImage = "registry.example.com/proffer:v0.1.0"

// makefile runs the targets of the Makefile on a cluster of its own.
type makefile struct {
	kubeconfig string
	// kubectl is the real one, and calls is where each call of it is written down.
	kubectl, calls string
}

func newMakefile(t *testing.T, flags map[string][]string) *makefile {
	t.Helper()
	c := controlplane.StartTest(t, controlplane.Options{APIServerFlags: flags})
	dir := t.TempDir()
	m := &makefile{kubeconfig: filepath.Join(dir, "kubeconfig"), kubectl: filepath.Join(dir, "kubectl"), calls: filepath.Join(dir, "calls")}
	must(t, c.WriteKubeconfig(m.kubeconfig))
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >>%s\nexec %s \"$@\"\n", m.calls, filepath.Join(c.Assets, "kubectl"))
	must(t, os.WriteFile(m.kubectl, []byte(script), 0o700))
	return m
}

// run makes a target, and returns all that was printed.
func (m *makefile) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"-C", "../..", "--no-print-directory"}, args...)...)
	// What a shell has exported must not count.
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(m.kubectl)+":"+os.Getenv("PATH"), "KUBECONFIG="+m.kubeconfig, "IMG="+anImage, "NAMESPACE=exported", "WITH_POLICIES=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// does makes a target on the cluster, which has to succeed.
func (m *makefile) does(t *testing.T, args ...string) string {
	t.Helper()
	out, err := m.run(t, append(args, "KUBECONFIG="+m.kubeconfig)...)
	if err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// refuses makes a target that has to fail, say this and not more than a few lines.
func (m *makefile) refuses(t *testing.T, saying string, args ...string) {
	t.Helper()
	out, err := m.run(t, args...)
	if err == nil || !strings.Contains(out, saying) || strings.Count(out, "\n") > 4 {
		t.Errorf("make %s: %v, want it to fail and to say %q:\n%s", strings.Join(args, " "), err, saying, out)
	}
}

// on runs kubectl on the cluster, which has to succeed.
func (m *makefile) on(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), m.kubectl, append([]string{"--kubeconfig", m.kubeconfig}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// objects are the kinds and names of what the cluster has of a rendered list.
func (m *makefile) objects(t *testing.T, list rendered) []string {
	t.Helper()
	file := filepath.Join(filepath.Dir(m.calls), "list.yaml") // kubectl takes the comma in the name of a subtest's directory as the end of the path.
	var text strings.Builder
	for _, u := range list {
		y, err := u.MarshalJSON()
		must(t, err)
		text.WriteString(string(y) + "\n---\n")
	}
	must(t, os.WriteFile(file, []byte(text.String()), 0o600))
	out := m.on(t, "get", "--ignore-not-found", "--output", `jsonpath={range .items[*]}{.kind}/{.metadata.name}{"\n"}{end}`, "-f", file)
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

// TestMakeDeploysAndTakesAwayWithoutTakingBack goes through the targets in the order of a cluster's life.
func TestMakeDeploysAndTakesAwayWithoutTakingBack(t *testing.T) {
	before := status(t)
	m := newMakefile(t, nil)

	t.Run("nothing is changed on a cluster that was not named", func(t *testing.T) {
		for _, target := range []string{"install", "undeploy", "uninstall"} {
			m.refuses(t, "write make "+target+" KUBECONFIG=$HOME/.kube/config", target)
		}
		m.refuses(t, "write make deploy KUBECONFIG=$HOME/.kube/config", "deploy", "IMG="+anImage)
		m.refuses(t, "KUBECONFIG=/dev/null is not a file", "install", "KUBECONFIG=/dev/null")
	})
	t.Run("an image has to be named, with its tag", func(t *testing.T) {
		m.refuses(t, "write make deploy IMG=registry.example.com/proffer:v0.1.0", "deploy", "KUBECONFIG="+m.kubeconfig)
		m.refuses(t, "write IMG=localhost:5000/proffer:v0.1.0", "deploy", "IMG=localhost:5000/proffer", "KUBECONFIG="+m.kubeconfig)
		m.refuses(t, "there is no component flatt: COMPONENTS takes any of flat ", "deploy", "IMG="+anImage, "COMPONENTS=flatt", "KUBECONFIG="+m.kubeconfig)
	})
	crds := names(renderAt(t, config+"/crd"))
	t.Run("install applies the CRDs", func(t *testing.T) {
		m.does(t, "install")
		if diff := cmp.Diff(crds, m.objects(t, render(t))); diff != "" {
			t.Errorf("it has (-want +got):\n%s", diff)
		}
	})
	t.Run("deploy applies all, with the image, and a second time changes nothing", func(t *testing.T) {
		m.does(t, "deploy", "IMG="+anImage, "COMPONENTS=served-classes networkpolicy")
		all := render(t, "served-classes", "networkpolicy")
		if diff := cmp.Diff(names(all), m.objects(t, all)); diff != "" {
			t.Errorf("it has (-want +got):\n%s", diff)
		}
		if got := m.on(t, "-n", namespace, "get", "deployment", "proffer", "-o", "jsonpath={.spec.template.spec.containers[0].image}"); got != anImage {
			t.Errorf("the image is %s, want %s", got, anImage)
		}
		out := m.does(t, "deploy", "IMG="+anImage, "COMPONENTS=served-classes networkpolicy")
		if n := strings.Count(out, " unchanged\n") + strings.Count(out, " configured\n"); n != len(all) || strings.Contains(out, " created\n") {
			t.Errorf("%d of %d objects were there:\n%s", n, len(all), out)
		}
	})
	m.on(t, "apply", "-f", writeFixed(t, "gold", "cpu: 4, memory: 4Gi, pods: 10"))
	m.on(t, "apply", "-f", "testdata/grant.yaml")
	t.Run("deploy refuses a second installation", func(t *testing.T) {
		m.refuses(t, "Proffer is installed in namespace "+namespace, "deploy", "IMG="+anImage, "NAMESPACE=other", "KUBECONFIG="+m.kubeconfig)
	})
	t.Run("uninstall refuses while the operator runs", func(t *testing.T) {
		m.refuses(t, "write make undeploy NAMESPACE="+namespace, "uninstall", "WITH_POLICIES=1", "KUBECONFIG="+m.kubeconfig)
	})
	t.Run("undeploy refuses while Liqo asks for offers", func(t *testing.T) {
		m.on(t, "create", "namespace", "liqo")
		m.on(t, "apply", "-f", "testdata/liqo-deployment.yaml")
		m.refuses(t, "Deployment liqo/liqo-controller-manager asks Proffer for its offers", "undeploy", "KUBECONFIG="+m.kubeconfig)
		m.on(t, "delete", "-f", "testdata/liqo-deployment.yaml")
	})
	t.Run("undeploy keeps what is on record, and ends the operator first", func(t *testing.T) {
		must(t, os.WriteFile(m.calls, nil, 0o600))
		out := m.does(t, "undeploy")
		want := append([]string{"Namespace/" + namespace}, crds...)
		slices.Sort(want)
		if diff := cmp.Diff(want, m.objects(t, render(t, "served-classes", "networkpolicy"))); diff != "" {
			t.Errorf("there is left (-want +got):\n%s", diff)
		}
		if want := "kept the CRDs, 1 ResourcePolicies and 1 Grants, and namespace " + namespace; !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
		calls, err := os.ReadFile(m.calls)
		must(t, err)
		order := regexp.MustCompile(`(?s)delete deployment proffer.* wait --for=delete pod .*delete validatingadmissionpolicybinding.*delete -k`)
		if !order.Match(calls) {
			t.Errorf("the order is another one than %s:\n%s", order, calls)
		}
		m.does(t, "undeploy") // Nothing to do is no error.
	})
	t.Run("uninstall deletes policies only when told to", func(t *testing.T) {
		m.refuses(t, "1 ResourcePolicies and 1 Grants would be deleted with the CRDs: write WITH_POLICIES=1", "uninstall", "KUBECONFIG="+m.kubeconfig)
		m.does(t, "uninstall", "WITH_POLICIES=1")
		m.does(t, "uninstall")
		if got := m.objects(t, renderAt(t, config+"/crd")); len(got) > 0 {
			t.Errorf("there is left %v", got)
		}
	})
	if diff := cmp.Diff(before, status(t)); diff != "" {
		t.Errorf("files of the repository changed (-before +after):\n%s", diff)
	}
}

// TestMakeUndeploysWhereThereAreNoAdmissionPolicies, as before Kubernetes 1.30.
func TestMakeUndeploysWhereThereAreNoAdmissionPolicies(t *testing.T) {
	const v1 = "admissionregistration.k8s.io/v1/"
	m := newMakefile(t, map[string][]string{
		"runtime-config":            {v1 + "validatingadmissionpolicies=false," + v1 + "validatingadmissionpolicybindings=false"},
		"disable-admission-plugins": {"ValidatingAdmissionPolicy"},
	})
	older, err := filepath.Glob(config + "/components/kubernetes-1.2*")
	must(t, err)
	component := "COMPONENTS=" + filepath.Base(older[0])
	m.refuses(t, "write "+component, "deploy", "IMG="+anImage, "KUBECONFIG="+m.kubeconfig)
	m.does(t, "deploy", "IMG="+anImage, component)
	m.does(t, "undeploy")
	want := append([]string{"Namespace/" + namespace}, names(renderAt(t, config+"/crd"))...)
	slices.Sort(want)
	if diff := cmp.Diff(want, m.objects(t, renderBase(t))); diff != "" {
		t.Errorf("there is left (-want +got):\n%s", diff)
	}
}

// TestTheInstallerIsWhatDeployApplies in one file, for the namespace and the components asked for.
func TestTheInstallerIsWhatDeployApplies(t *testing.T) {
	m := &makefile{kubectl: cluster.kubectl}
	installer := filepath.Join(t.TempDir(), "dist", "install.yaml")
	out, err := m.run(t, "build-installer", "IMG="+anImage, "NAMESPACE=other", "COMPONENTS=flat networkpolicy", "INSTALLER="+installer)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := mustKubectl(t, "kustomize", overlayWith(t,
		"namespace: other\nimages: [{name: controller, newName: registry.example.com/proffer, newTag: v0.1.0}]\n", "flat", "networkpolicy"))
	got, err := os.ReadFile(installer)
	must(t, err)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the file differs from the overlay (-want +got):\n%s", diff)
	}
}
