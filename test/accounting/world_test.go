package accounting

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
	"proffer.dev/proffer/test/process"
)

// world is a provider with a class gold of 10 cpu for each consumer, whose books are in a database.
type world struct {
	t        testing.TB
	database *dbtest.Database
	// rows reads past the proxy.
	rows       *sql.DB
	dir        string
	namespaces map[string]string
}

func newWorld(t testing.TB, s *dbtest.Server) *world {
	t.Helper()
	d := s.NewDatabase(t)
	w := &world{t: t, database: d, dir: t.TempDir(), namespaces: map[string]string{}}
	kubetest.Keep(t, controlplane.LiqoCRD(t, "authentication.liqo.io_resourceslices.yaml"))
	kubetest.Keep(t, controlplane.LiqoCRD(t, "authentication.liqo.io_tenants.yaml"))
	t.Cleanup(func() {
		test.Check(t, kubetest.API(t).DeleteAllOf(context.Background(), &v1alpha1.Grant{}, client.InNamespace("default")))
	})
	kubetest.Create(t, &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, Spec: v1alpha1.ResourcePolicySpec{
		Class: "gold", Offer: v1alpha1.PolicyOffer{Fixed: kubetest.Quantities("cpu", "10", "memory", "1Gi", "pods", "10")},
		Catalog: &v1alpha1.Catalog{CatalogWords: v1alpha1.CatalogWords{Prices: v1alpha1.Prices{"cpu": "0.021"}, Currency: "EUR"}},
	}})
	w.write("dsn", d.DSN())
	w.write("config.yaml", `apiVersion: config.proffer.dev/v1alpha1
kind: OperatorConfiguration
clusterID: milan
reconcilers: [MetaSync]
pluginConfig:
- name: MetaSync
  args:
    engine: `+string(d.Engine())+`
    dsnFile: `+filepath.Join(w.dir, "dsn")+`
    sampleSeconds: 1
`)
	config := filepath.Join(w.dir, "kubeconfig")
	test.Must(t, kubetest.Cluster(t).WriteKubeconfig(config))
	w.rows = d.Open(t)
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	test.Must(w.t, os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600))
}

// start runs an operator until the test ends.
func (w *world) start() *process.Process {
	w.t.Helper()
	return process.StartTest(w.t, process.Program(w.t), []string{
		"--leader-elect", "--leader-election-namespace=default", "--config=" + filepath.Join(w.dir, "config.yaml"),
		"--grpc-bind-address=", "--metrics-bind-address=0", "--health-probe-bind-address=",
	}, "KUBECONFIG="+filepath.Join(w.dir, "kubeconfig"))
}

// ask has a consumer ask for cpu.
func (w *world) ask(consumer, cpu string) *unstructured.Unstructured {
	w.t.Helper()
	if w.namespaces[consumer] == "" {
		w.namespaces[consumer] = kubetest.CreateTenantNamespace(w.t, consumer).Name
		kubetest.Create(w.t, kubetest.Tenant(w.t, w.namespaces[consumer], consumer, consumer, nil))
	}
	return kubetest.CreateSlice(w.t, kubetest.Slice("s", kubetest.Of(w.namespaces[consumer], consumer, nodestest.List("cpu", cpu))))
}

// askFor changes what a slice asks for.
func (w *world) askFor(slice *unstructured.Unstructured, cpu string) {
	w.t.Helper()
	kubetest.Edit(w.t, slice, func(o client.Object) { kubetest.SetField(o, map[string]any{"cpu": cpu}, "spec", "resources") },
		kubetest.WriteSpec)
}

// awaitAnswer waits until a slice is answered with this much cpu.
func (w *world) awaitAnswer(slice *unstructured.Unstructured, cpu string) {
	w.t.Helper()
	test.Eventually(w.t, func() string {
		if err := kubetest.API(w.t).Get(w.t.Context(), client.ObjectKeyFromObject(slice), slice); err != nil {
			return err.Error()
		}
		got, _, _ := unstructured.NestedString(slice.Object, "status", "resources", "cpu")
		return cmp.Diff(cpu, got)
	})
}

// awaitGranted waits until the open rows grant each consumer this much cpu, in milli.
func (w *world) awaitGranted(want map[string]int64) {
	w.t.Helper()
	test.Eventually(w.t, func() string {
		got := map[string]int64{}
		err := w.query("SELECT consumer, granted FROM proffer_grant_interval WHERE is_open = 1 AND resource = 'cpu'", func(rows *sql.Rows) error {
			var consumer string
			var granted int64
			err := rows.Scan(&consumer, &granted)
			got[consumer] += granted
			return err
		})
		if err != nil {
			return err.Error()
		}
		if maps.Equal(got, want) {
			return ""
		}
		return fmt.Sprintf("the open rows grant %v, want %v", got, want)
	})
}

func (w *world) query(query string, each func(*sql.Rows) error) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	rows, err := w.rows.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// count returns the number that a query yields.
func (w *world) count(query string) int64 {
	w.t.Helper()
	var n int64
	test.Must(w.t, w.query(query, func(rows *sql.Rows) error { return rows.Scan(&n) }))
	return n
}

// checkSecret checks that the password is in nothing that others than the operator can see of it: the list
// of processes, the log, and Events.
func (w *world) checkSecret(o *process.Process) {
	w.t.Helper()
	_, secret, _ := strings.Cut(strings.TrimPrefix(w.database.DSN(), "postgres://"), ":")
	secret, _, _ = strings.Cut(secret, "@")
	if len(secret) < 20 {
		w.t.Fatalf("the password has %d letters", len(secret))
	}
	seen := map[string]string{"the log": o.Log()}
	for _, name := range []string{"cmdline", "environ"} { // only on Linux
		text := test.Read(w.t, fmt.Sprintf("/proc/%d/%s", o.PID(), name))
		seen[name] = text
	}
	events := &corev1.EventList{}
	test.Must(w.t, kubetest.API(w.t).List(w.t.Context(), events))
	seen["Events"] = fmt.Sprint(events.Items)
	for place, text := range seen {
		if text == "" || strings.Contains(text, secret) {
			w.t.Errorf("%s: %d bytes, and the password is in them: %t", place, len(text), strings.Contains(text, secret))
		}
	}
}

// checkIntervals checks that rows of a key do not overlap, in each other and with the gaps' order.
func (w *world) checkIntervals() {
	w.t.Helper()
	for name, key := range map[string]string{
		"proffer_grant_interval": "a.uid = b.uid AND a.resource = b.resource",
		"proffer_offer_interval": "a.consumer = b.consumer AND a.class = b.class AND a.resource = b.resource",
		"proffer_policy_version": "a.policy = b.policy",
	} {
		overlaps := w.count("SELECT COUNT(*) FROM " + name + " AS a JOIN " + name + " AS b ON a.id < b.id AND " + key +
			" WHERE a.valid_from < COALESCE(b.valid_to, TIMESTAMP '2100-01-01 00:00:00') AND b.valid_from < COALESCE(a.valid_to, TIMESTAMP '2100-01-01 00:00:00')")
		if overlaps > 0 {
			w.t.Errorf("%d pairs of rows of %s overlap", overlaps, name)
		}
	}
	if n := w.count("SELECT COUNT(*) FROM proffer_gap AS a JOIN proffer_gap AS b ON a.id < b.id WHERE a.valid_from < b.valid_to AND b.valid_from < a.valid_to"); n > 0 {
		w.t.Errorf("%d pairs of gaps overlap", n)
	}
}
