package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"gotest.tools/gotestsum/testjson"
)

// stopTimeout bounds the time that go test may take to end after Ctrl-C: its tests stop their servers.
const stopTimeout = time.Minute

// exitSoon lets the race detector wait for reports of other goroutines for less than a second at the end
// of a process. The tests start and end hundreds of processes.
const exitSoon = "atexit_sleep_ms=100"

// moduleRun is a run of go test in one module: of its packages with the race detector, or of the others.
type moduleRun struct {
	module   string
	race     bool
	packages []testPackage
	// left is the number of packages with tests that are not run.
	left int
	args []string

	// execution has the results, by import path. It is empty if no test ran.
	execution *testjson.Execution
	// processor is the processor time by directory of a package.
	processor map[string]time.Duration
	// stderr holds the output of go test apart from its events.
	stderr string
	// err says why the tests did not run, or that they failed.
	err error
}

// name returns the module, and whether the race detector is on.
func (r *moduleRun) name() string {
	if r.race {
		return r.module + " with the race detector"
	}
	return r.module
}

// inLanes calls test for each run, in order, for a few at the same time.
func inLanes(ctx context.Context, runs []*moduleRun, test func(*moduleRun)) error {
	var all errgroup.Group
	all.SetLimit(lanes)
	for _, r := range runs {
		all.Go(func() error { // A run ends soon after the context.
			if ctx.Err() == nil {
				test(r)
			}
			return nil
		})
	}
	return cmp.Or(all.Wait(), ctx.Err())
}

// compile fills Go's build cache with what the tests need. What does not compile, go test reports.
func (r *moduleRun) compile(ctx context.Context, p *progress) {
	if r.err != nil || len(r.packages) == 0 || ctx.Err() != nil {
		return
	}
	p.says("build", r)
	args := []string{"list", "-e", "-test", "-deps", "-export", "-f", ""}
	if r.race {
		args = append(args, "-race")
	}
	for _, t := range r.packages {
		args = append(args, t.ImportPath)
	}
	_ = r.goCommand(ctx, args).Run()
}

// goCommand returns a command of Go in the module, in the environment that its tests are built in.
func (r *moduleRun) goCommand(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = r.module, os.Environ()
	if r.race {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1", "GORACE="+strings.TrimSpace(exitSoon+" "+os.Getenv("GORACE")))
	}
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, stopTimeout
	return cmd
}

// test runs the tests. It sets the results.
func (r *moduleRun) test(ctx context.Context, rec *record, p *progress) {
	p.says("start", r)
	switch {
	case r.err != nil:
	case len(r.packages) == 0:
		r.err = fmt.Errorf("%s has no package with tests", r.module)
	default:
		r.err = r.goTest(ctx, rec, p)
	}
	if r.err != nil {
		p.says("FAIL", r)
		return
	}
	p.says("end", r)
}

// requireTests sets the error of each module of which no test ran.
func requireTests(runs []*moduleRun) {
	ran := map[string]int{}
	for _, r := range runs {
		passed, failed, _ := counts(r)
		ran[r.module] += passed + failed
	}
	for _, r := range runs {
		if r.err == nil && ran[r.module] == 0 {
			r.err = fmt.Errorf("no test of module %s ran", r.module)
		}
	}
}

func (r *moduleRun) goTest(ctx context.Context, rec *record, p *progress) error {
	usage, err := newUsage()
	if err != nil {
		return err
	}
	defer usage.remove()
	events, err := rec.events(r)
	if err != nil {
		return err
	}
	defer func() { _ = events.Close() }() // A copy for people: nothing depends on its last byte.
	cmd := r.goCommand(ctx, append([]string{r.args[0], "-exec", usage.wrapper}, r.args[1:]...))
	cmd.Env = append(cmd.Env, usage.env)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	handler := &eventHandler{run: r, progress: p}
	r.execution, err = testjson.ScanTestOutput(testjson.ScanConfig{
		Stdout: io.TeeReader(stdout, events), Handler: handler, IgnoreNonJSONOutputLines: true,
	})
	if err != nil {
		_ = cmd.Cancel() // Wait returns why it ended.
	}
	ended := cmd.Wait()
	r.processor = usage.read()
	r.stderr = strings.TrimSpace(stderr.String() + handler.text.String())
	if err != nil {
		return fmt.Errorf("reading the events of go test in %s: %w", r.module, err)
	}
	return ended
}

// eventHandler receives the events of go test in one module.
type eventHandler struct {
	run      *moduleRun
	progress *progress
	text     strings.Builder
}

// Event shows the progress.
func (h *eventHandler) Event(event testjson.TestEvent, execution *testjson.Execution) error {
	if event.Action.IsTerminal() {
		h.progress.ended(h.run, event, execution)
	} else if event.PackageEvent() && event.Action == "start" {
		h.progress.started(event.Package)
	}
	return nil
}

// Err keeps a line that is no event.
func (h *eventHandler) Err(text string) error {
	h.text.WriteString(text + "\n")
	return nil
}
