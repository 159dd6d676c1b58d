package plugin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/nodestest"
	"proffer.dev/proffer/test/process"
)

// The Roles of users.
const (
	readerRole    = "proffer-plugin-reader"
	simulatorRole = "proffer-plugin-simulator"
)

// editor is a user who may do everything that the plugin needs.
func editor(t *testing.T) string {
	t.Helper()
	kubeconfig := user(t, "editor", readerRole, simulatorRole)
	must(t, "create", "clusterrolebinding", "editor", "--clusterrole=proffer-resourcepolicy-editor", "--user=editor")
	cleanup(t, "delete", "clusterrolebinding", "editor")
	return kubeconfig
}

func TestEachCommandWorksThroughKubectl(t *testing.T) {
	kubeconfig := editor(t)
	operator := startOperator(t)
	populate(t, kubeconfig)
	t.Run("the documentation shows what is printed", func(t *testing.T) { testDocumentation(t, kubeconfig) })
	t.Run("the page of the API shows what works", func(t *testing.T) { testAPIPage(t, cluster.admin, operator.Address("metrics")) })
	t.Run("kubectl completes consumers", func(t *testing.T) {
		r := kubectl(t.Context(), kubeconfig, "__complete", "proffer", "offers", "''")
		if want := "oslo\nrome\n:4\n"; r.stdout != want {
			t.Errorf("got %q, want %q (%s)", r.stdout, want, r.stderr)
		}
	})
	t.Run("an anonymised snapshot has all fields", func(t *testing.T) {
		r := kubectl(t.Context(), kubeconfig, "proffer", "snapshot", "--anonymise")
		if r.status != 0 || regexp.MustCompile(`rome|oslo|worker-\d|default`).MatchString(r.stdout) {
			t.Errorf("%d %s%s", r.status, r.stdout, r.stderr)
		}
		var before, after rest.World
		decode(t, kubectl(t.Context(), kubeconfig, "proffer", "snapshot").stdout, &before)
		decode(t, r.stdout, &after)
		if len(before.Pods) != 4 || len(after.Pods) != 4 || len(after.Nodes) != 2 || len(after.Policies) != 2 {
			t.Errorf("from %d pods: %s", len(before.Pods), r.stdout)
		}
	})
	t.Run("an eviction has a status of its own", func(t *testing.T) {
		const policy = "{apiVersion: proffer.dev/v1alpha1, kind: ResourcePolicy, metadata: {name: gold-pool}, " +
			"spec: {class: gold, reclaim: Evict, offer: {nodes: {selector: {matchLabels: {pool: none}}}}}}"
		r := shell(t.Context(), kubeconfig, "echo '"+policy+"' | kubectl proffer simulate -f -")
		if r.status != 2 || !regexp.MustCompile(`(?m)^Evictions:\n.*\noslo +gold +1 +`).MatchString(r.stdout) {
			t.Errorf("%d %s%s", r.status, r.stdout, r.stderr)
		}
	})
	t.Run("a watch shows old and new amounts", func(t *testing.T) { testWatch(t, kubeconfig) })
	t.Run("what simulate says is what applying does", func(t *testing.T) { testSimulateThenApply(t, kubeconfig) })
	t.Run("a stop shows what it takes back, and resume undoes it", func(t *testing.T) { testStop(t, kubeconfig) })
	t.Run("a pause for a consumer that is not known says so", func(t *testing.T) { testPauseMisspelt(t, kubeconfig) })
	t.Run("what migrate says is what applying does", func(t *testing.T) { testMigrateThenApply(t, kubeconfig) })
}

