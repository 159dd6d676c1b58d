package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// started is what a process cost until it knew the cluster, and afterwards.
type started struct {
	// wall is the time from the start of the process until it was ready, cpu its CPU time until
	// then, and server the API server's CPU time meanwhile, all in nanoseconds.
	wall, cpu, server float64
	// streams and lists count how the API server sent the process its nodes and pods; see
	// serverFigures.
	streams, lists float64
	// peak is the highest RSS. settled is the RSS some time after the process was ready, steady the
	// RSS after a collection, and anonymous the part of steady that is not mapped from the
	// program's file. live is the heap. All are in bytes.
	peak, settled, steady, anonymous, live float64
}

// candidate is a program that learns the state of a cluster.
type candidate struct {
	name  string
	start func(context.Context) (running, error)
}

// The candidates, in the order of the table.
const (
	startOperator = iota
	startReflector
	startStripped
	startCache
	startList
	candidates
)

func (c *cluster) candidates() [candidates]candidate {
	following := func(way string) func(context.Context) (running, error) {
		return func(ctx context.Context) (running, error) { return c.startFollower(ctx, way) }
	}
	return [candidates]candidate{
		startOperator:  {"the operator", func(context.Context) (running, error) { return c.startOperator(batchPeriod) }},
		startReflector: {"a bare reflector, an account of its own", following(followReflector)},
		startStripped:  {"the same, stripped objects until all have come", following(followStripped)},
		startCache:     {"controller-runtime's cache, stripped objects", following(followCache)},
		startList:      {"lists read and thrown away", following(followList)},
	}
}

// measureStartup measures what a process needs from its start until it knows the whole cluster, and
// what it holds from then on.
func measureStartup(ctx context.Context, o options, r *report, progress io.Writer) error {
	n, quiet := 5, 10*time.Second
	if o.short {
		n, quiet = 1, 0
	}
	if err := o.filled.start(ctx, o, progress); err != nil {
		return err
	}
	c := o.filled.cluster
	all := c.candidates()
	// What the programs cost on an almost empty cluster.
	base := make([]started, 2)
	nothing := func(ctx context.Context) (running, error) { return c.startFollower(ctx, followNothing) }
	for i, empty := range []candidate{all[startOperator], {"nothing", nothing}} {
		var err error
		if base[i], err = c.measureStart(ctx, empty, quiet); err != nil {
			return fmt.Errorf("%s, an empty cluster: %w", empty.name, err)
		}
	}
	if err := o.filled.fill(ctx, o, progress); err != nil {
		return err
	}
	costs := make([][]started, candidates)
	for round := range n {
		for k := range all {
			i := (round + k) % len(all)
			cost, err := c.measureStart(ctx, all[i], quiet)
			if err != nil {
				return fmt.Errorf("%s: %w", all[i].name, err)
			}
			fmt.Fprintf(progress, "bench: %s: %s, %s CPU, peak %s, then %s\n",
				all[i].name, span(cost.wall), span(cost.cpu), memory(cost.peak), memory(cost.steady))
			costs[i] = append(costs[i], cost)
		}
	}
	t := r.section(fmt.Sprintf("To know %s nodes and %s pods, from the start of a process, %d rounds",
		thousands(o.population.Nodes), thousands(o.population.Pods), n),
		"what", "streams and lists of nodes and pods", "ready after", "CPU", "CPU of the API server", "peak RSS",
		fmt.Sprintf("RSS %v later", quiet), "RSS once collected", "of it not the program's file", "live heap")
	for i, a := range all {
		t.starts(a.name, costs[i])
	}
	t.starts("the operator, an empty cluster", base[:1])
	t.starts("this program, nothing to do", base[1:])
	ours, bare := costs[startOperator], costs[startReflector]
	for _, figure := range startFigures {
		r.ratio("start-up, "+figure.name, "a bare reflector", ratioByRound(ours, bare, figure.of))
	}
	beyond := func(base started) func(started) float64 {
		return func(s started) float64 { return s.anonymous - base.anonymous }
	}
	r.ratio("start-up, steady memory beyond an empty cluster's", "a bare reflector's beyond nothing's",
		quotients(each(ours, beyond(base[0])), each(bare, beyond(base[1]))))
	r.ratio("start-up, peak RSS", "a reflector that keeps stripped objects first",
		ratioByRound(ours, costs[startStripped], func(s started) float64 { return s.peak }))
	r.ratio("start-up, CPU", "lists thrown away",
		ratioByRound(ours, costs[startList], func(s started) float64 { return s.cpu }))
	return nil
}

var startFigures = []struct {
	name string
	of   func(started) float64
}{
	{"time until ready", func(s started) float64 { return s.wall }},
	{"CPU", func(s started) float64 { return s.cpu }},
	{"peak RSS", func(s started) float64 { return s.peak }},
	{"steady RSS", func(s started) float64 { return s.steady }},
	{"live heap", func(s started) float64 { return s.live }},
}

// starts adds a row with the medians.
func (s *section) starts(name string, all []started) {
	middle := func(figure func(started) float64) float64 { return median(all, figure) }
	s.row(name,
		fmt.Sprintf("%.0f and %.0f", middle(func(s started) float64 { return s.streams }),
			middle(func(s started) float64 { return s.lists })),
		span(middle(func(s started) float64 { return s.wall })),
		span(middle(func(s started) float64 { return s.cpu })),
		span(middle(func(s started) float64 { return s.server })),
		memory(middle(func(s started) float64 { return s.peak })),
		memory(middle(func(s started) float64 { return s.settled })),
		memory(middle(func(s started) float64 { return s.steady })),
		memory(middle(func(s started) float64 { return s.anonymous })),
		memory(middle(func(s started) float64 { return s.live })))
}

// measureStart starts a process, waits until it knows the cluster and then for the quiet time
// twice, and ends it.
func (c *cluster) measureStart(ctx context.Context, a candidate, quiet time.Duration) (s started, err error) {
	before, err := c.serverFigures(ctx)
	if err != nil {
		return s, err
	}
	start := time.Now()
	process, err := a.start(ctx)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, process.stop(err != nil)) }()
	if err := process.ready(ctx); err != nil {
		return s, err
	}
	s.wall = float64(time.Since(start))
	used, err := cpuOf(process.pid())
	if err != nil {
		return s, err
	}
	after, err := c.serverFigures(ctx)
	if err != nil {
		return s, err
	}
	s.cpu, s.server = float64(used), after.cpu-before.cpu
	s.streams, s.lists = after.streams-before.streams, after.lists-before.lists
	settled, err := residentAfter(ctx, process.pid(), quiet)
	if err != nil {
		return s, err
	}
	// Go collects garbage at least every two minutes, and returns unused memory to the system after
	// a while.
	if s.live, err = process.heap(ctx); err != nil {
		return s, err
	}
	steady, err := residentAfter(ctx, process.pid(), quiet)
	s.peak, s.settled, s.steady, s.anonymous = settled.peak, settled.now, steady.now, steady.anonymous
	return s, err
}

func residentAfter(ctx context.Context, pid int, quiet time.Duration) (resident, error) {
	if err := pause(ctx, quiet); err != nil {
		return resident{}, err
	}
	return residentOf(pid)
}
