package monitoring

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
	"proffer.dev/proffer/test/process"
)

const (
	namespace = "proffer-system"
	// cluster is the label by which Prometheus distinguishes clusters.
	cluster = "milan"
	// timeout is for anything that a test waits for.
	timeout = 2 * time.Minute
	// replicas is how many operators run.
	replicas = 2
)

func TestMain(m *testing.M) { test.Main(m) }

// world is a control plane on which two replicas of the operator work, with an accounting database,
// and a Prometheus that scrapes them.
type world struct {
	cluster    *controlplane.Cluster
	kubeconfig string
	operators  []*process.Process
	prometheus promv1.API
}

func newWorld(t *testing.T) *world {
	t.Helper()
	log.SetLogger(logr.Discard()) // controller-runtime complains if nobody does.
	dir := t.TempDir()
	operator, err := process.Build(t.Context(), dir)
	test.Must(t, err)
	w := &world{kubeconfig: filepath.Join(dir, "kubeconfig")}
	w.cluster = controlplane.StartTest(t, controlplane.Options{CRDDirs: []string{
		controlplane.LiqoCRD(t, "authentication.liqo.io_resourceslices.yaml"),
		controlplane.LiqoCRD(t, "authentication.liqo.io_tenants.yaml"),
	}})
	test.Must(t, w.cluster.WriteKubeconfig(w.kubeconfig))
	w.kubectl(t, "apply", "-k", withAccounting(t, dir))
	w.startOperators(t, operator, dir)
	w.startPrometheus(t, dir)
	return w
}

// withAccounting writes an overlay with the component accounting, and the files that the component
// mounts. It returns the directory of the overlay.
func withAccounting(t *testing.T, dir string) string {
	t.Helper()
	text := test.Read(t, config+"/components/accounting/config.yaml")
	books := strings.NewReplacer(`clusterID: ""`, "clusterID: milan", "/etc/proffer/", dir+"/mounted/").Replace(text)
	root, err := filepath.Abs(config)
	test.Must(t, err)
	resolved, err := filepath.EvalSymlinks(dir)
	test.Must(t, err)
	up, err := filepath.Rel(filepath.Join(resolved, "overlay"), root)
	test.Must(t, err)
	for file, content := range map[string]string{
		"mounted/configuration/config.yaml": books,
		"mounted/database/dsn":              dbtest.Shared(t, dbtest.PostgreSQL).NewDatabase(t).DSN(),
		"overlay/kustomization.yaml":        fmt.Sprintf("resources: [%[1]s/default]\ncomponents: [%[1]s/components/accounting]\n", up),
	} {
		file = filepath.Join(dir, file)
		test.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		test.Must(t, os.WriteFile(file, []byte(content), 0o600))
	}
	return filepath.Join(dir, "overlay")
}

// kubectl runs kubectl as the administrator.
func (w *world) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := test.Kubectl(t.Context(), filepath.Join(w.cluster.Assets, "kubectl"), w.kubeconfig, "", args...)
	test.Must(t, err)
	return out
}

// startOperators runs the operator as its Deployment does: with its arguments, its files and its
// account.
func (w *world) startOperators(t *testing.T, program, dir string) {
	t.Helper()
	args := strings.Fields(w.kubectl(t, "-n", namespace, "get", "deployment", "proffer",
		"-o", "jsonpath={.spec.template.spec.containers[0].args[*]}"))
	for i := range args {
		args[i] = strings.Replace(args[i], "/etc/proffer/", dir+"/mounted/", 1)
	}
	// A pod finds its own namespace in a file.
	args = append(args, "--leader-election-namespace="+namespace)
	kubeconfig := controlplane.KubeconfigFileOf(t, controlplane.AccountConfig(t, w.cluster.Config, namespace, "proffer"))
	for range replicas {
		o := process.StartTest(t, program, args, "KUBECONFIG="+kubeconfig)
		o.AwaitReady(t)
		w.operators = append(w.operators, o)
	}
}