// testSimulateThenApply applies what was simulated, and compares the offers with the simulation.
func testSimulateThenApply(t *testing.T, kubeconfig string) {
	file := filepath.Join(t.TempDir(), "policies.yaml")
	text := test.Read(t, "testdata/policies.yaml")
	test.Must(t, os.WriteFile(file, []byte(strings.Replace(text, "percent: 50", "percent: 75", 1)), 0o600))
	var before, after rest.Offers
	var simulated rest.Simulation
	decode(t, kubectl(t.Context(), kubeconfig, "proffer", "offers", "-o", "json").stdout, &before)
	r := kubectl(t.Context(), kubeconfig, "proffer", "simulate", "-f", file, "-o", "json")
	if r.status != 1 {
		t.Fatalf("exit status %d: %s", r.status, r.stderr)
	}
	decode(t, r.stdout, &simulated)
	if len(simulated.Offers) == 0 {
		t.Fatal("nothing changes")
	}
	decode(t, kubectl(t.Context(), kubeconfig, "proffer", "offers", "-o", "json").stdout, &after)
	if amount(&before, "rome", "gold", "cpu") != amount(&after, "rome", "gold", "cpu") {
		t.Error("simulating has changed an offer")
	}
	must(t, "apply", "-f", file)
	test.Eventually(t, func() error {
		decode(t, kubectl(t.Context(), kubeconfig, "proffer", "offers", "-o", "json").stdout, &after)
		for _, c := range simulated.Offers {
			if got := amount(&after, c.Consumer, c.Class, c.Resource); got != c.Then {
				return fmt.Errorf("%s/%s/%s is %s, and was simulated as %s", c.Consumer, c.Class, c.Resource, got, c.Then)
			}
		}
		return nil
	})
}

// testStop stops a policy, compares the offers with what was shown, and resumes it.
func testStop(t *testing.T, kubeconfig string) {
	var before, after rest.Offers
	decode(t, kubectl(t.Context(), kubeconfig, "proffer", "offers", "-o", "json").stdout, &before)
	if r := shell(t.Context(), kubeconfig, "echo n | kubectl proffer stop gold-pool"); r.status != 0 ||
		!strings.HasSuffix(r.stdout, "\n\nNothing was stopped.\n") || r.stderr != "Stop gold-pool? [y/N] " || !strings.Contains(r.stdout, "the policy is stopped") {
		t.Errorf("%d %s%s", r.status, r.stdout, r.stderr)
	}
	var simulated rest.Simulation
	file := filepath.Join(t.TempDir(), "stopped.yaml")
	text := test.Read(t, "testdata/policies.yaml")
	test.Must(t, os.WriteFile(file, []byte(strings.Replace(text, "class: gold\n", "class: gold\n  mode: Stopped\n", 1)), 0o600))
	decode(t, kubectl(t.Context(), kubeconfig, "proffer", "simulate", "-f", file, "-o", "json").stdout, &simulated)
	r := shell(t.Context(), kubeconfig, "echo y | kubectl proffer stop gold-pool")
	if want := "\n\nResourcePolicy gold-pool is stopped. The edit, by the field manager kubectl-proffer-pause:\n" +
		"  spec:\n    mode: Stopped\nIt ends with: kubectl proffer resume gold-pool\n"; !strings.HasSuffix(r.stdout, want) || r.status != 0 {
		t.Fatalf("%d %s%s", r.status, r.stdout, r.stderr)
	}
	if len(simulated.Offers) == 0 {
		t.Fatal("nothing changes")
	}
	offersAre := func(want func(c rest.OfferChange) string) {
		t.Helper()
		test.Eventually(t, func() error {
			decode(t, kubectl(t.Context(), kubeconfig, "proffer", "offers", "-o", "json").stdout, &after)
			for _, c := range simulated.Offers {
				if got := amount(&after, c.Consumer, c.Class, c.Resource); !c.Anyone && got != want(c) {
					return fmt.Errorf("%s/%s/%s is %s, and should be %s", c.Consumer, c.Class, c.Resource, got, want(c))
				}
			}
			return nil
		})
	}
	offersAre(func(c rest.OfferChange) string { return c.Then })
	if r := kubectl(t.Context(), kubeconfig, "proffer", "resume", "gold-pool"); r.stdout != "ResourcePolicy gold-pool is Active again.\n" {
		t.Fatalf("%d %s%s", r.status, r.stdout, r.stderr)
	}
	offersAre(func(c rest.OfferChange) string { return amount(&before, c.Consumer, c.Class, c.Resource) })
}

