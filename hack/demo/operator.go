package main

import (
	"context"
	"crypto/tls"
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

	proffer "proffer.dev/proffer/internal/operator"
	wire "proffer.dev/proffer/proto/resourcereader"
	"proffer.dev/proffer/test/process"
)

// operator is a running operator, with the clients of Liqo and of an admin.
type operator struct {
	liqo  wire.ResourceReaderClient
	admin *http.Client
	// address is the address of the HTTPS server, and url the same as a URL.
	address, url string
	token        string
	exited       <-chan struct{}
	log          string
}

// startOperator builds the operator and runs it on the cluster, on free ports of the loopback
// device.
func startOperator(ctx context.Context, c *cluster, undo *cleanup, progress io.Writer) (*operator, error) {
	fmt.Fprintln(progress, "building and starting the operator")
	program, err := process.Build(ctx, c.work)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.operatorKubeconfig()
	if err != nil {
		return nil, err
	}
	if c.leaseNamespace == "" {
		// The operator would create it, but then the demo would leave it behind.
		record := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: proffer.OfferedConfigMap},
		}
		if err := client.IgnoreAlreadyExists(c.client.Create(ctx, record)); err != nil {
			return nil, fmt.Errorf("creating the record of offers: %w", err)
		}
	}
	args := []string{
		"--kubeconfig=" + kubeconfig, "--grpc-bind-address=", "--metrics-bind-address=",
		"--health-probe-bind-address=0",
	}
	if c.leaseNamespace != "" {
		args = append(args, "--leader-elect", "--leader-election-namespace="+c.leaseNamespace)
	}
	o := &operator{token: c.token, log: filepath.Join(c.work, "operator.log")}
	log, err := os.Create(o.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // The operator has its own.
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = log, log
	// A process group of its own: Ctrl-C reaches only the demo, which then ends the operator.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p, err := process.Start(command)
	if err != nil {
		return nil, err
	}
	o.exited, o.address = p.Exited, p.Address("metrics")
	o.url = "https://" + o.address
	undo.add(func() error { return end(p) })
	if err := c.tether.Hold("operator", command.Process); err != nil {
		return nil, err
	}

	connection, err := grpc.NewClient(p.Address("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	undo.add(connection.Close)
	o.liqo = wire.NewResourceReaderClient(connection)
	// The operator signs its own certificate, and serves on the loopback device of this machine.
	unverified := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see above
	o.admin = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: unverified}}
	undo.add(func() error { o.admin.CloseIdleConnections(); return nil })
	// This server listens later than gRPC: it generates a key first. If the operator has ended, the
	// follower says so, with its log.
	err = p.Until(ctx,
		func(ctx context.Context) error { return listens(ctx, p.Address("metrics")) })
	if p.Alive() != nil {
		return o, nil
	}
	return o, err
}

func listens(ctx context.Context, address string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return c.Close()
}

// end ends the operator, unless it has ended already: the follower has shown its log then.
func end(p *process.Process) error {
	select {
	case <-p.Exited:
		return nil
	default:
		return p.Stop(30 * time.Second)
	}
}
