package slices

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"proffer.dev/proffer/test/slices/lab"
)

// startTimeout is the time for the clusters to start. It takes 20 s on two idle cores.
const startTimeout = 5 * time.Minute

// The clusters that all tests share. Each test must delete its slices and policies.
var provider, rome, oslo, bern *lab.Cluster

func TestMain(m *testing.M) { lab.Test(m, startTimeout, start) }

// start starts the clusters and the operator.
func start(ctx context.Context, l *lab.Lab) error {
	clusters, err := l.Start(ctx, 0, "milan", "rome", "oslo", "bern")
	if err != nil {
		return err
	}
	provider, rome, oslo, bern = clusters[0], clusters[1], clusters[2], clusters[3]
	var group errgroup.Group
	for _, consumer := range clusters[1:] {
		group.Go(func() error { return consumer.Peer(ctx, provider) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := provider.Install(ctx); err != nil {
		return err
	}
	return provider.StartOperator(ctx)
}