// testPauseMisspelt pauses a policy for a consumer whose ID is misspelt, and then for the one that was meant.
func testPauseMisspelt(t *testing.T, kubeconfig string) {
	for consumer, want := range map[string]string{
		"roma": "roma is not a known consumer: it gets the default offer. Did you mean rome?\n", "rome": "",
	} {
		r := kubectl(t.Context(), kubeconfig, "proffer", "pause", "standard", "--consumer", consumer)
		if !strings.HasPrefix(r.stdout, "ResourcePolicy standard is paused for "+consumer+" ") || r.stderr != want || r.status != 0 {
			t.Errorf("%d %s%s, want %q", r.status, r.stdout, r.stderr, want)
		}
		if r := kubectl(t.Context(), kubeconfig, "proffer", "resume", "standard", "--consumer", consumer); r.status != 0 {
			t.Fatal(r.stderr)
		}
	}
}

// testMigrateThenApply applies a converted policy, and compares the offers with the table.
func testMigrateThenApply(t *testing.T, kubeconfig string) {
	must(t, "create", "namespace", "liqo")
	// Without a controller a namespace stays.
	cleanup(t, "-n", "liqo", "delete", "deployments,services,roles,rolebindings", "--all")
	must(t, "-n", "liqo", "create", "role", "reader", "--verb=get", "--resource=deployments.apps")
	must(t, "-n", "liqo", "create", "rolebinding", "reader", "--role=reader", "--user=editor")
	must(t, "apply", "-f", "../../cmd/kubectl-proffer/migrate/testdata/fixed-resources.yaml")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	var r result
	test.Eventually(t, func() error { // The API server learns of the binding by a watch.
		r = kubectl(t.Context(), kubeconfig, "proffer", "migrate", "liqo-fixed-resources-plugin", "-n", "liqo", "--name", "standard", "--write", file)
		if r.status != 0 {
			return errors.New(r.stderr)
		}
		return nil
	})
	if want := "The policy is in " + file + ". Next: kubectl apply -f " + file; !strings.Contains(r.stderr, want) || strings.Contains(r.stderr, "did not check") {
		t.Errorf("%s\nwant %s", r.stderr, want)
	}
	rows := regexp.MustCompile(`(?m)^(rome|oslo) +(\S+) +(\S+) +(\S+) `).FindAllStringSubmatch(r.stdout, -1)
	// The pods of oslo request more than the plugin answers.
	if len(rows) != 10 || !regexp.MustCompile(`(?m)^oslo +memory +2G +2Gi +fixed at 2G; held at 2Gi by reclaim`).MatchString(r.stdout) {
		t.Fatalf("%d rows in:\n%s", len(rows), r.stdout)
	}
	must(t, "apply", "-f", file)
	test.Eventually(t, func() error {
		var after rest.Offers
		decode(t, kubectl(t.Context(), kubeconfig, "proffer", "offers", "-o", "json").stdout, &after)
		for _, row := range rows {
			if got := amount(&after, row[1], "", row[2]); got != row[4] {
				return fmt.Errorf("%s is offered %s of %s, and migrate says %s", row[1], got, row[2], row[4])
			}
		}
		return nil
	})
}

// testWatch edits a policy while the plugin watches.
func testWatch(t *testing.T, kubeconfig string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := shellCommand(ctx, kubeconfig, "exec kubectl proffer offers rome --class gold --watch")
	out, err := cmd.StdoutPipe()
	test.Must(t, err)
	test.Must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for range 4 { // The header, and three resources.
		lines.Scan()
	}
	must(t, "patch", "resourcepolicy", "gold-pool", "--type=merge", `-p='{"spec":{"offer":{"percent":75}}}'`)
	lines.Scan() // The time of the evaluation.
	for _, want := range []string{
		"rome gold cpu 6 -> 9.5 0 3 gold-pool 75% of 14 ", "rome gold memory 26Gi -> 40Gi 0 8Gi gold-pool 75% of ",
		"rome gold pods 108 -> 163 0 2 gold-pool 75% of ",
	} {
		if lines.Scan(); !strings.HasPrefix(strings.Join(strings.Fields(lines.Text()), " "), want) {
			t.Errorf("got %q, want %q", lines.Text(), want)
		}
	}
	cancel()
	_ = cmd.Wait() // It was killed.
	must(t, "patch", "resourcepolicy", "gold-pool", "--type=merge", `-p='{"spec":{"offer":{"percent":50}}}'`)
	test.Eventually(t, func() error {
		r := kubectl(t.Context(), kubeconfig, "proffer", "explain", "rome/gold/cpu")
		if !strings.Contains(r.stdout, "50% of 14") {
			return errors.New(r.stdout)
		}
		return nil
	})
}

