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

// labEnv is the environment variable that passes files to the process in the namespaces.
const labEnv = "PROFFER_LAB"

// files are the paths that the process outside passes to the one in the namespaces.
type files struct {
	Dir      string
	Programs Programs
}

// Main builds the programs while there is a network, and then has run called in the namespaces of
// [Isolate], in another process with the same arguments, with the programs and an empty directory. It
// returns the exit status of run. If PROFFER_LAB_KEEP is set, the directory is kept afterwards.
func Main(run func(p Programs, dir string) (code int, err error)) (code int, err error) {
	if Isolated() {
		var f files
		if err := json.Unmarshal([]byte(os.Getenv(labEnv)), &f); err != nil {
			return 1, err
		}
		defer endAll()
		return run(f.Programs, f.Dir)
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

// Start starts a cluster with so many nodes for each ID, in subdirectories of dir, and returns them in
// this order. Without nodes no pods run, else they run until ctx ends. Start must be called in the
// namespaces of [Isolate], because only they end what it starts.
func Start(
	ctx context.Context, p Programs, dir string, progress io.Writer, nodes int, ids ...string,
) ([]*Cluster, error) {
	if !Isolated() {
		return nil, fmt.Errorf("not in the namespaces of Isolate: only they end what a lab starts")
	}
	if err := loopback(); err != nil {
		return nil, err
	}
	began := time.Now()
	var group errgroup.Group
	clusters := make([]*Cluster, len(ids))
	for i, id := range ids {
		c := &Cluster{
			ID: id, dir: filepath.Join(dir, id), programs: p, nodes: nodes, first: 20000 + i*portsPerCluster,
		}
		clusters[i] = c
		if err := os.Mkdir(c.dir, 0o700); err != nil {
			return nil, err
		}
		group.Go(func() error {
			if err := c.start(ctx); err != nil {
				return fmt.Errorf("cluster %s: %w", c.ID, err)
			}
			_, _ = fmt.Fprintf(progress, "lab: Liqo runs in %s after %.1f s\n", c.ID, time.Since(began).Seconds())
			return nil
		})
	}
	return clusters, group.Wait()
}
