package main

import (
	"context"
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
)

// serve is the first argument of the processes that the benchmark makes of itself.
const serve = "serve"

func main() {
	if len(os.Args) > 1 && os.Args[1] == serve {
		exit(serveReads(os.Args[2:], os.Stdin, os.Stdout))
	}
	var o options
	var only string
	flag.BoolVar(&o.short, "short", false, "measure so little that it takes seconds and the figures say nothing")
	flag.StringVar(&o.operator, "operator", "", "the operator to measure, for push and slices; built from this module if it is not given")
	flag.StringVar(&only, "only", "", "measure only these, separated by commas: "+strings.Join(names(), ", "))
	flag.Parse()
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	if flag.NArg() > 0 {
		exit(fmt.Errorf("%q is no flag: see -help", flag.Arg(0)))
	}
	log.SetLogger(logr.Discard()) // what goes wrong comes back as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	_, err := run(ctx, o, os.Stdout, os.Stderr)
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

// options say what to measure.
type options struct {
	short    bool
	operator string
	// only are the parts to measure; empty means all.
	only []string
}

// part is one of the things measured.
type part struct {
	name    string
	measure func(context.Context, options, *report, io.Writer) error
}

var parts = []part{
	{"reads", measureReads},
	{"streams", measureStreams},
	{"evaluate", measureEvaluate},
	{"grants", measureGrants},
	{"events", measureEvents},
	{"table", measureTable},
	{"push", measurePush},
	{"slices", measureSlices},
}

func names() []string {
	var all []string
	for _, p := range parts {
		all = append(all, p.name)
	}
	return all
}

// run measures what the options say, prints it to out part by part, and returns all of it.
func run(ctx context.Context, o options, out, progress io.Writer) (*report, error) {
	for _, name := range o.only {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("%q is not measured: write some of %s", name, strings.Join(names(), ", "))
		}
	}
	fmt.Fprintf(out, "%s %s/%s, %d CPUs\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	all := &report{}
	for _, p := range parts {
		if len(o.only) > 0 && !slices.Contains(o.only, p.name) {
			continue
		}
		fmt.Fprintln(progress, "bench: measuring", p.name)
		first := len(all.sections)
		if err := p.measure(ctx, o, all, progress); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		for _, s := range all.sections[first:] {
			s.print(out)
		}
	}
	all.summary().print(out)
	return all, nil
}