func amount(offers *rest.Offers, consumer, class, resource string) string {
	for _, c := range offers.Consumers {
		for _, o := range c.Offers {
			if q, ok := o.Resources[resource]; ok && c.ClusterID == consumer && o.Class == class {
				return q.String()
			}
		}
	}
	return ""
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
}

func TestEachRoleAllowsItsCommandsAndNoOthers(t *testing.T) {
	startOperator(t)
	create(t, nodestest.Worker("worker-1"))
	users := map[string]string{
		"reader": user(t, "reader", readerRole), "simulator": user(t, "simulator", simulatorRole), "nobody": user(t, "nobody"),
	}
	const (
		noReader    = `error: you may not create serviceaccounts/token "proffer-reader" in namespace proffer-system: ask for Role proffer-plugin-reader`
		noSimulator = `error: you may not create serviceaccounts/token "proffer-simulator" in namespace proffer-system: ask for Role proffer-plugin-simulator`
	)
	for _, tc := range []struct{ user, command, refusal string }{
		{"reader", "offers", ""},
		{"reader", "explain rome", ""},
		{"reader", "top", ""},
		{"reader", "snapshot", noSimulator},
		{"reader", "top nodes", noSimulator},
		{"reader", "simulate --drain worker-1", noSimulator},
		{"simulator", "snapshot", ""},
		{"simulator", "simulate --drain worker-1", ""},
		{"simulator", "simulate --delete gold-pool", "the dry run needs the right to write policies, as in ClusterRole proffer-resourcepolicy-editor"},
		{"simulator", "offers", noReader},
		{"nobody", "offers", noReader},
		{"nobody", "snapshot", noSimulator},
		{"nobody", "version", ""},
		{"nobody", "check", ""},
		{"nobody", "migrate plugin -n liqo", "you may not get deployments.apps in namespace liqo: ask for this right"},
	} {
		t.Run(tc.user+": "+tc.command, func(t *testing.T) {
			// The API server learns of new bindings by a watch.
			test.Eventually(t, func() error {
				r := kubectl(t.Context(), users[tc.user], "proffer", tc.command)
				refused := strings.HasPrefix(r.stderr, "error: ")
				if refused != (tc.refusal != "") || !strings.Contains(r.stderr, tc.refusal) || refused && strings.Count(r.stderr, "\n") > 1 {
					return fmt.Errorf("%d %s%s", r.status, r.stdout, r.stderr)
				}
				return nil
			})
		})
	}
}

func TestAnOperatorThatDoesNotAnswerIsExplained(t *testing.T) {
	reader := user(t, "impatient", readerRole)
	expect := func(t *testing.T, want string, args ...string) {
		t.Helper()
		test.Eventually(t, func() error {
			r := kubectl(t.Context(), reader, append([]string{"proffer", "offers"}, args...)...)
			if r.status != 1 || r.stdout != "" || !strings.HasPrefix(r.stderr, "error: "+want) {
				return fmt.Errorf("%d %s%s", r.status, r.stdout, r.stderr)
			}
			return nil
		})
	}
	t.Run("no replica", func(t *testing.T) {
		expect(t, "no replica of the operator is ready: try again in a moment, or look at: kubectl -n proffer-system get pods")
	})
	t.Run("no operator in the namespace", func(t *testing.T) {
		r := kubectl(t.Context(), cluster.admin, "proffer", "offers", "--operator-namespace=default")
		if want := "error: there is no ServiceAccount proffer-reader in namespace default: the operator is not installed there"; r.status != 1 ||
			!strings.HasPrefix(r.stderr, want) {
			t.Errorf("%d %s", r.status, r.stderr)
		}
	})
	t.Run("no Service of the name", func(t *testing.T) {
		r := kubectl(t.Context(), cluster.admin, "proffer", "offers", "--service=other")
		if !strings.HasPrefix(r.stderr, "error: ") {
			t.Errorf("%d %s", r.status, r.stderr)
		}
	})
	t.Run("a context that does not exist", func(t *testing.T) {
		expect(t, `finding the API server: context "other" does not exist`, "--context=other")
	})
	t.Run("the version of the operator is not known", func(t *testing.T) {
		r := kubectl(t.Context(), reader, "proffer", "version")
		if want := "\nOperator:  unknown: no replica of the operator is ready: "; r.status != 0 || !strings.Contains(r.stdout, want) || r.stderr != "" {
			t.Errorf("%d %s%s; want %s", r.status, r.stdout, r.stderr, want)
		}
	})
	t.Run("a replica that is gone", func(t *testing.T) {
		startPod(t)
		expect(t, "the API server cannot reach the operator (")
	})
	t.Run("a replica behind a firewall", testFirewall)
	t.Run("a replica that cannot list what it needs", func(t *testing.T) {
		startPod(t)
		startPowerless(t)
		expect(t, "the operator is not ready: ")
		page := test.Read(t, "../../docs/how-to/find-out-what-hangs.md")
		const raw = "kubectl get --raw /api/v1/namespaces/proffer-system/services/https:proffer-metrics:https/proxy/offers\n"
		r := shell(t.Context(), reader, strings.TrimSpace(raw))
		if block := "```console\n$ " + raw + r.stderr + "```\n"; !strings.Contains(page, block) {
			t.Errorf("docs/how-to/find-out-what-hangs.md lacks\n%s", block)
		}
	})
}

