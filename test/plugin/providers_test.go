package plugin

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

// newBroker makes this API server the broker milan, with the providers oslo and paris, and also the cluster of its
// consumer rome, whose identity has the rights that Liqo gives it, and no others. It returns the kubeconfig of an
// admin of rome.
func newBroker(t *testing.T) (alice string) {
	t.Helper()
	for _, file := range []string{"crd.yaml", "providerchoice_crd.yaml", "role.yaml"} {
		file = "../../config/components/orchestrator/" + file
		must(t, "-n", namespace, "apply", "--server-side", "-f", file)
		cleanup(t, "-n", namespace, "delete", "-f", file)
	}
	for _, crd := range []string{
		"authentication.liqo.io_tenants.yaml", "authentication.liqo.io_identities.yaml",
		"offloading.liqo.io_virtualnodes.yaml", "offloading.liqo.io_namespaceoffloadings.yaml",
	} {
		file := controlplane.LiqoCRD(t, crd)
		must(t, "apply", "--server-side", "-f", file)
		cleanup(t, "delete", "-f", file)
		must(t, "wait", "--for=condition=Established", "-f", file)
	}
	config, err := cluster.UserConfig("rome", "liqo.io")
	test.Must(t, err)
	rights := test.Read(t, controlplane.LiqoFile(t, "files", "liqo-remote-controlplane-ClusterRole.yaml"))
	manifest := strings.ReplaceAll(test.Read(t, "testdata/broker.yaml"), "KUBECONFIG", base64.StdEncoding.EncodeToString(controlplane.KubeconfigOf(t, config)))
	manifest += rights // They are those of the ClusterRole at its end.
	file := filepath.Join(t.TempDir(), "broker.yaml")
	test.Must(t, os.WriteFile(file, []byte(manifest), 0o600))
	must(t, "apply", "--server-side", "-f", file)
	cleanup(t, "delete", "--wait=false", "-f", file)
	cleanup(t, "label", "namespace", "liqo-tenant-rome", "team-rome", "liqo.io/tenant-namespace-", "liqo.io/remote-cluster-id-")
	must(t, "-n", "liqo-tenant-milan", "patch", "identity", "controlplane-milan", "--subresource=status", "--type=merge",
		"-p", `'{"status":{"kubeconfigSecretRef":{"name":"kubeconfig-controlplane-milan"}}}'`)
	must(t, "patch", "node", "oslo", "paris", "--subresource=status", "--type=merge", "-p", `'{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'`)
	return user(t, "alice")
}