// endpoint is what the tests read of an endpoint of a ServiceMonitor.
type endpoint struct {
	Scheme, Path, BearerTokenFile string
	TLSConfig                     struct{ InsecureSkipVerify bool }
}

// startPrometheus runs a Prometheus that scrapes as in the component servicemonitor, with the account
// that docs/how-to/monitor.md creates for it, and evaluates the alerts.
func (w *world) startPrometheus(t *testing.T, dir string) {
	t.Helper()
	w.kubectl(t, "create", "namespace", "monitoring")
	w.kubectl(t, "-n", "monitoring", "create", "serviceaccount", "prometheus")
	w.kubectl(t, "create", "clusterrolebinding", "prometheus-reads-proffer",
		"--clusterrole=proffer-metrics-reader", "--serviceaccount=monitoring:prometheus")
	text := test.Read(t, config+"/components/servicemonitor/servicemonitor.yaml")
	var monitor struct {
		Spec struct{ Endpoints []endpoint }
	}
	test.Must(t, yaml.Unmarshal([]byte(text), &monitor))
	scrape := monitor.Spec.Endpoints[0]
	if scrape.BearerTokenFile != "/var/run/secrets/kubernetes.io/serviceaccount/token" {
		t.Fatalf("the ServiceMonitor authenticates with %q, want the token of the account", scrape.BearerTokenFile)
	}
	var targets []any
	for i, o := range w.operators {
		added := scraped(cluster, namespace, strconv.Itoa(i))
		delete(added, "instance") // The address.
		targets = append(targets, map[string]any{"targets": []string{o.Address("metrics")}, "labels": added})
	}
	rules, _ := readRules(t)
	settings, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{"rules.yaml"},
		"scrape_configs": []any{map[string]any{
			"job_name": "proffer-metrics", "scheme": scrape.Scheme, "metrics_path": scrape.Path,
			"authorization":  map[string]any{"credentials_file": "token"},
			"tls_config":     map[string]any{"insecure_skip_verify": scrape.TLSConfig.InsecureSkipVerify},
			"static_configs": targets,
		}},
	})
	test.Must(t, err)
	token := strings.TrimSpace(w.kubectl(t, "-n", "monitoring", "create", "token", "prometheus"))
	for file, content := range map[string][]byte{"prometheus.yaml": settings, "rules.yaml": rules, "token": []byte(token)} {
		test.Must(t, os.WriteFile(filepath.Join(dir, file), content, 0o600))
	}
	address := process.FreeAddress(t)
	server := process.StartTest(t, program(t, "prometheus"), []string{
		"--config.file=" + filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address,
	})
	client, err := api.NewClient(api.Config{Address: "http://" + address})
	test.Must(t, err)
	w.prometheus = promv1.NewAPI(client)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	test.Must(t, server.Until(ctx, func(ctx context.Context) error {
		_, err := process.Get(ctx, http.DefaultClient, "http://"+address+"/-/ready", "")
		return err
	}))
}

// readOffers sends a request for the offers to each operator, as kubectl proffer does.
func (w *world) readOffers(ctx context.Context, token string) error {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // each replica signs its own certificate
		DisableKeepAlives: true,
	}}
	for _, o := range w.operators {
		if _, err := process.Get(ctx, client, "https://"+o.Address("metrics")+rest.OffersPath, token); err != nil {
			return err
		}
	}
	return nil
}

// query returns the result of an expression now.
func (w *world) query(ctx context.Context, expr string) (model.Vector, error) {
	value, warnings, infos, err := w.prometheus.Query(ctx, expr, time.Now())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	if notes := append([]string(warnings), infos...); len(notes) > 0 {
		return nil, fmt.Errorf("%s: %s", expr, strings.Join(notes, "; "))
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("%s is a %s, want a vector", expr, value.Type())
	}
	return vector, nil
}
