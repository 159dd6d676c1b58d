package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
)

// patience is for steps that take a second on an idle machine.
const patience = 5 * time.Minute

// demo runs the demo until the test ends it.
type demo struct {
	table, progress *bufio.Scanner
	stop            context.CancelFunc
	done            <-chan error
}

func start(t *testing.T, o options) *demo {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	ctx, stop := context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	table, out := io.Pipe()
	// This one holds what nobody has read yet: what is told at the end must not wait for a test that reads the table.
	progress, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = progress.Close() })
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, o, out, told)
		_ = out.Close()
		_ = told.Close()
	}()
	return &demo{table: bufio.NewScanner(table), progress: bufio.NewScanner(progress), stop: stop, done: done}
}

// await reads on until a line matches.
func await(t *testing.T, lines *bufio.Scanner, pattern string) []string {
	t.Helper()
	wanted := regexp.MustCompile(pattern)
	var seen []string
	for lines.Scan() {
		seen = append(seen, lines.Text())
		if match := wanted.FindStringSubmatch(lines.Text()); match != nil {
			return match
		}
	}
	t.Fatalf("no line matches %q:\n%s", pattern, strings.Join(seen, "\n"))
	return nil
}

// end ends the demo as Ctrl-C does, and checks that it leaves nothing behind.
func (d *demo) end(t *testing.T) {
	t.Helper()
	go func() { // what is still printed
		for d.table.Scan() {
		}
	}()
	d.stop()
	var rest []string
	for d.progress.Scan() {
		rest = append(rest, d.progress.Text())
	}
	if err := <-d.done; err != nil {
		t.Errorf("%v\n%s", err, strings.Join(rest, "\n"))
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), "proffer-") {
			t.Errorf("left behind: %s", entry.Name())
		}
	}
}

func newClient(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheDemoShowsAnEditAtOnceAndLeavesNothingBehind(t *testing.T) {
	d := start(t, options{})
	kubeconfig := await(t, d.progress, `--kubeconfig (\S+) edit`)[1]
	await(t, d.progress, "Ctrl-C ends it")
	await(t, d.progress, "^$")
	await(t, d.table, `oslo +- +nodes-free +cpu=5 .* cpu 5: 50% of \(22 - 4 reserved\) is a pool of 9, 5 committed, 4 remaining; it has 1`)
	await(t, d.table, `rome +- +consumers-by-label +cpu=16`)

	c := newClient(t, kubeconfig)
	edit := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"offer":{"percent":100}}}`))
	policy := &v1alpha1.ResourcePolicy{}
	policy.Name = "nodes-free"
	if err := c.Patch(t.Context(), policy, edit); err != nil {
		t.Fatal(err)
	}
	await(t, d.table, `oslo +- +nodes-free +cpu=14 .* cpu 14: 100% of \(22 - 4 reserved\) is a pool of 18`)
	d.end(t)
}

func TestTheDemoOnAnExistingClusterTakesAwayWhatItMade(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	d := start(t, options{kubeconfig: kubeconfig, samples: true})
	await(t, d.progress, "installing the CRD")
	await(t, d.progress, "Ctrl-C ends it")
	await(t, d.progress, "^$")
	await(t, d.table, `rome +shared +override\[0\] +cpu=8 `)
	d.end(t)
	// The API server takes a moment to stop serving what is no longer defined.
	c := newClient(t, kubeconfig)
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		return c.List(ctx, &v1alpha1.ResourcePolicyList{}) != nil, nil
	})
	if err != nil {
		t.Errorf("the CRD is left behind: %v", err)
	}
}

func TestAKubeconfigThatIsNotThere(t *testing.T) {
	err := run(t.Context(), options{kubeconfig: filepath.Join(t.TempDir(), "nowhere")}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("got %v, want an error that names the flag", err)
	}
}