// testFirewall has the API server wait in vain for the replica. Each command gives up before the API server
// does.
func testFirewall(t *testing.T) {
	startPod(t)
	cluster.egress.Drop()
	t.Cleanup(func() { cluster.egress.Route("") })
	const text = "the operator does not answer: probably a firewall keeps the control plane from its pod on TCP port 8443"
	var commands sync.WaitGroup
	for _, command := range []string{
		"offers", "explain rome --request-timeout=5s", "top policies --request-timeout=5s", "snapshot --request-timeout=5s",
		"simulate --drain=worker-1 --request-timeout=5s", "version --request-timeout=5s",
	} {
		commands.Go(func() {
			start := time.Now()
			r := kubectl(t.Context(), cluster.admin, "proffer", command)
			if took := time.Since(start); !strings.Contains(r.stdout+r.stderr, text) || took > 25*time.Second {
				t.Errorf("%s ends after %v: %d %s%s", command, took, r.status, r.stdout, r.stderr)
			}
		})
	}
	commands.Go(func() {
		r := kubectl(t.Context(), cluster.admin, "proffer", "check", "-o", "json", "--request-timeout=5s")
		if !strings.Contains(r.stdout, "The control plane does not reach the operator's pod on TCP port 8443") {
			t.Errorf("%d %s%s", r.status, r.stdout, r.stderr)
		}
	})
	commands.Wait()
}

// startPowerless runs an operator that may only ask for the rights of its callers, so that it never
// evaluates.
func startPowerless(t *testing.T) {
	t.Helper()
	create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "powerless"}})
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "plugin-test-powerless"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "proffer-metrics-auth"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "powerless"}},
	})
	p := process.StartTest(t, process.Program(t), []string{"--grpc-bind-address=:6001", "--metrics-bind-address=:8443", "--health-probe-bind-address=:8081"},
		"KUBECONFIG="+controlplane.KubeconfigFileOf(t, tokenOf(t, "powerless")))
	// It waits for its caches, and would end only after its grace.
	t.Cleanup(func() { _ = p.Kill() })
	route(t, p.Address("metrics"))
}

func TestTheCallersCredentialsDoNotReachTheOperator(t *testing.T) {
	headers := make(chan http.Header, 10)
	stranger := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(stranger.Close)
	route(t, stranger.Listener.Addr().String())
	startPod(t)
	config := tokenOf(t, "proffer") // Any token: that of the operator itself will do.
	must(t, "-n", namespace, "create", "rolebinding", "with-token", "--role="+readerRole, "--serviceaccount="+namespace+":proffer")
	cleanup(t, "-n", namespace, "delete", "rolebinding", "with-token")
	caller := controlplane.KubeconfigFileOf(t, config)
	test.Eventually(t, func() error {
		if r := kubectl(t.Context(), caller, "proffer", "offers"); r.status != 0 {
			return fmt.Errorf("%d %s", r.status, r.stderr)
		}
		return nil
	})
	got := <-headers
	if got.Get("Authorization") != "" || got.Get(rest.TokenHeader) == "" || got.Get(rest.TokenHeader) == config.BearerToken {
		t.Errorf("the operator gets %v", got)
	}
}
