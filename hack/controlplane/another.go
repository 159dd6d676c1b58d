package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/process"
)

// AddAPIServer starts one more kube-apiserver on the same etcd, with the flags and certificates of
// the first, at a port of its own. It returns the administrator's configuration for it once the
// server is ready. The server ends with the cluster. The methods for outages affect only the first
// server.
func (c *Cluster) AddAPIServer(ctx context.Context) (*rest.Config, error) {
	text, err := os.ReadFile(c.flagsFile())
	if err != nil {
		return nil, fmt.Errorf("find the flags of kube-apiserver: %w", err)
	}
	addresses, err := process.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addresses[0])
	if err != nil {
		return nil, err
	}
	flags := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i, flag := range flags {
		if strings.HasPrefix(flag, "--secure-port=") {
			flags[i] = "--secure-port=" + port
		}
	}
	// The server outlives the context, as the first one does.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(c.Assets, "kube-apiserver"), flags...)
	cmd.Stdout, cmd.Stderr = c.env.ControlPlane.APIServer.Out, c.env.ControlPlane.APIServer.Err
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start another kube-apiserver: %w", err)
	}
	c.others = append(c.others, cmd)
	if err := c.tether.Hold(fmt.Sprintf("kube-apiserver-%d", len(c.others)), cmd.Process); err != nil {
		return nil, err
	}

	config := rest.CopyConfig(c.Config)
	config.Host = addresses[0]
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	err = test.Until(starting, func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	if err != nil {
		return nil, fmt.Errorf("wait for another kube-apiserver: %w", err)
	}
	return config, nil
}

// killOthers kills the servers that AddAPIServer started.
func (c *Cluster) killOthers() error {
	var errs []error
	for _, cmd := range c.others {
		errs = append(errs, cmd.Process.Kill())
		_ = cmd.Wait() // The error reports that the process was killed.
	}
	c.others = nil
	return errors.Join(errs...)
}
