package broker

import (
	"context"
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

// startTimeout is the time for the clusters to start.
const startTimeout = 8 * time.Minute

// clusters are shared by all tests.
var clusters *Lab

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := lab.Main(func(p lab.Programs, dir string) (int, error) { return run(m, p, dir) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "broker:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, p lab.Programs, dir string) (code int, err error) {
	log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	late := time.AfterFunc(startTimeout, cancel)
	if clusters, err = Start(ctx, p, dir, os.Stderr); err != nil {
		return 1, err
	}
	late.Stop()
	code = m.Run()
	problems, err := clusters.StopOperators(ctx)
	if len(problems) > 0 {
		err = errors.Join(err, fmt.Errorf("the operators printed:\n%s", strings.Join(problems, "\n")))
	}
	return code, err
}
