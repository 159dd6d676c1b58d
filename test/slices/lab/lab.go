package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// A Lab is a provider and its peered consumers.
type Lab struct {
	Provider  *Cluster
	Consumers []*Cluster
}

// Start starts a cluster for each ID, in subdirectories of dir, and peers the consumers with the
// provider. It must run in the namespaces of [Isolate], because only they end what it starts.
func Start(
	ctx context.Context, p Programs, dir string, progress io.Writer, provider string, consumers ...string,
) (*Lab, error) {
	if !Isolated() {
		return nil, fmt.Errorf("not in the namespaces of Isolate: only they end what a lab starts")
	}
	if err := loopback(); err != nil {
		return nil, err
	}
	began := time.Now()
	report := func(what string) {
		_, _ = fmt.Fprintf(progress, "lab: %s after %.1f s\n", what, time.Since(began).Seconds())
	}

	l := &Lab{Provider: &Cluster{ID: provider}}
	for _, id := range consumers {
		l.Consumers = append(l.Consumers, &Cluster{ID: id})
	}
	var group errgroup.Group
	for i, c := range append([]*Cluster{l.Provider}, l.Consumers...) {
		c.dir = filepath.Join(dir, c.ID)
		if err := os.Mkdir(c.dir, 0o700); err != nil {
			return nil, err
		}
		c.programs, c.first = p, 20000+i*portsPerCluster
		group.Go(func() error {
			if err := c.start(ctx); err != nil {
				return fmt.Errorf("cluster %s: %w", c.ID, err)
			}
			report("Liqo runs in " + c.ID)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, c := range l.Consumers {
		group.Go(func() error {
			if err := peer(ctx, c, l.Provider); err != nil {
				return fmt.Errorf("peer %s with %s: %w", c.ID, provider, err)
			}
			report(c.ID + " is peered")
			return nil
		})
	}
	return l, group.Wait()
}
