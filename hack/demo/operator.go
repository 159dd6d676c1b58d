package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	proffer "proffer.dev/proffer/operator"
	wire "proffer.dev/proffer/proto/resourcereader"
)

// operator is a running operator, as a Liqo and as an admin see it.
type operator struct {
	liqo   wire.ResourceReaderClient
	admin  *http.Client
	url    string
	token  string
	exited <-chan struct{}
	log    string
}

// startOperator builds the operator and runs it against the cluster, on free ports of the loopback device.
func startOperator(ctx context.Context, c *cluster, undo *cleanup, progress io.Writer) (*operator, error) {
	fmt.Fprintln(progress, "building and starting the operator")
	binary := filepath.Join(c.work, "proffer")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "./cmd/proffer")
	build.Dir = c.root
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the operator: %w\n%s", err, text)
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	o := &operator{url: "https://" + ports[1], token: c.token, log: filepath.Join(c.work, "operator.log")}
	log, err := os.Create(o.log)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.operatorKubeconfig()
	if err != nil {
		return nil, err
	}
	if c.leaseNamespace == "" {
		// The operator would make it, and it has to go with the demo.
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: proffer.OfferedConfigMap}}
		if err := client.IgnoreAlreadyExists(c.client.Create(ctx, record)); err != nil {
			return nil, fmt.Errorf("making the record of what is offered: %w", err)
		}
	}
	args := []string{"--kubeconfig=" + kubeconfig, "--grpc-bind-address=" + ports[0], "--metrics-bind-address=" + ports[1], "--health-probe-bind-address=0"}
	if c.leaseNamespace != "" {
		args = append(args, "--leader-elect", "--leader-election-namespace="+c.leaseNamespace)
	}
	process := exec.Command(binary, args...)
	process.Stdout, process.Stderr = log, log
	// A group of its own: Ctrl-C is for the demo, which ends the operator in its turn.
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("starting the operator: %w", errors.Join(err, log.Close()))
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = process.Wait()
		_ = log.Close()
	}()
	o.exited = exited
	undo.add(func() error { return end(process.Process, exited) })
	if err := c.tether.Hold("operator", process.Process); err != nil {
		return nil, err
	}

	connection, err := grpc.NewClient(ports[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	undo.add(connection.Close)
	o.liqo = wire.NewResourceReaderClient(connection)
	// The certificate was made by the operator a moment ago, for this machine's own loopback device.
	o.admin = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // see above
	undo.add(func() error { o.admin.CloseIdleConnections(); return nil })
	return o, nil
}

// end asks a process to end, and makes it after a while.
func end(process *os.Process, exited <-chan struct{}) error {
	if err := process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-exited:
		return nil
	case <-time.After(30 * time.Second):
	}
	err := process.Kill()
	<-exited
	return errors.Join(err, errors.New("the operator did not end in 30 s"))
}

// freePorts returns addresses of the loopback device at which nobody listens.
func freePorts(n int) ([]string, error) {
	var addresses []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // all at the end, so that they differ
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
