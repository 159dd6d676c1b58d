// Command gotest runs go test in several modules and says what ran:
//
//	go run ./hack/gotest . test/interop -- -race ./...
//
// It prints the lines that go test closes each package with, the output of what
// failed, and at the end how many tests ran and which were skipped. It fails if
// a test did, and also where a module ran no test at all: a pattern that matches
// nothing must not look like success.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	split := slices.Index(args, "--")
	if split < 1 {
		return errors.New("usage: gotest DIRECTORY... -- ARGUMENTS OF GO TEST")
	}
	var failed []string
	var skipped []string
	for _, dir := range args[:split] {
		fmt.Printf("=== module %s: go test %s\n", dir, strings.Join(args[split+1:], " "))
		sum, err := testModule(ctx, dir, args[split+1:])
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", dir, err))
		}
		skipped = append(skipped, sum.skipped...)
		fmt.Printf("=== module %s: %d tests passed, %d failed, %d skipped in %d packages\n",
			dir, sum.passed, sum.failed, len(sum.skipped), sum.packages)
	}
	if len(skipped) == 0 {
		fmt.Println("skipped: nothing")
	} else {
		fmt.Printf("skipped:\n  %s\n", strings.Join(skipped, "\n  "))
	}
	if len(failed) > 0 {
		return errors.New(strings.Join(failed, "; "))
	}
	return ctx.Err()
}

func testModule(ctx context.Context, dir string, args []string) (summary, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	// A test that has started a control plane wants to stop it.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return summary{}, err
	}
	if err := cmd.Start(); err != nil {
		return summary{}, err
	}
	sum, err := summarize(out, os.Stdout)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return sum, err
	}
	return sum, sum.verdict()
}
