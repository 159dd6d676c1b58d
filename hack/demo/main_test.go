package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

// waitTimeout is the timeout of steps that take a second on an idle machine.
const waitTimeout = 5 * time.Minute

// demo is a running demo, which the test ends.
type demo struct {
	table, progress *bufio.Scanner
	stop            context.CancelFunc
	done            <-chan error
}

// shortTempDir returns a directory for the test. The path of a socket in it has at most 107
// characters, and t.TempDir has the name of the test in its path.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "demo") //nolint:usetesting // see above
	test.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func start(t *testing.T, o demoOptions) *demo {
	t.Helper()
	t.Setenv("TMPDIR", shortTempDir(t))
	ctx, stop := context.WithTimeout(t.Context(), waitTimeout)
	t.Cleanup(stop)
	table, out := io.Pipe()
	// A pipe buffers the progress: the demo's last messages must not wait for a test that reads
	// only the table.
	progress, progressWriter, err := os.Pipe()
	test.Must(t, err)
	t.Cleanup(func() { _ = progress.Close() })
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, o, out, progressWriter)
		_ = out.Close()
		_ = progressWriter.Close()
	}()
	return &demo{table: bufio.NewScanner(table), progress: bufio.NewScanner(progress), stop: stop, done: done}
}

// await reads lines until one matches, and returns the match.
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
	go func() { // Drain the rest of the output.
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
	test.Must(t, err)
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), "proffer-") {
			t.Errorf("left behind: %s", entry.Name())
		}
	}
}

func newClient(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	test.Must(t, err)
	scheme := runtime.NewScheme()
	test.Must(t, errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)))
	c, err := client.New(config, client.Options{Scheme: scheme})
	test.Must(t, err)
	return c
}

func TestTheDemoShowsAnEditAtOnceAndLeavesNothingBehind(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	d := start(t, demoOptions{})
	first := d.screen(t)
	if text := strings.Join(first.lines, "\n"); len(first.lines) >= 24 ||
		!strings.Contains(text, "cpu 5: 50% of (22 - 4 reserved)") ||
		!strings.Contains(text, "  -       consumers-by-label  cpu 16,") {
		t.Errorf("the first screen has %d lines, want less than 24:\n%s", len(first.lines), text)
	}

	if text := strings.Join(first.lines, "\n"); strings.Contains(text, "32f0b45b") {
		t.Errorf("a consumer that only a policy names is shown:\n%s", text)
	}

	// The commands are run exactly as printed.
	d.sh(t, first, `KUBE_EDITOR="sed -i.before 's/percent: 50/percent: 100/'" `+first.edit)
	await(t, d.table, `  oslo$`)
	change := []string{await(t, d.table, `^  - +nodes-free +cpu 5 -> 14, memory 38Gi -> 84Gi, pods 162 -> 327$`)[0]}
	for len(change) < 3 && d.table.Scan() {
		change = append(change, d.table.Text())
	}
	if text := strings.Join(change,
		"\n"); !strings.HasPrefix(change[1], "          cpu 14: 100% of (22 - 4 reserved)") {
		t.Errorf("got:\n%s", text)
	} else if readme, err := os.ReadFile("../../README.md"); err != nil || !strings.Contains(string(readme), text) {
		t.Errorf("README.md should show what the demo prints, %v:\n%s", err, text)
	}
	second := d.screen(t)
	if diff := cmp.Diff(first.hints, second.hints); diff != "" {
		t.Errorf("other hints below the change:\n%s", diff)
	}

	if text := d.sh(t, first, "kubectl __complete proffer explain r"); !strings.Contains(text, "\nrome\n") {
		t.Errorf("kubectl completes a consumer with %q", text)
	}
	// simulate ends with 1 for a change, and with 2 if pods would be evicted.
	text := d.sh(t, first, first.plugin+" || [ $? -lt 3 ]")
	for _, want := range []string{"Consumer:   rome\n", "\nPods that count as its own:\n", "\nOffers that change:\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q prints no %q:\n%s", first.plugin, want, text)
		}
	}

	d.sh(t, first, `kubectl patch rpol nodes-free --type=merge --patch '{"spec":{"updateThresholdPercent":3}}'`)
	await(t, d.table, `  policy nodes-free: seen, changes nothing \(`)

	if warnings := d.sh(t, first, first.apply); strings.Contains(warnings, "Warning") {
		t.Errorf("kubectl warns:\n%s", warnings)
	}
	// The samples a100, dry-run, filter and fixed change nothing.
	var seen []string
	for range 4 {
		seen = append(seen, await(t, d.table, `  policy (\S+): seen, changes nothing`)[1])
	}
	slices.Sort(seen)
	if diff := cmp.Diff([]string{"a100", "dry-run", "filter", "fixed"}, seen); diff != "" {
		t.Error(diff)
	}
	d.sh(t, first, "kubectl delete foreigncluster paris")
	await(t, d.table, `  paris is no longer a consumer$`)
	d.end(t)
}

