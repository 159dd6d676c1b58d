package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/table"
)

// ErrNotObserved is wrapped by the error of an Observe whose context ended before the first lists
// were complete.
var ErrNotObserved = errors.New("the first lists of nodes, pods, policies and Liqo's objects are not complete")

// Observe evaluates a cluster once, as a replica does that does not lead, and returns what the
// replica would publish, with a copy of the ledger. It reads with the rights of the configuration,
// serves nothing and writes nothing. Grants are read from the namespace.
func Observe(ctx context.Context, config *rest.Config, namespace string) (*table.Snapshot, *capacity.Copy, error) {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  NewScheme(),
		Cache:   cacheOptions(namespace),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Logger:  logr.Discard(),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	ledger, offers := capacity.NewLedger(), table.New()
	if err := setup(mgr, parts{
		Options: Options{NodeGrace: DefaultNodeGrace, LeaderElection: &kube.LeaderElection{Namespace: namespace}},
		ledger:  ledger, table: offers, debouncer: debounce.New(DefaultBatchPeriod), observer: true,
	}); err != nil {
		return nil, nil, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	select {
	case <-offers.Ready():
	case err := <-ended:
		stop()
		if err == nil { // It ends without an error when its context does.
			err = fmt.Errorf("%w: %w", ErrNotObserved, context.Cause(ctx))
		}
		return nil, nil, err
	}
	snapshot, content := offers.Current(), ledger.Copy()
	stop()
	return snapshot, content, <-ended
}