func TestAConsumerChoosesThroughKubectl(t *testing.T) {
	alice := newBroker(t)
	orchestration := func(may string) {
		t.Helper()
		const text = `{apiVersion: proffer.dev/v1alpha1, kind: Orchestration, metadata: {name: all}, spec: {consumersMay: %s}}`
		if r := shell(t.Context(), cluster.admin, fmt.Sprintf("echo '"+text+"' | kubectl apply -f -", may)); r.status != 0 {
			t.Fatal(r.stderr)
		}
	}
	providers := func(args string) result { return shell(t.Context(), alice, "kubectl proffer providers "+args) }
	expect := func(args string, status int, want ...string) {
		t.Helper()
		r := providers(args)
		for _, w := range want {
			if r.status != status || !strings.Contains(r.stdout+r.stderr, w) {
				t.Errorf("%s: %d, want %d, %s\n%s%s", args, r.status, status, w, r.stdout, r.stderr)
			}
		}
	}
	// Without an operator, nobody has given rome the right.
	expect("choose --all", 1, "error: no provider of this cluster lets it choose: milan: it serves no ProviderChoice to this cluster: it has no component orchestrator")

	startOperator(t, "--orchestrate", "--cluster-id=milan")
	orchestration("Choose")
	cleanup(t, "delete", "orchestration", "all")
	test.Eventually(t, func() string { // The right, and the choice of all.
		if r := providers("choose --all"); r.status != 0 || !strings.Contains(r.stdout, "milan: InForce: The choice follows this ProviderChoice") {
			return r.stdout + r.stderr
		}
		return ""
	})
	expect("", 0, "\nmilan    oslo       yes      ", "\nmilan    paris      yes      ", "\nmilan: InForce: ", "  set: all that the broker allows\n  measured: 20")
	expect("choose oslo lima", 0, "milan: choose oslo lima\n", "\nmilan    oslo       yes      ", "Consumer: the consumer has chosen others", "  not among its providers: lima\n")
	expect("prefer price.cpu=2,uptime", 0, "  set: choose oslo lima; prefer price.cpu=2,uptime=1\n", "Price cpu not measured (0), Uptime ")
	expect("count 2", 0, "  set: choose oslo lima; prefer price.cpu=2,uptime=1; count 2\n")
	expect("require latency=50", 1, "milan: NoProvider: No provider is left: see providers\n", "Consumer: Latency is required by the consumer, and is not measured")
	expect("require uptime=99.5%", 1, `error: milan: it refuses this: ProviderChoice.proffer.dev "providers" is invalid: `, "an uptime is a percentage in quotes, 0 to 100")
	expect("choose Oslo", 1, "a cluster ID is a lower-case UUID or a DNS-1123 label, such as rome: write it as Liqo shows it")
	expect("require --none --wait=false", 0, "milan: choose oslo lima; prefer price.cpu=2,uptime=1; count 2\n")

	var got struct {
		Brokers []struct {
			ClusterID string
			Choice    struct {
				Spec struct{ Providers []string }
			}
		}
	}
	r := providers("-o json")
	test.Must(t, json.Unmarshal([]byte(r.stdout), &got))
	if len(got.Brokers) != 1 || got.Brokers[0].ClusterID != "milan" || strings.Join(got.Brokers[0].Choice.Spec.Providers, " ") != "oslo lima" {
		t.Errorf("got %+v", got)
	}
	orchestration("None")
	expect("count 1", 1, "milan: NotAllowed: The broker does not let cluster rome choose: ask its admin\n", "  set: choose oslo lima; ")
	expect("reset", 0, "milan: the ProviderChoice is deleted, and the broker chooses.\n")
	expect("", 0, "milan: no ProviderChoice, so the broker chooses. To see its providers: kubectl proffer providers choose --all --broker milan\n")

	testWithoutPlugin(t, alice)
	expect("", 0, "  set: choose paris\n")

	must(t, "delete", "crd", "providerchoices.proffer.dev")
	expect("reset", 1, "it serves no ProviderChoice to this cluster: it has no component orchestrator")
	must(t, "apply", "--server-side", "-f", "../../config/components/orchestrator/providerchoice_crd.yaml")
}

// testWithoutPlugin writes a choice as the page says that kubectl alone does.
func testWithoutPlugin(t *testing.T, alice string) {
	t.Helper()
	dir, n := t.TempDir(), 0
	test.Must(t, os.WriteFile(filepath.Join(dir, "choice.yaml"), []byte("apiVersion: proffer.dev/v1alpha1\nkind: ProviderChoice\n"+
		"metadata: {name: providers}\nspec: {providers: [paris]}\n"), 0o600))
	for _, block := range test.Blocks(test.Read(t, "../../docs/reference/commands/providers.md"), "console") {
		if !strings.Contains(block.Text, "milan.yaml") {
			continue
		}
		block.Text = strings.ReplaceAll(block.Text, "\\\n", "")
		for _, step := range block.Steps() {
			n++
			if r := shell(t.Context(), alice, "cd "+dir+" && "+step.Command); r.status != 0 {
				t.Errorf("%s: %s", step.Command, r.stderr)
			}
		}
	}
	if n != 3 {
		t.Errorf("%d commands on the page", n)
	}
}
