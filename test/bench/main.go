package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/test/bench/population"
)

// serve is the first argument of the server processes, which run this program too.
const serve = "serve"

// runAsChild runs a server or a follower if the arguments ask for one, and then exits. The
// benchmark starts these processes from its own program. Call it first.
func runAsChild() {
	log.SetLogger(logr.Discard()) // errors are returned
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case serve:
		exit(serveReads(os.Args[2:], os.Stdin, os.Stdout))
	case follow:
		exit(followCluster(os.Args[2:], os.Stdin, os.Stdout))
	}
}

func main() {
	runAsChild()
	var o options
	var only string
	flag.BoolVar(&o.short, "short", false, "measure so little that it takes seconds; the figures mean nothing")
	flag.StringVar(&o.operator, "operator", "",
		"path of the operator, for push, startup, idle, slices and soak; built if it is empty")
	flag.StringVar(&only, "only", "", "measure only these, separated by commas: "+strings.Join(names(), ", "))
	flag.IntVar(&o.population.Nodes, "nodes", 5_000, "number of nodes, for startup and idle")
	flag.IntVar(&o.population.Pods, "pods", 50_000, "number of pods, for startup and idle")
	var held bool
	flag.BoolVar(&held, "hold", false,
		"measure nothing: fill a cluster, print the path of its kubeconfig, and keep it until an interrupt")
	flag.StringVar(&o.kubeconfig, "held", "",
		"kubeconfig of the cluster that another process keeps with -hold, for startup and idle")
	flag.Float64Var(&o.scale, "scale", 1, "share of an hour's worth of churn, for soak")
	flag.Parse()
	o.population.Consumers = 100
	if o.short {
		o.population = tiny
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	if flag.NArg() > 0 {
		exit(fmt.Errorf("unexpected argument %q: see -help", flag.Arg(0)))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if held {
		err = hold(ctx, o, os.Stdout, os.Stderr)
	} else {
		_, err = run(ctx, o, os.Stdout, os.Stderr)
	}
	stop()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// options select what is measured.
type options struct {
	short    bool
	operator string
	// only lists the parts to measure; empty means all.
	only []string
	// population is the size of the cluster in filled, which the parts share.
	population population.Size
	filled     *filled
	// kubeconfig is the path of a held cluster's kubeconfig, empty if there is none.
	kubeconfig string
	// scale is the share of the full churn that soak makes.
	scale float64
}

// tiny is the population of a run that only checks that everything works.
var tiny = population.Size{Nodes: 5, Pods: 50, Consumers: 3}

// part is one measurement.
type part struct {
	name    string
	measure func(context.Context, options, *report, io.Writer) error
	// onRequest is set for a part that runs only if -only names it, because it takes long.
	onRequest bool
}

var parts = []part{
	{name: "reads", measure: measureReads},
	{name: "streams", measure: measureStreams},
	{name: "push", measure: measurePush},
	{name: "startup", measure: measureStartup},
	{name: "idle", measure: measureIdle},
	{name: "slices", measure: measureSlices},
	{name: "soak", measure: measureSoak, onRequest: true},
}

func names() []string {
	var all []string
	for _, p := range parts {
		all = append(all, p.name)
	}
	return all
}

// run measures the parts that the options select, prints each to out, and returns all figures.
func run(ctx context.Context, o options, out, progress io.Writer) (all *report, err error) {
	for _, name := range o.only {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("unknown measurement %q: use some of %s", name, strings.Join(names(), ", "))
		}
	}
	fmt.Fprintf(out, "%s %s/%s, %d CPUs\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	o.filled = &filled{}
	defer func() { err = errors.Join(err, o.filled.stop()) }()
	all = &report{}
	for _, p := range parts {
		if !slices.Contains(o.only, p.name) && (p.onRequest || len(o.only) > 0) {
			continue
		}
		fmt.Fprintln(progress, "bench: measuring", p.name)
		first := len(all.sections)
		err := p.measure(ctx, o, all, progress)
		for _, s := range all.sections[first:] {
			s.print(out) // also after a failure: the part may have run for an hour
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	all.summary().print(out)
	return all, nil
}
