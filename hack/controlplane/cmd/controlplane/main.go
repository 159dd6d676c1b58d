// Command controlplane prints the directory with kube-apiserver, etcd and kubectl, and gets the
// programs first if this machine has none:
//
//	export KUBEBUILDER_ASSETS="$(go run ./hack/controlplane/cmd/controlplane)"
//
// With the argument run it runs a control plane, for programs that cannot link this module. It
// prints the directory once the API is served, and stops at the end of its input or at SIGINT or
// SIGTERM:
//
//	controlplane run --kubeconfig FILE [--crds DIR]... [--client-ca FILE]
//
// With the argument liqo it prints the directory with Liqo's programs and kube-controller-manager,
// and builds them first if this machine has none. With the argument old it prints a directory with
// the kube-apiserver of the oldest Kubernetes that Proffer installs on. With the argument prometheus
// it prints the directory with prometheus and promtool.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/hack/controlplane"
)

func main() {
	log.SetLogger(logr.Discard()) // controller-runtime, which envtest uses, warns if no logger is set.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called.
	}
}

func command(ctx context.Context, args []string) error {
	find := controlplane.Assets
	switch {
	case len(args) == 0:
	case args[0] == "run":
		return run(ctx, args[1:])
	case len(args) == 1 && args[0] == "liqo":
		find = controlplane.Liqo
	case len(args) == 1 && args[0] == "old":
		find = controlplane.Old
	case len(args) == 1 && args[0] == "prometheus":
		find = controlplane.Prometheus
	default:
		return fmt.Errorf("unknown argument %q: write run, liqo, old, prometheus or nothing", args[0])
	}
	dir, err := find(ctx, os.Stderr)
	if err != nil {
		return err
	}
	fmt.Println(dir)
	return nil
}
