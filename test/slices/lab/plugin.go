package lab

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Proffer runs kubectl proffer as the cluster's admin. It returns what the plugin printed, and its
// exit status.
func (c *Cluster) Proffer(ctx context.Context, args ...string) (stdout, stderr string, status int, err error) {
	var out, errOut strings.Builder
	cmd := exec.CommandContext(ctx, c.lab.programs.Plugin, append(args, "--kubeconfig="+c.path("kubeconfig"))...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	if ended := (&exec.ExitError{}); errors.As(err, &ended) && ended.Exited() {
		status, err = ended.ExitCode(), nil
	}
	return out.String(), errOut.String(), status, err
}

// Source returns a file of the source of Liqo.
func (c *Cluster) Source(path string) (string, error) {
	text, err := os.ReadFile(filepath.Join(c.lab.programs.LiqoModule, path))
	return string(text), err
}

// Manifest returns the path of a file in the directory config, and whether there is one.
func (c *Cluster) Manifest(path string) (file string, found bool) {
	file = filepath.Join(c.lab.programs.Checkout, "config", path)
	_, err := os.Stat(file)
	return file, err == nil
}
