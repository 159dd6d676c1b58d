package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/hack/controlplane"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/bench/population"
	"proffer.dev/proffer/test/process"
)

// cluster is a control plane and the operator's program.
type cluster struct {
	plane      *controlplane.Cluster
	client     client.Client
	work       string
	kubeconfig string
	operator   string
	// token authenticates the reader; admitReader sets it.
	token string
}

// newCluster returns a cluster without a control plane. It builds the operator if no program is
// given. The caller must stop the cluster.
func newCluster(ctx context.Context, operator string) (c *cluster, err error) {
	c = &cluster{operator: operator}
	if c.work, err = os.MkdirTemp("", "proffer-bench-"); err != nil {
		return nil, err
	}
	if c.operator == "" {
		if c.operator, err = process.Build(ctx, c.work); err != nil {
			return nil, errors.Join(err, c.stop())
		}
	}
	return c, nil
}

// startCluster starts a control plane with our CRDs.
func startCluster(ctx context.Context, operator string, progress io.Writer) (c *cluster, err error) {
	root, err := process.Checkout(ctx)
	if err != nil {
		return nil, err
	}
	if c, err = newCluster(ctx, operator); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	if c.plane, err = controlplane.Start(ctx, controlplane.Options{
		CRDDirs:  []string{filepath.Join(root, "config", "crd", "bases")},
		Progress: progress,
		APIServerFlags: map[string][]string{
			// New nodes must not be tainted: no controller runs that would remove the taint.
			"disable-admission-plugins": {"TaintNodesByCondition"},
			// A million events would fill etcd before the default compaction, every 5 minutes.
			"etcd-compaction-interval": {"30s"},
		},
	}); err != nil {
		return c, err
	}
	c.kubeconfig = filepath.Join(c.work, "kubeconfig")
	if err := c.plane.WriteKubeconfig(c.kubeconfig); err != nil {
		return c, err
	}
	c.client, err = newClient(c)
	return c, err
}

// heldCluster returns the cluster of a kubeconfig that another process keeps with -hold.
func heldCluster(ctx context.Context, operator, kubeconfig string) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	c, err := newCluster(ctx, operator)
	if err != nil {
		return nil, err
	}
	c.kubeconfig, c.plane = kubeconfig, &controlplane.Cluster{Config: config}
	if c.client, err = newClient(c); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *cluster) stop() error {
	var err error
	if c.plane != nil {
		err = c.plane.Stop()
	}
	return errors.Join(err, os.RemoveAll(c.work))
}

// operator is a running operator, with the addresses at which it serves.
type operator struct {
	*process.Process
	address, metrics, pprof string
}

func (c *cluster) startOperator(period time.Duration) (*operator, error) {
	p, err := process.Start(exec.CommandContext(context.Background(), c.operator,
		"--kubeconfig="+c.kubeconfig, "--batch-period="+period.String(), "--grpc-bind-address=",
		"--metrics-bind-address=", "--health-probe-bind-address=", "--pprof-bind-address="))
	if err != nil {
		return nil, err
	}
	return &operator{Process: p, address: p.Address("grpc"), metrics: p.Address("metrics"), pprof: p.Address("pprof")}, nil
}

func (o *operator) pid() int { return o.PID() }

// ready waits for the answer to a read, which the operator sends once it is ready. Polling its
// readiness instead would cost the operator more, because it logs each failed probe.
func (o *operator) ready(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	// The operator does not listen at once, so the client must retry often.
	soon := grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond},
		MinConnectTimeout: stepTimeout,
	}
	conn, err := dial(o.address, grpc.WithConnectParams(soon))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	known := &wire.ClusterIdentity{ClusterID: population.Consumer(0)}
	if _, err := wire.NewResourceReaderClient(conn).ReadResources(ctx, known, grpc.WaitForReady(true)); err != nil {
		return fmt.Errorf("waiting for the operator to be ready: %w", err)
	}
	return o.Ready(ctx)
}

// until is test.Until with a timeout of stepTimeout.
func until(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return test.Until(ctx, func(context.Context) error { return try() })
}

// pause waits for d. It returns the cause if ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// heap triggers a collection and returns the live heap, from the end of pprof's profile.
func (o *operator) heap(ctx context.Context) (float64, error) {
	profile, err := process.Get(ctx, http.DefaultClient, "http://"+o.pprof+"/debug/pprof/heap?gc=1&debug=1", "")
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(profile, []byte("# HeapAlloc = "))
	if !found {
		return 0, errors.New("the profile of pprof has no HeapAlloc")
	}
	bytesLive, _, _ := bytes.Cut(rest, []byte("\n"))
	return strconv.ParseFloat(string(bytesLive), 64)
}

// stop ends the operator. If it does not end well, or after a failure, the error includes the
// operator's log.
func (o *operator) stop(failed bool) error {
	if err := o.Stop(30 * time.Second); err != nil {
		return fmt.Errorf("%w\n%s", err, o.Log())
	}
	if failed {
		return fmt.Errorf("the operator printed:\n%s", o.Log())
	}
	return nil
}
