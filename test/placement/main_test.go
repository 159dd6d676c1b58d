package placement

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/source/nodes"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/process"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// buildTimeout bounds the build of kube-scheduler, which happens once on a machine.
const buildTimeout = 30 * time.Minute

// runScheduler runs kube-scheduler until the test ends.
func runScheduler(t *testing.T) {
	t.Helper()
	cluster := kubetest.Cluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	program, err := controlplane.Scheduler(ctx, os.Stderr)
	test.Must(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	test.Must(t, os.WriteFile(kubeconfig, cluster.Kubeconfig, 0o600))
	process.StartTest(t, program, []string{"--kubeconfig", kubeconfig, "--secure-port=0", "--leader-elect=false"})
}

// follow returns an account that follows the cluster until the test ends.
func follow(t *testing.T) *capacity.Ledger {
	t.Helper()
	ledger := capacity.NewLedger()
	watch, err := nodes.New(kubetest.Cluster(t).Config, ledger, 0, func() {}, logr.Discard())
	test.Must(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { test.Check(t, watch.Start(ctx)) })
	t.Cleanup(func() { stop(); running.Wait() })
	return ledger
}
