package lab

import (
	"fmt"
	"os"
)

// WriteCommand writes an executable file that is kubectl for the cluster.
func (c *Cluster) WriteCommand(file string) error {
	script := fmt.Sprintf("#!/bin/sh\nKUBECONFIG='%s' KUBECACHEDIR='%s' exec '%s' \"$@\"\n",
		c.path("kubeconfig"), c.path("kubectl-cache"), c.kubectl)
	return os.WriteFile(file, []byte(script), 0o700)
}
