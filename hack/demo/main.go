// Command demo shows Proffer at work. It starts a control plane, creates nodes, pods and consumers,
// applies samples, and runs the operator. Then it shows what kubectl proffer offers --watch shows, with
// commands to try.
//
//	go run ./hack/demo                       on a control plane of its own
//	go run ./hack/demo --kubeconfig=FILE     on that cluster, where the operator only reads
//	... --kubeconfig=FILE --samples          the same, and applies the samples, to a cluster without policies
//
// It ends with Ctrl-C, when its terminal is closed, or when nobody reads its output any longer, and
// leaves nothing behind. If it is killed, the programs that it started are killed too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	var o demoOptions
	// A flag set of its own: a library defines --kubeconfig in the default one.
	flags := flag.NewFlagSet("demo", flag.ExitOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the cluster to use instead of a control plane of its own")
	flags.BoolVar(&o.samples, "samples", false,
		"apply the samples to the cluster of --kubeconfig: its consumers are given what they say")
	_ = flags.Parse(os.Args[1:]) // exits on an error
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "demo: %q is not a flag: write --kubeconfig=FILE, or nothing\n", flags.Arg(0))
		os.Exit(2)
	}
	log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set.
	klog.SetLogger(logr.Discard())
	// A failed write of output must not keep the demo from cleaning up.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, o, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demoOptions holds the flags of the command line.
type demoOptions struct {
	// kubeconfig is the file of an existing cluster, empty for a control plane of the demo's own.
	kubeconfig string
	// samples applies the samples to the existing cluster.
	samples bool
}

// run shows the demo until ctx ends. The table goes to out, progress to progress.
func run(ctx context.Context, o demoOptions, out, progress io.Writer) (err error) {
	var undo cleanup
	defer func() { err = errors.Join(err, undo.run(progress)) }()
	if err := show(ctx, o, &undo, out, progress); ctx.Err() == nil {
		return err
	}
	return nil // An error only reports the end of the demo.
}

func show(ctx context.Context, o demoOptions, undo *cleanup, out, progress io.Writer) error {
	cluster, err := prepare(ctx, o, undo, progress)
	if err != nil {
		return err
	}
	operator, err := startOperator(ctx, cluster, undo, progress)
	if err != nil {
		return err
	}
	if cluster.own {
		if err := cluster.addPlugin(ctx, operator.address, progress); err != nil {
			return err
		}
	}
	hints, err := cluster.hints()
	if err != nil {
		return err
	}
	fmt.Fprintln(progress)
	return cluster.watch(ctx, operator, hints, out, progress)
}

// cleanup holds what to do at the end, in reverse order.
type cleanup struct{ steps []func() error }

func (c *cleanup) add(step func() error) { c.steps = append(c.steps, step) }

func (c *cleanup) run(progress io.Writer) error {
	fmt.Fprintln(progress, "\ncleaning up")
	var all []error
	for _, step := range slices.Backward(c.steps) {
		all = append(all, step())
	}
	return errors.Join(all...)
}
