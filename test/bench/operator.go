package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/hack/controlplane"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test/bench/population"
)

// cluster is a control plane, and the operator's program to run against it.
type cluster struct {
	plane      *controlplane.Cluster
	client     client.Client
	work       string
	kubeconfig string
	operator   string
	// token is the reader's, once it is admitted.
	token string
}

// startCluster starts a control plane with our CRD, and builds the operator unless it is given.
func startCluster(ctx context.Context, operator string, progress io.Writer) (c *cluster, err error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	c = &cluster{operator: operator}
	if c.work, err = os.MkdirTemp("", "proffer-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	if c.operator == "" {
		c.operator = filepath.Join(c.work, "proffer")
		if err := buildOperator(ctx, root, c.operator); err != nil {
			return c, err
		}
	}
	if c.plane, err = controlplane.Start(ctx, controlplane.Options{
		CRDDirs:  []string{filepath.Join(root, "config", "crd", "bases")},
		Progress: progress,
		APIServerFlags: map[string][]string{
			// Nodes are not tainted when they are new, since nobody would take the taint away.
			"disable-admission-plugins": {"TaintNodesByCondition"},
			// A million events would fill the space of etcd before it is made free every 5 minutes.
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

// heldCluster returns the cluster of a kubeconfig, which another process keeps.
func heldCluster(ctx context.Context, operator, kubeconfig string) (c *cluster, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	c = &cluster{operator: operator, kubeconfig: kubeconfig, plane: &controlplane.Cluster{Config: config}}
	if c.client, err = newClient(c); err != nil {
		return nil, err
	}
	if c.work, err = os.MkdirTemp("", "proffer-bench-"); err != nil || c.operator != "" {
		return c, err
	}
	root, err := moduleRoot()
	if err != nil {
		return c, err
	}
	c.operator = filepath.Join(c.work, "proffer")
	return c, buildOperator(ctx, root, c.operator)
}

func buildOperator(ctx context.Context, root, program string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/proffer")
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the operator: %w\n%s", err, text)
	}
	return nil
}

func (c *cluster) stop() error {
	var err error
	if c.plane != nil {
		err = c.plane.Stop()
	}
	return errors.Join(err, os.RemoveAll(c.work))
}

// moduleRoot returns the directory of go.mod, which is this one or one above it.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("no go.mod here or above: run this inside the module")
		}
		dir = filepath.Dir(dir)
	}
}

// operator is a running operator, with the addresses at which it serves.
type operator struct {
	address, metrics, probes, pprof string
	process                         *exec.Cmd
	end                             context.CancelFunc
	output                          bytes.Buffer
}

func (c *cluster) startOperator(ctx context.Context, period time.Duration) (*operator, error) {
	o := &operator{}
	for _, address := range []*string{&o.address, &o.metrics, &o.probes, &o.pprof} {
		var err error
		if *address, err = freeAddress(ctx); err != nil {
			return nil, err
		}
	}
	ctx, o.end = context.WithCancel(ctx)
	o.process = exec.CommandContext(ctx, c.operator, "--kubeconfig="+c.kubeconfig, "--grpc-bind-address="+o.address,
		"--metrics-bind-address="+o.metrics, "--health-probe-bind-address="+o.probes, "--pprof-bind-address="+o.pprof,
		"--batch-period="+period.String())
	o.process.Stdout, o.process.Stderr = &o.output, &o.output
	o.process.Cancel = func() error { return o.process.Process.Signal(syscall.SIGTERM) }
	o.process.WaitDelay = 30 * time.Second
	if err := o.process.Start(); err != nil {
		o.end()
		return nil, fmt.Errorf("starting the operator: %w", err)
	}
	return o, nil
}

func (o *operator) pid() int { return o.process.Process.Pid }

// ready waits for an answer to a read, which there is once the operator is ready. To ask for its readiness again and again would cost it more: it
// writes a line each time that it is not.
func (o *operator) ready(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// It does not listen from the start.
	soon := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond}, MinConnectTimeout: patience}
	conn, err := dial(o.address, grpc.WithConnectParams(soon))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	known := &wire.ClusterIdentity{ClusterID: population.Consumer(0)}
	if _, err := wire.NewResourceReaderClient(conn).ReadResources(ctx, known, grpc.WaitForReady(true)); err != nil {
		return fmt.Errorf("waiting for the operator to be ready: %w", err)
	}
	return until(ctx, time.Millisecond, func() error {
		_, err := get(ctx, http.DefaultClient, "http://"+o.probes+"/readyz")
		return err
	})
}

// until tries once in a while until it goes well, or patience ends. Its error is then the last one.
func until(ctx context.Context, every time.Duration, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// pause waits for so long, or until the context ends, of which it returns the cause.
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

// heap reads what pprof says of the heap after a collection, at the end of its profile.
func (o *operator) heap(ctx context.Context) (float64, error) {
	profile, err := get(ctx, http.DefaultClient, "http://"+o.pprof+"/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(profile, []byte("# HeapAlloc = "))
	if !found {
		return 0, errors.New("pprof says nothing of HeapAlloc")
	}
	bytesLive, _, _ := bytes.Cut(rest, []byte("\n"))
	return strconv.ParseFloat(string(bytesLive), 64)
}

// stop asks the operator to end and waits until it has. Its error holds what the operator printed if something has failed already, or if
// it did not end well.
func (o *operator) stop(failed bool) error {
	o.end()
	err := o.process.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil // it ended well once it was asked to
	}
	if err != nil {
		return fmt.Errorf("the operator: %w\n%s", err, o.output.Bytes())
	}
	if failed {
		return fmt.Errorf("the operator printed:\n%s", o.output.Bytes())
	}
	return nil
}

// get returns what is at an address.
func get(ctx context.Context, web *http.Client, url string) (body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := web.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return body, err
}

// freeAddress returns an address of the loopback device at which nobody listens.
func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
