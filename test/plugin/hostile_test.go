package plugin

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/overview"
	"proffer.dev/proffer/internal/visible"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
	"proffer.dev/proffer/test/process"
)

// manyClasses is how many more slices have a class of their own.
const manyClasses = 100

// maxShownClass is how much of a class the operator keeps, in bytes.
const maxShownClass = 256

// hostileClasses are classes that no policy can have: texts that terminals, browsers, shells, templates or
// formats obey, and names that look like those of classes, or like what stands for none.
var hostileClasses = []string{
	"\x1b]0;owned\a", "\x1b[2J", "\u009b31m", "\x00", "\x7f", "a\nb", "gold\r", "a\tb", "\n\n\n",
	"\u202edlog", "\u2066gold", "go\u200bld", "go\u00adld", "gold\ufe0f", "gold\U000e0041", "\u3164", "\u2800", "gold\u00a0",
	"g\u043eld", "\uff47old", "Gold", "gold ", " gold", "gold.", "gold-", "-", "\u2013", "*", "<unnamed>", "<anyone>", "%s%n%!d(MISSING)",
	"../../gold", "/etc/passwd", `"`, `'`, "'; kubectl delete node --all; '", "$(reboot)", "`reboot`", `\`, `\u200b`,
	"a,b", "=1+1", "@SUM(1)", "a|b", "[a](javascript:alert(1))", "@everyone", "#1", "<script>alert(1)</script>", "{{.}}", "{{/*",
	"class=gold", "gold,zone=a", `gold"} 1`, "null", "true", "---", "&a *a", "!!binary x",
	strings.Repeat("a", 253), strings.Repeat("a", 100_000), strings.Repeat("\U000e0041", 5_000),
}

// hostileResources are names in requests that no resource has.
var hostileResources = []string{
	"\x1b[2Jcpu", "\x00", "cpu\n", "\u202eupc", "c\u200bpu", "c\u0440u", `"`, "'; DROP TABLE proffer_gap; --", "a|b", "[a](//b)", "@everyone",
	"<script>alert(1)</script>", "{{.}}", `cpu"} 1`, "", strings.Repeat("a", 10_000), strings.Repeat("\U0001f6f0", 400),
}

// keepBooks has the books kept in a database, and returns the argument for it.
func keepBooks(t *testing.T, database *dbtest.Database) (argument, dsn string) {
	t.Helper()
	dir := t.TempDir()
	dsn, argument = filepath.Join(dir, "dsn"), filepath.Join(dir, "config.yaml")
	test.Must(t, os.WriteFile(dsn, []byte(database.DSN()), 0o600))
	test.Must(t, os.WriteFile(argument, []byte("apiVersion: config.proffer.dev/v1alpha1\nkind: OperatorConfiguration\nclusterID: milan\n"+
		"reconcilers: [MetaSync]\npluginConfig: [{name: MetaSync, args: {engine: "+string(database.Engine())+", dsnFile: "+dsn+", sampleSeconds: 1}}]\n"), 0o600))
	return "--config=" + argument, dsn
}

