// Command lab-broker runs the clusters of package broker for a person: it starts them, says what to type
// next, and runs a shell in their network, in which each cluster has a command of its name that is
// kubectl for it. When the shell ends, everything ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/test/slices/broker"
	"proffer.dev/proffer/test/slices/lab"
)

// startTimeout is the time for the clusters to start. It takes 40 s on two idle cores.
const startTimeout = 10 * time.Minute

func main() {
	log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set
	code, err := lab.Main(run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		code = 1
	}
	os.Exit(code)
}

func run(p lab.Programs, dir string) (int, error) {
	// An interrupt is for what runs in the shell.
	signal.Ignore(os.Interrupt)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	late := time.AfterFunc(startTimeout, cancel)
	clusters, err := broker.Start(ctx, p, dir, os.Stderr)
	if err != nil {
		return 1, err
	}
	late.Stop()
	shell, err := clusters.Shell(ctx, dir)
	if err != nil {
		return 1, err
	}
	fmt.Print("\n", broker.Tour, "\n")
	shell.Stdin, shell.Stdout, shell.Stderr = os.Stdin, os.Stdout, os.Stderr
	shell.Dir = p.Checkout
	err = shell.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		err = nil // The status is that of what was typed last.
	}
	return 0, err
}
