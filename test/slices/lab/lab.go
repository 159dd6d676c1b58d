package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// A Lab is the clusters that run at the same time.
type Lab struct {
	// Progress gets a line for each step of the start.
	Progress io.Writer

	programs Programs
	dir      string
	clusters []*Cluster
	// operators is how many operators were started so far.
	operators int
}

// labEnv is the environment variable that passes files to the process in the namespaces.
const labEnv = "PROFFER_LAB"

// files are the paths that the process outside passes to the one in the namespaces.
type files struct {
	Dir      string
	Programs Programs
}

// Run builds the programs while there is a network. The rest it does in the namespaces of [Isolate], in another
// process with the same arguments: it calls start, which starts the clusters within the limit, and then body. What
// start starts runs until body has ended. Run returns the exit status of body. If PROFFER_LAB_KEEP is set, the
// directory of the lab is kept afterwards.
func Run(
	limit time.Duration, start func(context.Context, *Lab) error, body func(context.Context, *Lab) (code int, err error),
) (code int, err error) {
	if Isolated() {
		var f files
		if err := json.Unmarshal([]byte(os.Getenv(labEnv)), &f); err != nil {
			return 1, err
		}
		defer endAll()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		late := time.AfterFunc(limit, cancel)
		l := &Lab{Progress: os.Stderr, programs: f.Programs, dir: f.Dir}
		if err := start(ctx, l); err != nil {
			return 1, err
		}
		late.Stop()
		return body(ctx, l)
	}
	// Two labs at a time would need too much memory, and each would be slow.
	if err := onlyLab(); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "proffer-lab-")
	if err != nil {
		return 1, err
	}
	defer func() {
		if os.Getenv("PROFFER_LAB_KEEP") != "" {
			fmt.Fprintln(os.Stderr, "lab: logs and kubeconfigs are in", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	programs, err := Build(ctx, os.Stderr)
	stop() // Isolate handles the signals from here on.
	if err != nil {
		return 1, err
	}
	data, err := json.Marshal(files{dir, programs})
	if err != nil {
		return 1, err
	}
	return Isolate(labEnv + "=" + string(data))
}

// onlyLab waits until no other lab of this user runs on the machine.
func onlyLab() error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(cache, "proffer")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return lock(filepath.Join(dir, "lab.lock"), func() {
		fmt.Fprintln(os.Stderr, "lab: waiting for another lab on this machine to end")
	})
}

// Start starts a cluster with so many nodes for each ID, and returns them in this order. Without nodes no pods run,
// else they run until ctx ends.
func (l *Lab) Start(ctx context.Context, nodes int, ids ...string) ([]*Cluster, error) {
	if err := loopback(); err != nil {
		return nil, err
	}
	began := time.Now()
	var group errgroup.Group
	for i, id := range ids {
		c := &Cluster{ID: id, dir: filepath.Join(l.dir, id), lab: l, nodes: nodes, first: 20000 + i*portsPerCluster}
		l.clusters = append(l.clusters, c)
		if err := os.Mkdir(c.dir, 0o700); err != nil {
			return nil, err
		}
		group.Go(func() error {
			if err := c.start(ctx); err != nil {
				return fmt.Errorf("cluster %s: %w", c.ID, err)
			}
			_, _ = fmt.Fprintf(l.Progress, "lab: Liqo runs in %s after %.1f s\n", c.ID, time.Since(began).Seconds())
			return nil
		})
	}
	return l.clusters, group.Wait()
}