// TestAConsumerMayNameAnyClass creates a ResourceSlice of each class, with an answer that it has forged, and one
// for each resource. It reads everything that the operator and the plugin write, while the operator logs all that
// it can and the books refuse its password.
func TestAConsumerMayNameAnyClass(t *testing.T) {
	kubeconfig := editor(t)
	askForHostileClasses(t)
	database := dbtest.Start(t, dbtest.PostgreSQL, dbtest.Options{}).NewDatabase(t)
	argument, dsn := keepBooks(t, database)
	operator := startOperator(t, argument, "--zap-log-level=10")
	populate(t, kubeconfig)
	unanswered := manyClasses
	for i := range hostileClasses {
		if !isForged(i) {
			unanswered++
		}
	}
	test.Eventually(t, func() error {
		notes := notesOf(t)
		if len(notes) < unanswered || !slices.Contains(notes, `No ResourcePolicy serves the class "g\u043eld": create one, unless another controller answers this class`) {
			return fmt.Errorf("%d Events, want %d: %.2000q", len(notes), unanswered, notes)
		}
		return nil
	})

	var consumer rest.Consumer
	decode(t, kubectl(t.Context(), kubeconfig, "proffer", "explain", "rome", "-o", "json").stdout, &consumer)
	var kept []string
	for _, s := range consumer.Details.Slices {
		kept = append(kept, s.Class)
		if s.Accepted || len(s.Granted) > 0 {
			t.Errorf("a slice of class %q keeps %v", s.Class, s.Granted)
		}
	}
	for _, class := range hostileClasses {
		if !slices.ContainsFunc(kept, func(k string) bool {
			return k != "" && strings.HasPrefix(class, k) && len(k) >= min(len(class), maxShownClass-utf8Max)
		}) {
			t.Errorf("the class %.80q is not listed", class)
		}
	}

	checkBooks(t, database)
	connection, err := url.Parse(database.DSN())
	test.Must(t, err)
	password, _ := connection.User.Password()
	test.Must(t, os.WriteFile(dsn, []byte(strings.Replace(database.DSN(), "@", "wr0ng%2Fpa55word%40@", 1)), 0o600))
	operator.AwaitLog(t, "The books could not be written.*password authentication failed")

	texts := written(t, kubeconfig, operator.Address("metrics"))
	texts["log"], texts["Events"] = operator.Log(), strings.Join(notesOf(t), "\n")
	for name, text := range texts {
		if len(text) == 0 {
			t.Errorf("%s is empty", name)
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); visible.Escape(line, "\t") != line {
				t.Errorf("%s has what is not visible: %.300q", name, line)
				break
			}
		}
	}
	checkSecrets(t, operator, texts, "wr0ng", password)
	for _, name := range []string{"explain", "page"} {
		for _, want := range []string{`g\u043eld`, `go\u200bld`, `\x1b]0;owned\a`} {
			if !strings.Contains(texts[name], want) {
				t.Errorf("%s lacks %s", name, want)
			}
		}
		if longest := slices.MaxFunc(strings.Split(texts[name], "\n"), func(a, b string) int { return len(a) - len(b) }); len(longest) > 2000 {
			t.Errorf("%s has a line of %d bytes", name, len(longest))
		}
	}
	for _, forged := range []string{"<unnamed>", "-", "Gold"} {
		if row := regexp.MustCompile(`(?m)^default +hostile-\d+ +` + regexp.QuoteMeta(forged) + ` `); row.MatchString(texts["explain"]) {
			t.Errorf("explain shows the class %s as it is", forged)
		}
	}
	for _, name := range []string{"explain", "page", "first page", "status", "Events", "requests", "check", "top", "offers"} {
		if imitated := regexp.MustCompile(`.*(c\x{440}u|g\x{43e}ld).*`).FindString(texts[name]); imitated != "" {
			t.Errorf("%s has a name that imitates another: %.300s", name, imitated)
		}
	}
	if n := strings.Count(texts["requests"], "denied: asks for the resource "); n != len(hostileResources) {
		t.Errorf("%d requests are refused, want %d: %s", n, len(hostileResources), texts["requests"])
	}
	for _, name := range []string{"page", "first page"} {
		if strings.Contains(texts[name], "<script>alert") {
			t.Errorf("the %s has a script", name)
		}
	}
	if rows := strings.Count(texts["status"], "ResourceSlice default/hostile-"); rows != overview.MaxOfOne {
		t.Errorf("status lists %d slices: %s", rows, texts["status"])
	}
	for _, m := range regexp.MustCompile(`[{,](class|resource)="(.*?)"[,}]`).FindAllStringSubmatch(texts["metrics"], -1) {
		if m[1] == "class" && m[2] != "" && m[2] != "gold" || !regexp.MustCompile(`^[a-z0-9./-]{0,63}$`).MatchString(m[2]) {
			t.Errorf("a metric has %.300s", m[0])
		}
	}
	if anonymised := texts["anonymised"]; strings.Contains(anonymised, "class-7") || strings.Contains(anonymised, "reboot") || !strings.Contains(anonymised, `"gold"`) {
		t.Error("an anonymised snapshot has classes that nobody serves, or lacks gold")
	}
}

