package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	proffer "proffer.dev/proffer/internal/operator"
	"proffer.dev/proffer/test/process"
)

// operator is a running operator, with the client of an admin.
type operator struct {
	process *process.Process
	admin   *http.Client
	// address is the address of the HTTPS server.
	address, token string
	// log is the file of its log.
	log string
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
	o := &operator{admin: newAdmin(), token: c.token, log: filepath.Join(c.work, "operator.log")}
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
	o.process, o.address = p, p.Address("metrics")
	undo.add(func() error {
		o.admin.CloseIdleConnections()
		select {
		case <-p.Exited: // The error has shown its log.
			return nil
		default:
			return p.Stop(30 * time.Second)
		}
	})
	return o, c.tether.Hold("operator", command.Process)
}
