// Command gotest runs the tests of several modules, several at a time, and says where the time goes:
//
//	gotest [-unit] [-record DIR] MODULE... -- FLAGS OF GO TEST
//
// A module is a directory with a go.mod file, relative to the working directory. The packages that plain
// lists run without the race detector, apart from the others. One line is printed for each package that ends, and
// the packages that run if none ends for a minute. At the end come the time and the processor time of
// each package, the slowest tests, and each failure again with all its output. DIR gets the names of all
// tests and the events of go test.
//
// gotest exits with 1 if a test failed, or if a module ran no test: a pattern that matches nothing
// must not look like success.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// lanes is the number of runs of go test at the same time, each of as many packages as there are processors. Tests that
// run Liqo, start programs and wait for Leases leave the processors to the others. With three lanes on two processors
// what they wait for came too late; with one package in each of two lanes the processors were idle half of the time.
const lanes = 2

var errTestsFailed = errors.New("tests failed")

func main() {
	// go test starts this program with each test binary: see measure.
	if os.Getenv(usageEnv) != "" {
		os.Exit(measure(os.Args[1:]))
	}
	// go test ends by itself on Ctrl-C: the terminal sends it to the whole process group.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

// settings are the arguments of the program.
type settings struct {
	unit    bool
	record  string
	modules []string
	flags   []string
}

func parse(args []string) (settings, error) {
	var s settings
	set := flag.NewFlagSet("gotest", flag.ContinueOnError)
	set.BoolVar(&s.unit, "unit", false, "only packages whose tests need neither a control plane nor a database")
	set.StringVar(&s.record, "record", "", "`directory` for names, times and events of the tests")
	separator := slices.Index(args, "--")
	if separator < 0 {
		return s, errors.New("write gotest MODULE... -- FLAGS OF GO TEST")
	}
	if err := set.Parse(args[:separator]); err != nil {
		return s, err
	}
	s.modules, s.flags = set.Args(), args[separator+1:]
	if len(s.modules) == 0 {
		return s, errors.New("no module is named: write gotest MODULE... -- FLAGS OF GO TEST")
	}
	return s, nil
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	// Order hides nothing. A later flag wins, so that an order can be repeated.
	s.flags = append([]string{fmt.Sprintf("-shuffle=%d", rand.Uint32N(1_000_000))}, s.flags...)
	runs, err := plan(ctx, s)
	if err != nil {
		return err
	}
	record, err := openRecord(s.record)
	if err != nil {
		return err
	}
	p := newProgress(os.Stdout, runs, time.Now())
	p.begin(record.estimate(), strings.Join(s.flags, " "))
	// With an empty cache that takes as long as the tests, which would wait for processors and fail.
	for _, r := range runs {
		r.compile(ctx, p)
	}
	if err := inLanes(ctx, runs, func(r *moduleRun) { r.test(ctx, record, p) }); err != nil {
		return err
	}
	p.end()
	requireTests(runs)
	return errors.Join(record.write(runs, s.flags, p.elapsed()), report(os.Stdout, runs))
}
