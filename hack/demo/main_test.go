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
	"proffer.dev/proffer/test/nodestest"
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
	d := start(t, demoOptions{})
	first := d.screen(t)
	if text := strings.Join(first.lines, "\n"); len(first.lines) >= 24 ||
		!regexp.MustCompile(`(?m)^oslo +<unnamed> +cpu +5 +0 +1 +spare$`).MatchString(text) ||
		!regexp.MustCompile(`(?m)^rome +<unnamed> +cpu +16 +0 +4 +partners$`).MatchString(text) {
		t.Errorf("the first screen has %d lines, want less than 24:\n%s", len(first.lines), text)
	}
	for _, line := range first.lines[:slices.Index(first.lines, "")] {
		if len(line) > 80 {
			t.Errorf("a row of the first table is wider than 80 columns: %q", line)
		}
	}

	// The commands are run exactly as printed.
	d.sh(t, first, `KUBE_EDITOR="sed -i.before 's/percent: 50/percent: 100/'" `+first.edit)
	change := []string{
		await(t, d.table, `^\d\d:\d\d:\d\d  (policy spare edited: Offering)$`)[1],
		await(t, d.table, `^oslo +<unnamed> +cpu +5 -> 14 +0 +1 +spare +100% of .*`)[0],
		await(t, d.table, `^oslo +<unnamed> +memory +38Gi -> 84Gi .*`)[0],
		await(t, d.table, `^oslo +<unnamed> +pods +162 -> 327 .*`)[0],
	}
	readme := test.Read(t, "../../README.md")
	for _, line := range change { // A terminal of 80 columns shows the same text in more lines.
		if !strings.Contains(words(readme), words(line)) {
			t.Errorf("README.md should show what the demo prints:\n%s", words(line))
		}
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

	d.sh(t, first, `kubectl patch rpol spare --type=merge --patch '{"spec":{"updateThresholdPercent":3}}'`)
	await(t, d.table, `  policy spare edited: Offering; no amount changes$`)

	if warnings := d.sh(t, first, first.apply); strings.Contains(warnings, "Warning") {
		t.Errorf("kubectl warns:\n%s", warnings)
	}
	// These change no offer.
	var created []string
	for range 4 {
		created = append(created, await(t, d.table, `  policy (a100|backup|large|trial): - -> \w+(?:; no amount changes)?$`)[1])
	}
	slices.Sort(created)
	if diff := cmp.Diff([]string{"a100", "backup", "large", "trial"}, created); diff != "" {
		t.Error(diff)
	}
	d.sh(t, first, "kubectl delete foreigncluster paris")
	await(t, d.table, `^paris +<unnamed> +cpu +\d+ -> - `)
	d.end(t)
}

// words joins the words of a text by single spaces.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

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
	c := newClient(t, kubeconfig)
	test.Must(t, createNode(t.Context(), c, nodestest.Node("worker-1", nodestest.List("cpu", "8", "memory", "32Gi", "pods", "110", "ephemeral-storage", "100Gi"))))
	d := start(t, demoOptions{kubeconfig: kubeconfig, samples: true})
	await(t, d.progress, "installing the CRD")
	await(t, d.progress, "^$")
	await(t, d.table, `^<anyone> +<unnamed> +cpu +2 .* spare$`)
	await(t, d.table, `^  kubectl --kubeconfig `+kubeconfig+` edit rpol spare$`)
	d.end(t)
	// The API server takes a moment to stop serving a deleted CRD.
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
