package slices

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/test/slices/lab"
)

// startTimeout is the time for the clusters to start. It takes 20 s on two idle cores.
const startTimeout = 5 * time.Minute

// labEnv is the environment variable that passes files to the process in the namespaces.
const labEnv = "PROFFER_LAB"

// files are the paths that the process outside passes to the one in the namespaces.
type files struct {
	Work     string
	Programs lab.Programs
}

// The clusters that all tests share. Each test must delete its slices and policies.
var (
	clusters         *lab.Lab
	provider         *lab.Cluster
	rome, oslo, bern *lab.Cluster
	operator         *lab.Operator
	// operators is the number of operators started so far.
	operators int
)

func TestMain(m *testing.M) {
	flag.Parse()
	run := outside
	if lab.Isolated() {
		run = func() (int, error) { return inside(m) }
	}
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "slices:", err)
		code = 1
	}
	os.Exit(code)
}

// outside builds the programs while there is a network, and runs the tests in the namespaces.
func outside() (code int, err error) {
	work, err := os.MkdirTemp("", "proffer-slices-")
	if err != nil {
		return 1, err
	}
	defer func() {
		if os.Getenv("PROFFER_LAB_KEEP") != "" {
			fmt.Fprintln(os.Stderr, "slices: logs and kubeconfigs are in", work)
			return
		}
		err = errors.Join(err, os.RemoveAll(work))
	}()
	programs, err := lab.Build(context.Background(), work, os.Stderr)
	if err != nil {
		return 1, err
	}
	data, err := json.Marshal(files{work, programs})
	if err != nil {
		return 1, err
	}
	return lab.Isolate(labEnv + "=" + string(data))
}

// inside starts the clusters and the operator, and runs the tests.
func inside(m *testing.M) (int, error) {
	log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set
	var f files
	if err := json.Unmarshal([]byte(os.Getenv(labEnv)), &f); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var err error
	if clusters, err = lab.Start(ctx, f.Programs, f.Work, os.Stderr, "milan", "rome", "oslo", "bern"); err != nil {
		return 1, err
	}
	provider, rome, oslo, bern = clusters.Provider, clusters.Consumers[0], clusters.Consumers[1], clusters.Consumers[2]
	if err := clusters.Install(ctx); err != nil {
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
	operator, err = clusters.StartOperator(ctx, operators, args...)
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