// checkSecrets checks that neither these words, which are parts of passwords, nor tokens are in texts, in other
// objects or in the list of processes.
func checkSecrets(t *testing.T, operator *process.Process, texts map[string]string, words ...string) {
	t.Helper()
	seen := maps.Clone(texts)
	seen["all Events and Leases"] = must(t, "get", "events,leases", "-A", "-o", "json")
	for place, text := range seen {
		for _, word := range append(words, "eyJ", "65 79 4a") { // As a token begins, also in hexadecimal digits.
			if strings.Contains(text, word) {
				t.Errorf("%s has a secret: it contains %s", place, word)
			}
		}
	}
	for _, name := range []string{"cmdline", "environ"} {
		text := test.Read(t, fmt.Sprintf("/proc/%d/%s", operator.PID(), name))
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) }) {
			t.Errorf("the %s of the process has the password", name)
		}
	}
}

// checkBooks waits until the books are complete, and checks that nothing of the hostile texts is in them.
func checkBooks(t *testing.T, database *dbtest.Database) {
	t.Helper()
	test.Eventually(t, func() error {
		var classes, resources string
		err := database.Open(t).QueryRowContext(t.Context(), "SELECT string_agg(DISTINCT '<' || class || '>', ''), string_agg(DISTINCT resource, ' ') "+
			"FROM proffer_offer_interval WHERE EXISTS (SELECT FROM proffer_cluster WHERE seen_at IS NOT NULL)").Scan(&classes, &resources)
		if err == nil && (classes != "<><gold>" || resources != "cpu memory pods") {
			err = fmt.Errorf("the books have the classes %s and the resources %s", classes, resources)
		}
		return err
	})
}

// utf8Max is how much a cut at a character may leave out, in bytes.
const utf8Max = 4

// askForHostileClasses creates the slices in a tenant namespace of rome, until the test ends.
func askForHostileClasses(t *testing.T) {
	t.Helper()
	for _, crd := range []string{"authentication.liqo.io_resourceslices.yaml", "authentication.liqo.io_tenants.yaml"} {
		file := controlplane.LiqoCRD(t, crd)
		must(t, "apply", "--server-side", "-f", file)
		cleanup(t, "delete", "-f", file)
		must(t, "wait", "--for=condition=Established", "-f", file)
	}
	must(t, "label", "namespace", "default", "liqo.io/tenant-namespace=true", "liqo.io/remote-cluster-id=rome")
	cleanup(t, "label", "namespace", "default", "liqo.io/tenant-namespace-", "liqo.io/remote-cluster-id-")
	object := func(kind, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authentication.liqo.io/v1beta1", "kind": kind, "spec": spec,
			"metadata": map[string]any{"namespace": corev1.NamespaceDefault, "name": name, "labels": map[string]any{
				"liqo.io/replicated": "true", "liqo.io/originID": "rome", "liqo.io/remote-cluster-id": "rome",
			}},
		}}
	}
	create(t, object("Tenant", "rome", map[string]any{"clusterID": "rome", "tenantCondition": "Active"}))
	for i, name := range hostileResources {
		s := object("ResourceSlice", fmt.Sprintf("request-%d", i), map[string]any{
			"class": "gold", "consumerClusterID": "rome", "resources": map[string]any{name: "1"},
		})
		test.Must(t, cluster.client.Create(t.Context(), s))
		s.Object["status"] = map[string]any{"conditions": []any{condition("Authentication", "Accepted", "Liqo")}}
		test.Must(t, cluster.client.Status().Update(t.Context(), s))
	}
	for i := range len(hostileClasses) + manyClasses {
		class := fmt.Sprintf("class-%d", i-len(hostileClasses))
		if i < len(hostileClasses) {
			class = hostileClasses[i]
		}
		s := object("ResourceSlice", fmt.Sprintf("hostile-%d", i), map[string]any{"class": class, "consumerClusterID": "rome"})
		if err := cluster.client.Create(t.Context(), s); err != nil {
			t.Fatalf("the class %.80q: %v", class, err)
		}
		conditions := []any{condition("Authentication", "Accepted", "Liqo")}
		if isForged(i) {
			conditions = append(conditions, condition("Resources", "Accepted", "ProfferGranted"))
		}
		s.Object["status"] = map[string]any{"conditions": conditions, "resources": map[string]any{"cpu": "999"}}
		if err := cluster.client.Status().Update(t.Context(), s); err != nil {
			t.Fatalf("the class %.80q: %v", class, err)
		}
	}
}

