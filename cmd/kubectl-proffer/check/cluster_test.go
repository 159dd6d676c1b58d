package check

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/exit"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/operatortest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// kubeconfig writes the file for the administrator of the test's cluster.
func kubeconfig(t *testing.T) string {
	t.Helper()
	return kubetest.Cluster(t).KubeconfigFile(t)
}

// kubectl runs the kubectl of the test's cluster as its administrator.
func kubectl(t *testing.T, file string, args ...string) {
	t.Helper()
	_, err := test.Kubectl(context.WithoutCancel(t.Context()), filepath.Join(kubetest.Cluster(t).Assets, "kubectl"), file, "", args...)
	test.Must(t, err)
}

// caller is the administrator of a kubeconfig, or another user.
func caller(file, user string) *operatorclient.Flags {
	config := genericclioptions.NewConfigFlags(false)
	config.KubeConfig = &file
	if user != "" {
		config.Impersonate = &user
	}
	return operatorclient.NewFlags(config)
}

// reportOf returns the report for a user.
func reportOf(t *testing.T, file, user string) Report {
	t.Helper()
	r, err := examine(t.Context(), caller(file, user), genericiooptions.NewTestIOStreamsDiscard(), "liqo")
	test.Must(t, err)
	return r
}

// golden compares the table with the files of this name for both widths.
func golden(t *testing.T, name string, r Report) {
	t.Helper()
	for _, width := range []int{80, 160} {
		lines := r.table().Lines(width, false)
		operatortest.Golden(t, fmt.Sprintf("%s-%d.txt", name, width), lines)
		operatortest.Fits(t, width, lines)
	}
}

// call runs the command as the administrator, and returns what it printed and its exit status.
func call(t *testing.T, file string, args ...string) (out string, status int) {
	t.Helper()
	streams, _, stdout, _ := genericiooptions.NewTestIOStreams()
	flags := caller(file, "")
	cmd := NewCommand(flags, streams)
	flags.AddFlags(cmd.Flags())              // The root command has them.
	cmd.SetArgs(append([]string{}, args...)) // Nil stands for those of the test.
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	status, printed := exit.Of(cmd, err)
	if printed {
		t.Log(err)
	}
	return stdout.String(), status
}

const (
	deployed = "../../../config/default"
	liqoCRDs = "../../../test/deploy/testdata/liqo-crds.yaml"
)

