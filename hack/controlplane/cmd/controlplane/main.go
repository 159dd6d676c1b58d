// Command controlplane prints the directory that holds kube-apiserver, etcd and
// kubectl, and gets them first if this machine has none:
//
//	export KUBEBUILDER_ASSETS="$(go run ./hack/controlplane/cmd/controlplane)"
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"proffer.dev/proffer/hack/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := controlplane.Assets(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called.
	}
	fmt.Println(dir)
}