func TestExactPrintsExactAmounts(t *testing.T) {
	d := start(t, demoOptions{exact: true})
	first := d.screen(t)
	d.sh(t, first, `kubectl patch rpol nodes-free --type=merge --patch '{"spec":{"offer":{"percent":33}}}'`)
	await(t, d.table, `^  - +nodes-free +cpu 5 -> 1940m, memory 38Gi -> 24008867184,$`)
	d.end(t)
}

// shown is a batch of changes and the commands below it.
type shown struct {
	lines, hints     []string
	env, edit, apply string
	// plugin is the line with kubectl-proffer.
	plugin string
}

// screen reads until the hints have been printed.
func (d *demo) screen(t *testing.T) (s shown) {
	t.Helper()
	for d.table.Scan() {
		line := d.table.Text()
		s.lines = append(s.lines, line)
		command, isCommand := strings.CutPrefix(line, "  ")
		switch {
		case !isCommand:
		case strings.HasPrefix(command, ". "):
			s.env = command
		case strings.HasPrefix(command, "kubectl edit"):
			s.edit = command
		case strings.HasPrefix(command, "kubectl proffer"):
			s.plugin = command
		case strings.HasPrefix(command, "kubectl apply"):
			s.apply = command
			s.hints = []string{s.env, s.edit, s.plugin, s.apply}
			return s
		}
	}
	t.Fatalf("no hints:\n%s", strings.Join(s.lines, "\n"))
	return s
}

// sh runs a command in another terminal, as the hints suggest.
func (d *demo) sh(t *testing.T, s shown, command string) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "sh", "-ec", s.env+"\n"+command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, text)
	}
	return string(text)
}

func TestTheDemoRemovesTheCRDThatItInstalled(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	kubeconfig := cluster.KubeconfigFile(t)
	d := start(t, demoOptions{kubeconfig: kubeconfig, samples: true})
	await(t, d.progress, "installing the CRD")
	await(t, d.progress, "^$")
	await(t, d.table, `^  shared +override\[0\] +cpu 8, `)
	await(t, d.table, `^  kubectl --kubeconfig `+kubeconfig+` edit rpol nodes-free$`)
	d.end(t)
	// The API server takes a moment to stop serving a deleted CRD.
	c := newClient(t, kubeconfig)
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, waitTimeout, true,
		func(ctx context.Context) (bool, error) {
			return c.List(ctx, &v1alpha1.ResourcePolicyList{}) != nil, nil
		})
	if err != nil {
		t.Errorf("the CRD is left behind: %v", err)
	}
}

func TestAMissingKubeconfigIsAnErrorThatNamesTheFlag(t *testing.T) {
	err := run(t.Context(), demoOptions{kubeconfig: filepath.Join(t.TempDir(), "nowhere")}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("got %v, want an error that names the flag", err)
	}
}
