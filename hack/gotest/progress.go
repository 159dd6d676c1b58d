package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"gotest.tools/gotestsum/testjson"
)

// progress prints what happens. All modules share it.
type progress struct {
	mu      sync.Mutex
	out     io.Writer
	runs    []*moduleRun
	began   time.Time
	printed time.Time
	// places maps import paths to names of packages. running maps the packages that run to their starts.
	places  map[string]string
	running map[string]time.Time
	order   []string

	done, passed, failed int
	stop                 chan struct{}
	stopped              sync.WaitGroup
}

func newProgress(out io.Writer, runs []*moduleRun, now time.Time) *progress {
	p := &progress{
		out: out, runs: runs, began: now, printed: now, places: map[string]string{}, running: map[string]time.Time{},
		stop: make(chan struct{}),
	}
	for _, r := range runs {
		for _, t := range r.packages {
			p.places[t.ImportPath] = t.Place
		}
	}
	return p
}

// begin prints what will be done, and how long it takes.
func (p *progress) begin(estimate, flags string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "tests of %d packages, in %d runs of go test, %d at a time:\n", len(p.places), len(p.runs),
		min(lanes, len(p.runs)))
	for _, r := range p.runs {
		fmt.Fprintf(p.out, "  %3d  %s\n", len(r.packages), r.name())
		if r.left > 0 {
			fmt.Fprintf(p.out, "  %3d  are left to make test: they need a control plane or a database\n", r.left)
		}
	}
	fmt.Fprintf(p.out, "flags of go test: %s\n", flags)
	if estimate != "" {
		fmt.Fprintln(p.out, estimate)
	}
	fmt.Fprintln(p.out)
	p.stopped.Go(p.everyMinute)
}

// everyMinute prints what runs if nothing else was printed for a minute.
func (p *progress) everyMinute() {
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case now := <-ticker.C:
			p.mu.Lock()
			if now.Sub(p.printed) >= time.Minute {
				p.summary(now)
			}
			p.mu.Unlock()
		}
	}
}

// end ends the output.
func (p *progress) end() {
	close(p.stop)
	p.stopped.Wait()
}

func (p *progress) elapsed() time.Duration { return time.Since(p.began) }

// says prints a line about a run.
func (p *progress) says(word string, r *moduleRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(word, r.name())
}

func (p *progress) started(importPath string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[importPath] = time.Now()
	p.order = append(p.order, importPath)
}

// ended counts a test or package that has ended.
func (p *progress) ended(r *moduleRun, event testjson.TestEvent, execution *testjson.Execution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case event.PackageEvent():
		delete(p.running, event.Package)
		p.done++
		word := "ok"
		if event.Action == testjson.ActionFail {
			word = "FAIL"
		}
		tests := 0
		if pkg := execution.Package(event.Package); pkg != nil {
			tests = pkg.Total
		}
		p.line(word, fmt.Sprintf("%-36s %5.1f s %4d tests; %d/%d, %d passed, %d failed", p.place(r, event.Package),
			event.Elapsed, tests, p.done, len(p.places), p.passed, p.failed))
	case event.Action == testjson.ActionPass:
		p.passed++
	case event.Action == testjson.ActionFail:
		p.failed++
		p.line("FAIL", p.place(r, event.Package)+" "+event.Test)
	}
}

func (p *progress) place(r *moduleRun, importPath string) string {
	if place := p.places[importPath]; place != "" {
		return place
	}
	return r.module
}

// line prints a line that begins with the time since the start.
func (p *progress) line(word, text string) {
	now := time.Now()
	p.printed = now
	since := now.Sub(p.began).Round(time.Second)
	fmt.Fprintf(p.out, "%3d:%02d %-5s %s\n", int(since.Minutes()), int(since.Seconds())%60, word, text)
}

func (p *progress) summary(now time.Time) {
	p.line("", fmt.Sprintf("%d of %d packages, %d tests passed, %d failed; running:", p.done, len(p.places),
		p.passed, p.failed))
	for _, importPath := range p.order {
		if since, running := p.running[importPath]; running {
			fmt.Fprintf(p.out, "             %-36s %s\n", p.places[importPath], minutes(now.Sub(since)))
		}
	}
}

func minutes(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}