// isForged reports whether a slice has an answer that its consumer has written. That of a class that a policy
// can have could be of an earlier installation.
func isForged(i int) bool {
	return i < len(hostileClasses) && i%3 == 2 && len(validation.IsDNS1123Label(hostileClasses[i])) > 0
}

func condition(kind, status, reason string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": "forged", "lastTransitionTime": "2026-01-01T00:00:00Z"}
}

// notesOf returns the notes of the Events about slices that are not served.
func notesOf(t *testing.T) (notes []string) {
	t.Helper()
	var all struct{ Items []struct{ Message string } }
	test.Must(t, json.Unmarshal([]byte(must(t, "-n", "default", "get", "events", "--field-selector=reason=NotServed", "-o", "json")), &all))
	for _, e := range all.Items {
		notes = append(notes, e.Message)
	}
	return notes
}

// written returns what the plugin prints and the operator serves and writes, by name.
func written(t *testing.T, kubeconfig, address string) map[string]string {
	t.Helper()
	must(t, "-n", namespace, "create", "serviceaccount", "hostile")
	cleanup(t, "-n", namespace, "delete", "serviceaccount", "hostile")
	must(t, "create", "clusterrolebinding", "hostile", "--clusterrole=cluster-admin", "--serviceaccount="+namespace+":hostile")
	cleanup(t, "delete", "clusterrolebinding", "hostile")
	token := strings.TrimSpace(must(t, "-n", namespace, "create", "token", "hostile"))
	texts := map[string]string{}
	for name, command := range map[string]string{
		"explain": "explain rome", "explain -o json": "explain rome -o json", "explain -o yaml": "explain rome -o yaml",
		"status": "status", "status -o json": "status -o json", "status -o yaml": "status -o yaml",
		"offers": "offers", "offers -o json": "offers -o json", "offers -o yaml": "offers -o yaml", "top": "top", "top policies": "top policies",
		"top nodes": "top nodes", "check": "check", "check -o json": "check -o json", "snapshot": "snapshot", "anonymised": "snapshot --anonymise",
		"simulate": "simulate --delete=gold-pool", "simulate -o markdown": "simulate --delete=gold-pool -o markdown",
		"simulate -o json": "simulate --delete=gold-pool -o json", "simulate -o yaml": "simulate --delete=gold-pool -o yaml",
	} {
		r := kubectl(t.Context(), cluster.admin, "proffer", command)
		texts[name] = r.stdout + r.stderr
	}
	for name, path := range map[string]string{
		"GET /overview": "/overview",
		"GET /offers":   "/offers", "GET /offers/rome": "/offers/rome", "GET /snapshot": "/snapshot", "page": "/ui/consumers/rome",
		"first page": "/ui/", "page of consumers": "/ui/consumers", "page of policies": "/ui/policies", "metrics": "/metrics",
		"GET /api/catalog": "/api/catalog", "page of the catalog": "/ui/catalog/rome",
	} {
		texts[name] = shell(t.Context(), kubeconfig, "curl -sSk -H 'Authorization: Bearer "+token+"' https://"+address+path).stdout
	}
	texts["requests"] = must(t, "get", "resourceslices.authentication.liqo.io", "-o",
		`'jsonpath={range .items[?(@.spec.class=="gold")]}{.status.conditions[*].message}{"\n"}{end}'`)
	texts["Grants"] = must(t, "get", "grants.proffer.dev,resourcepolicies.proffer.dev", "-A", "-o", "json")
	texts["ConfigMaps"] = must(t, "-n", namespace, "get", "configmaps", "-o", "yaml")
	return texts
}
