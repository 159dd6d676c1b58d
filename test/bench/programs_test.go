package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/bench/population"
	"proffer.dev/proffer/test/process"
)

const (
	// stepTimeout bounds each step of a measurement.
	stepTimeout = time.Minute
	// batchPeriod is the operator's default.
	batchPeriod = 100 * time.Millisecond
	mib         = 1 << 20
)

// resident is the memory of a process, in bytes.
type resident struct{ now, peak float64 }

// running is a process that learns the state of a cluster.
type running interface {
	PID() int
	// await returns when the process knows all objects.
	await()
	// collect triggers a garbage collection in the process.
	collect()
	end()
}

func usedBy(b testing.TB, p interface{ PID() int }) float64 {
	b.Helper()
	used, err := cpuOf(p.PID())
	test.Must(b, err)
	return float64(used)
}

func memoryOf(b testing.TB, p interface{ PID() int }) resident {
	b.Helper()
	r, err := residentOf(p.PID())
	test.Must(b, err)
	return r
}

// build builds one of the programs in this directory and returns its path.
func build(b testing.TB, name string) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), name)
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", program, "./"+name).CombinedOutput(); err != nil {
		b.Fatalf("building %s: %v\n%s", name, err, out)
	}
	return program
}

// child is one of the programs in this directory. It answers each line of its input with a number, and
// ends with its input.
type child struct {
	tb      testing.TB
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	// first is the first line that it has printed.
	first string
}

// startChild starts a program that ends with the benchmark, unless end is called before.
func startChild(b testing.TB, program string, args ...string) *child {
	b.Helper()
	c := &child{tb: b, process: exec.CommandContext(context.WithoutCancel(b.Context()), program, args...)}
	c.process.Stderr = os.Stderr
	in, err := c.process.StdinPipe()
	test.Must(b, err)
	out, err := c.process.StdoutPipe()
	test.Must(b, err)
	c.in, c.out = in, bufio.NewReader(out)
	test.Must(b, c.process.Start())
	b.Cleanup(func() {
		if c.process.ProcessState == nil {
			c.end()
		}
	})
	return c
}

func (c *child) PID() int { return c.process.Process.Pid }

// await waits for the first line.
func (c *child) await() {
	c.tb.Helper()
	line, err := c.out.ReadString('\n')
	test.Must(c.tb, err)
	c.first = strings.TrimSpace(line)
}

func (c *child) ask(question string) float64 {
	c.tb.Helper()
	_, err := fmt.Fprintln(c.in, question)
	test.Must(c.tb, err)
	line, err := c.out.ReadString('\n')
	test.Must(c.tb, err)
	figure, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	test.Must(c.tb, err)
	return figure
}

func (c *child) collect() { c.ask("memory") }

func (c *child) end() {
	_ = c.in.Close()
	if err := c.process.Wait(); err != nil {
		c.tb.Error(err)
	}
}

// cluster is a control plane, and the programs that are measured on it.
type cluster struct {
	*controlplane.Cluster
	api                          client.Client
	kubeconfig, operator, follow string
	// reader may read the operator's metrics.
	reader *rest.Config
}

// startCluster starts a control plane with our CRDs, which ends with the benchmark.
func startCluster(b testing.TB) *cluster {
	b.Helper()
	root, err := process.Checkout()
	test.Must(b, err)
	c := &cluster{Cluster: controlplane.StartTest(b, controlplane.Options{
		CRDDirs: []string{filepath.Join(root, "config", "crd", "bases")},
		APIServerFlags: map[string][]string{
			// New nodes must not be tainted: no controller runs that would remove the taint.
			"disable-admission-plugins": {"TaintNodesByCondition"},
			// A million events would fill etcd before the default compaction, every 5 minutes.
			"etcd-compaction-interval": {"30s"},
		},
	})}
	c.kubeconfig = c.KubeconfigFile(b)
	c.operator, err = process.Build(b.Context(), b.TempDir())
	test.Must(b, err)
	c.api, err = client.New(c.Config, client.Options{})
	test.Must(b, err)
	test.Must(b, v1alpha1.AddToScheme(c.api.Scheme()))
	return c
}