// install brings the cluster into a good state, in which no pod runs.
func install(t *testing.T, file string) {
	t.Helper()
	kubectl(t, file, "apply", "--server-side", "--force-conflicts", "-k", deployed)
	kubectl(t, file, "delete", "--ignore-not-found", "-f", liqoCRDs) // Another test may be about to.
	kubectl(t, file, "apply", "-f", liqoCRDs)
	kubectl(t, file, "wait", "--for=condition=Established", "-f", liqoCRDs)
	kubectl(t, file, "apply", "-f", "testdata/good.yaml")
	kubectl(t, file, "-n", "proffer-system", "set", "image", "deployment/proffer", "proffer=example.com/proffer:v1")
	kubectl(t, file, "-n", "proffer-system", "patch", "deployment", "proffer", "--subresource=status", "--type=merge",
		`-p={"status":{"observedGeneration":9,"replicas":2,"readyReplicas":2,"availableReplicas":2,"updatedReplicas":2}}`)
	kubectl(t, file, "patch", "resourcepolicy", "gold", "--subresource=status", "--type=merge",
		`-p={"status":{"conditions":[{"type":"Ready","status":"True","reason":"Offering","message":"","observedGeneration":9,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	t.Cleanup(func() {
		kubectl(t, file, "delete", "--ignore-not-found", "--wait=false", "-f", "testdata/good.yaml", "-f", "testdata/bad.yaml", "-f", liqoCRDs)
	})
}

func TestAnInstallationIsChecked(t *testing.T) {
	file := kubeconfig(t)
	install(t, file)
	test.Eventually(t, func() string { // The API server learns of roles and CRDs a moment later.
		if r := reportOf(t, file, ""); r.Status != Skipped {
			return fmt.Sprint(r)
		}
		return ""
	})
	golden(t, "good", reportOf(t, file, ""))
	if _, status := call(t, file); status != 1 {
		t.Errorf("exit status %d, want 1: no replica can be asked for its news", status)
	}
	somebody := reportOf(t, file, "somebody")
	golden(t, "somebody", somebody)
	if somebody.Status != Skipped {
		t.Errorf("%s without any right, want skipped", somebody.Status)
	}

	kubectl(t, file, "-n", "liqo", "patch", "deployment", "liqo-controller-manager", "--type=json",
		`-p=[{"op":"replace","path":"/spec/template/spec/containers/0/args","value":["--resource-plugin-address=liqo-fixed-resources-plugin.liqo:6001","--offer-update-threshold-percentage=5"]}]`)
	hasFinding(t, file, Finding{
		checkLiqoAddress, Warning, "Liqo reads from liqo-fixed-resources-plugin.liqo:6001, not from Proffer.",
		"Set controllerManager.config.resourcePluginAddress of Liqo's Helm chart to proffer.proffer-system.svc:6001: see docs/how-to/connect-liqo-v0.md.",
	})
	kubectl(t, file, "apply", "-f", "testdata/exceeded.yaml")
	hasFinding(t, file, Finding{
		checkGrants, Warning, "Pods request more than their ResourceSlice was granted: mine of rome requests cpu 100 of 4.",
		"See docs/explanation/trust.md. A grant that was lowered is another cause.",
	})
	kubectl(t, file, "delete", "--force", "-f", "testdata/exceeded.yaml")
	kubectl(t, file, "delete", "clusterrolebinding", "proffer-manager")
	kubectl(t, file, "delete", "validatingadmissionpolicybinding", "proffer-slice-guard")
	kubectl(t, file, "delete", "validatingadmissionpolicy", "proffer-slice-status-guard")
	kubectl(t, file, "patch", "crd", "resourcepolicies.proffer.dev", "--type=json",
		`-p=[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/overrides/maxItems","value":65}]`)
	kubectl(t, file, "-n", "proffer-system", "delete", "service/proffer", "lease/proffer.dev")
	kubectl(t, file, "-n", "proffer-system", "scale", "deployment/proffer", "--replicas=3")
	kubectl(t, file, "apply", "-f", "testdata/bad.yaml")
	kubectl(t, file, "patch", "resourcepolicy", "gold", "--type=merge", `-p={"spec":{"priority":1}}`)
	kubectl(t, file, "patch", "resourcepolicy", "gold", "--subresource=status", "--type=merge", `-p={"status":{"conditions":null}}`)
	test.Eventually(t, func() string {
		r := reportOf(t, file, "")
		if !strings.Contains(fmt.Sprint(r), "may not list") {
			return fmt.Sprint(r)
		}
		return ""
	})
	golden(t, "bad", reportOf(t, file, ""))
	if _, status := call(t, file); status != 2 {
		t.Errorf("exit status %d, want 2", status)
	}

	hasFinding(t, file, Finding{
		checkReplicas, Wrong, "There is no Deployment proffer in namespace default.", "Install Proffer, or name its namespace with --operator-namespace.",
	}, "--operator-namespace=default", "--liqo-namespace=default")
}

// hasFinding requires a finding in the report, as JSON.
func hasFinding(t *testing.T, file string, want Finding, args ...string) {
	t.Helper()
	out, status := call(t, file, append(args, "-o", "json")...)
	var report Report
	test.Must(t, json.Unmarshal([]byte(out), &report))
	if !slices.Contains(report.Findings, want) {
		t.Errorf("the report lacks %+v:\n%s", want, out)
	}
	if status != exitStatus[report.Status] {
		t.Errorf("exit status %d of a report that is %s", status, report.Status)
	}
}

func TestErrorsHaveAnExitStatusOfTheirOwn(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "kubeconfig")
	const text = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]}"
	test.Must(t, os.WriteFile(nowhere, []byte(text), 0o600))
	for name, args := range map[string][]string{"no API server": nil, "a format": {"-o", "wide"}, "an argument": {"crds"}, "a flag": {"--fast"}} {
		t.Run(name, func(t *testing.T) {
			if out, status := call(t, nowhere, args...); status != exit.Failed || out != "" {
				t.Errorf("exit status %d with output %q, want %d without", status, out, exit.Failed)
			}
		})
	}
}

// The API server does not proxy to the loopback device, so another server stands for it here.
func TestReplicasAreAskedThroughTheAPIServer(t *testing.T) {
	answers := map[string]struct {
		status int
		body   string
	}{
		"/api/v1/namespaces/proffer-system/pods/http:fresh:8081/proxy/readyz": {http.StatusOK, "[+]watches ok\n"},
		"/api/v1/namespaces/proffer-system/pods/http:stale:8081/proxy/readyz": {http.StatusInternalServerError, "[+]offers ok\n[-]watches failed: reason withheld\n"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, there := answers[r.URL.Path]
		if !there || !r.URL.Query().Has("verbose") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.WriteHeader(answer.status)
		if _, err := w.Write([]byte(answer.body)); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	c, err := newCluster(&rest.Config{Host: server.URL})
	test.Must(t, err)
	for want, pods := range map[Status][]string{OK: {"fresh"}, Wrong: {"fresh", "stale"}, Skipped: {"fresh", "other"}} {
		got := findNews("proffer-system", flags{probes: ":8081"}, knownOf(pods, nil), c.probe(t.Context(), "proffer-system", pods, 8081))
		if got.Status != want {
			t.Errorf("%v: %+v, want %s", pods, got, want)
		}
	}
}
