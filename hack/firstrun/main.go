// Command firstrun does what a new user does first. It clones the repository, runs the first
// command of its README with an empty module cache, waits for the first offers, edits a policy as
// the command suggests, waits for the effect, ends the command with Ctrl-C, and checks that nothing
// is left behind.
//
//	go run ./hack/firstrun           with the present caches of Go's builds and of the project
//	go run ./hack/firstrun --cold    with these empty too
//
// It needs only the standard library: no module is downloaded yet.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/process"
)

const (
	// runTimeout is the timeout of the whole run. On two cores it takes a minute, with empty caches
	// eight.
	runTimeout = 45 * time.Minute
	// stepTimeout is the timeout of a short step.
	stepTimeout = time.Minute
)

func main() {
	cold := flag.Bool("cold", false, "with empty caches of Go's builds and of the project too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := tryFirstRun(ctx, *cold, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "first run:", err)
		os.Exit(1)
	}
}

// tryFirstRun does the whole run in a temporary directory.
func tryFirstRun(ctx context.Context, cold bool, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	root, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "first-run-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	clone, temporary := filepath.Join(work, "clone"), filepath.Join(work, "tmp")
	if err := os.Mkdir(temporary, 0o700); err != nil {
		return err
	}
	if changed, err := output(ctx, root, "git", "status", "--porcelain"); err != nil || changed != "" {
		fmt.Fprintln(out, "first run: the clone lacks uncommitted changes")
	}
	if _, err := output(ctx, root, "git", "clone", "--quiet", root, clone); err != nil {
		return err
	}
	command, err := firstCommand(filepath.Join(clone, "README.md"))
	if err != nil {
		return err
	}
	env := append(withoutMake(os.Environ()), "GOMODCACHE="+filepath.Join(work, "modules"),
		"GOFLAGS="+os.Getenv("GOFLAGS")+" -modcacherw", "TMPDIR="+temporary)
	if cold {
		env = append(env, "GOCACHE="+filepath.Join(work, "builds"), "PROFFER_CACHE="+filepath.Join(work, "project"))
	}
	began := time.Now()
	fmt.Fprintf(out, "first run: $ %s\n", command)
	r, err := start(clone, command, env, out)
	if err != nil {
		return err
	}
	defer func() {
		if r.Alive() == nil {
			_ = syscall.Kill(-r.PID(), syscall.SIGKILL)
			<-r.Exited
		}
	}()
	if err := r.use(ctx, began, out); err != nil {
		return err
	}
	return nothingLeft(ctx, work, clone, temporary)
}

// withoutMake returns the environment of a new user's shell: that of make try makes another make say
// which directories it enters.
func withoutMake(env []string) []string {
	return slices.DeleteFunc(env, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}, name)
	})
}

// firstCommand returns the first command of README.md.
func firstCommand(readme string) (string, error) {
	text, err := os.ReadFile(readme)
	if err != nil {
		return "", err
	}
	_, after, found := strings.Cut(string(text), "\n$ ")
	if !found {
		return "", fmt.Errorf("%s has no command, which begins with \"$ \"", readme)
	}
	line, _, _ := strings.Cut(after, "\n")
	line, _, _ = strings.Cut(line, "#")
	return strings.TrimSpace(line), nil
}

// running is the running command, with all that it has printed.
type running struct {
	*process.Process
	printed *test.Buffer
}

// start runs the command in a shell in its own process group, as a terminal does.
func start(dir, command string, env []string, out io.Writer) (running, error) {
	r, cmd := running{printed: &test.Buffer{}}, exec.Command("bash", "-c", command)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, 5*time.Second
	cmd.Stdout = io.MultiWriter(r.printed, out)
	cmd.Stderr = cmd.Stdout
	var err error
	r.Process, err = process.Start(cmd)
	return r, err
}

// use waits for the first offers and the suggested commands, and runs the one that edits a policy
// in another shell, with an editor that makes a change. Then it waits for the effect and ends the
// command.
func (r running) use(ctx context.Context, began time.Time, out io.Writer) error {
	if _, err := r.await(ctx, regexp.MustCompile(`(?m)^oslo .* spare$`)); err != nil {
		return fmt.Errorf("waiting for the first offers: %w", err)
	}
	first := time.Since(began)
	soonest, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	env, err := r.await(soonest, regexp.MustCompile(`(?m)^  \. (\S+)$`))
	if err != nil {
		return fmt.Errorf("waiting for the command that finds kubectl: %w", err)
	}
	edit, err := r.await(soonest, regexp.MustCompile(`(?m)^  (kubectl edit rpol (\S+))$`))
	if err != nil {
		return fmt.Errorf("waiting for the command that edits a policy: %w", err)
	}
	edited := time.Now()
	// The editor writes its files next to the file of the commands, which the demo removes.
	script := fmt.Sprintf(`. %s; export TMPDIR=%s KUBE_EDITOR="sed -i.before 's/percent: 50/percent: 100/'"; %s`,
		env[1], filepath.Dir(env[1]), edit[1])
	if _, err := output(ctx, ".", "sh", "-ec", script); err != nil {
		return err
	}
	// The change, with its reason.
	if _, err := r.await(soonest, regexp.MustCompile(` cpu +\S+ -> .* `+edit[2]+` +100% of`)); err != nil {
		return fmt.Errorf("waiting for the effect of an edit: %w", err)
	}
	effect := time.Since(edited)
	if err := syscall.Kill(-r.PID(), syscall.SIGINT); err != nil {
		return err
	}
	select {
	case <-r.Exited:
	case <-soonest.Done():
		return errors.New("the command does not end with Ctrl-C")
	}
	if r.Err != nil && !endedByCtrlC(r.Err) {
		return fmt.Errorf("the command ended with %w", r.Err)
	}
	fmt.Fprintf(out, "first run: first offers after %v, the effect of an edit after %v\n", first.Round(time.Second),
		effect.Round(10*time.Millisecond))
	return nil
}

// endedByCtrlC reports whether make returned the error after Ctrl-C.
func endedByCtrlC(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok &&
		(status.Signaled() && status.Signal() == syscall.SIGINT || status.ExitStatus() == 128+int(syscall.SIGINT))
}

// await waits until a line matches, and returns the match.
func (r running) await(ctx context.Context, pattern *regexp.Regexp) (match []string, err error) {
	err = r.Until(ctx, func(context.Context) error {
		if match = pattern.FindStringSubmatch(r.printed.String()); match == nil {
			return fmt.Errorf("no line matches %s", pattern)
		}
		return nil
	})
	return match, err
}

// nothingLeft checks that no program is left, and that only files that git ignores were written.
func nothingLeft(ctx context.Context, work, clone, temporary string) error {
	var errs []error
	processes, err := output(ctx, ".", "ps", "-A", "-ww", "-o", "pid=,args=")
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(processes, "\n") {
		if strings.Contains(line, work) {
			errs = append(errs, fmt.Errorf("still running: %s", strings.TrimSpace(line)))
		}
	}
	files, err := os.ReadDir(temporary)
	errs = append(errs, err)
	for _, f := range files {
		errs = append(errs, fmt.Errorf("left in TMPDIR: %s", f.Name()))
	}
	changed, err := output(ctx, clone, "git", "status", "--porcelain")
	errs = append(errs, err)
	if changed != "" {
		errs = append(errs, fmt.Errorf("left in the clone:\n%s", changed))
	}
	return errors.Join(errs...)
}

func output(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
