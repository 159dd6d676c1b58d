package lab

import (
	"fmt"
	"os"
	"path/filepath"
)

// WriteCommand writes an executable file that is kubectl for the cluster, with the plugin.
func (c *Cluster) WriteCommand(file string) error {
	script := fmt.Sprintf("#!/bin/sh\nexport KUBECONFIG='%s' KUBECACHEDIR='%s' PATH='%s':\"$PATH\"\nexec '%s' \"$@\"\n",
		c.path("kubeconfig"), c.path("kubectl-cache"), filepath.Dir(c.programs.Plugin), c.kubectl)
	return os.WriteFile(file, []byte(script), 0o700)
}
