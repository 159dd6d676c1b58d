package slices

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/test/slices/lab"
)

// startTimeout is the time for the clusters to start. It takes 20 s on two idle cores.
const startTimeout = 5 * time.Minute

// The clusters that all tests share. Each test must delete its slices and policies.
var (
	provider         *lab.Cluster
	rome, oslo, bern *lab.Cluster
	operator         *lab.Operator
	// operators is the number of operators started so far.
	operators int
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := lab.Main(func(p lab.Programs, dir string) (int, error) { return run(m, p, dir) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "slices:", err)
		code = 1
	}
	os.Exit(code)
}

// run starts the clusters and the operator, and runs the tests.
func run(m *testing.M, p lab.Programs, dir string) (int, error) {
	log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	clusters, err := lab.Start(ctx, p, dir, os.Stderr, 0, "milan", "rome", "oslo", "bern")
	if err != nil {
		return 1, err
	}
	provider, rome, oslo, bern = clusters[0], clusters[1], clusters[2], clusters[3]
	var group errgroup.Group
	for _, consumer := range clusters[1:] {
		group.Go(func() error { return consumer.Peer(ctx, provider) })
	}
	if err := group.Wait(); err != nil {
		return 1, err
	}
	if err := provider.Install(ctx); err != nil {
		return 1, err
	}
	if err := startOperator(ctx); err != nil {
		return 1, err
	}
	code := m.Run()

	ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return code, stopOperator(ctx)
}

// startOperator runs an operator with the present arguments of its Deployment, followed by args.
func startOperator(ctx context.Context, args ...string) (err error) {
	operators++
	operator, err = provider.StartOperator(ctx, operators, args...)
	return err
}

// stopOperator ends the operator. It returns an error if the operator does not end well, or its log
// has problems.
func stopOperator(ctx context.Context) error {
	if err := operator.Stop(ctx); err != nil {
		return err
	}
	return checkLog()
}

func checkLog() error {
	problems, err := operator.Problems()
	if len(problems) > 0 {
		err = fmt.Errorf("the operator printed:\n%s", strings.Join(problems, "\n"))
	}
	return err
}