// operator is a running operator.
type operator struct {
	*process.Process
	tb testing.TB
}

// startOperator starts an operator that ends with the benchmark, unless end is called before.
func (c *cluster) startOperator(b testing.TB, period time.Duration) *operator {
	b.Helper()
	return &operator{process.StartTest(b, c.operator, []string{
		"--kubeconfig=" + c.kubeconfig, "--batch-period=" + period.String(), "--grpc-bind-address=",
		"--metrics-bind-address=", "--health-probe-bind-address=", "--pprof-bind-address=",
	}), b}
}

// await waits for the answer to a read, which the operator sends once it is ready. Polling its
// readiness instead would cost the operator more, because it logs each failed probe.
func (o *operator) await() {
	o.tb.Helper()
	ctx, cancel := context.WithTimeout(o.tb.Context(), stepTimeout)
	defer cancel()
	// The operator does not listen at once, so the client must retry often.
	conn := dial(o.tb, o.Address("grpc"), grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond},
		MinConnectTimeout: stepTimeout,
	}))
	defer func() { _ = conn.Close() }()
	known := &wire.ClusterIdentity{ClusterID: population.Consumer(0)}
	_, err := wire.NewResourceReaderClient(conn).ReadResources(ctx, known, grpc.WaitForReady(true))
	test.Must(o.tb, err)
	test.Must(o.tb, o.Ready(ctx))
}

// profile returns a page of the operator's pprof.
func (o *operator) profile(ctx context.Context, page string) ([]byte, error) {
	return process.Get(ctx, http.DefaultClient, "http://"+o.Address("pprof")+"/debug/pprof/"+page, "")
}

func (o *operator) collect() {
	o.tb.Helper()
	_, err := o.profile(o.tb.Context(), "heap?gc=1")
	test.Must(o.tb, err)
}

func (o *operator) end() {
	o.tb.Helper()
	test.Must(o.tb, o.Stop(30*time.Second))
}

var plaintext = grpc.WithTransportCredentials(insecure.NewCredentials())

// dial returns a connection that ends with the benchmark. It is established with the first call.
func dial(b testing.TB, address string, more ...grpc.DialOption) *grpc.ClientConn {
	b.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, append(more, plaintext)...)
	test.Must(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}

// metrics are the metric families of one scrape, by name.
type metrics map[string]*dto.MetricFamily

func parseMetrics(text []byte) (metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

// sum adds up the samples that have all of these labels. A histogram counts as its number of
// observations, a metric that does not exist as 0.
func (m metrics) sum(name string, labels map[string]string) float64 {
	var total float64
	for _, sample := range m[name].GetMetric() {
		matching := 0
		for _, l := range sample.GetLabel() {
			if want, asked := labels[l.GetName()]; asked && want == l.GetValue() {
				matching++
			}
		}
		if matching == len(labels) {
			total += sample.GetCounter().GetValue() + sample.GetGauge().GetValue() +
				float64(sample.GetHistogram().GetSampleCount())
		}
	}
	return total
}

// admitReader lets a ServiceAccount read the operator's metrics.
func (c *cluster) admitReader(b testing.TB) {
	b.Helper()
	const name = "bench"
	for _, obj := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: "default"}},
		},
	} {
		test.Must(b, c.api.Create(b.Context(), obj))
	}
	c.reader = controlplane.AccountConfig(b, c.Config, "default", name)
}

// scrape reads the operator's metrics. It retries: the operator generates a key before it serves them.
func (c *cluster) scrape(b testing.TB, o *operator) (m metrics) {
	b.Helper()
	web := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the operator signs its certificate
	}}
	defer web.CloseIdleConnections()
	test.Eventually(b, func() error {
		text, err := process.Get(b.Context(), web, "https://"+o.Address("metrics")+"/metrics", c.reader.BearerToken)
		if err == nil {
			m, err = parseMetrics(text)
		}
		return err
	})
	return m
}
