package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gotest.tools/gotestsum/testjson"
)

const (
	// shownTests is the number of slowest tests in the report.
	shownTests = 20
	// shownFrom is the least time of a package that has a line of its own in the report.
	shownFrom = 3 * time.Second
)

// tests returns all tests and subtests that ended.
func (r *moduleRun) tests() []testjson.TestCase {
	var out []testjson.TestCase
	for _, name := range r.execution.Packages() {
		out = append(out, r.execution.Package(name).TestCases()...)
	}
	return out
}

// counts returns the numbers of tests. A package that does not build, or whose TestMain fails, is one
// failed test.
func counts(r *moduleRun) (passed, failed, skipped int) {
	for _, name := range r.execution.Packages() {
		passed += len(r.execution.Package(name).Passed)
	}
	return passed, len(r.execution.Failed()), len(r.execution.Skipped())
}

// report prints where the time went, and what failed. It returns an error if something failed.
func report(out io.Writer, runs []*moduleRun) error {
	fmt.Fprintln(out)
	printPackages(out, runs)
	printSlowest(out, runs)
	printSkipped(out, runs)
	var failedModules []string
	var passed, failed, skipped int
	for _, r := range runs {
		if printFailures(out, r); r.err != nil && !slices.Contains(failedModules, r.module) {
			failedModules = append(failedModules, r.module)
		}
		p, f, s := counts(r)
		passed, failed, skipped = passed+p, failed+f, skipped+s
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if len(failedModules) > 0 {
		return fmt.Errorf("%w in: %s", errTestsFailed, strings.Join(failedModules, " "))
	}
	return nil
}

// printPackages prints the time of each package, and of its test binary with all programs that it has
// started. Compiling is in neither.
func printPackages(out io.Writer, runs []*moduleRun) {
	type row struct {
		place              string
		elapsed, processor time.Duration
		tests              int
	}
	var rows []row
	var rest, sum row
	for _, r := range runs {
		for _, t := range r.packages {
			pkg := r.execution.Package(t.ImportPath)
			if pkg == nil {
				continue
			}
			this := row{t.Place, pkg.Elapsed(), r.processor[t.Dir], pkg.Total}
			sum = row{"all", sum.elapsed + this.elapsed, sum.processor + this.processor, sum.tests + this.tests}
			if this.elapsed >= shownFrom {
				rows = append(rows, this)
				continue
			}
			rest = row{fmt.Sprintf("packages below %v", shownFrom), rest.elapsed + this.elapsed, rest.processor + this.processor,
				rest.tests + this.tests}
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.elapsed, a.elapsed) })
	fmt.Fprintln(out, "minutes  processor  tests  package")
	for _, r := range append(rows, rest, sum) {
		if r.tests > 0 {
			fmt.Fprintf(out, "%7.2f  %9.2f  %5d  %s\n", r.elapsed.Minutes(), r.processor.Minutes(), r.tests, r.place)
		}
	}
	fmt.Fprintln(out)
}

func printSlowest(out io.Writer, runs []*moduleRun) {
	places := map[string]string{}
	var tests []testjson.TestCase
	for _, r := range runs {
		for _, t := range r.packages {
			places[t.ImportPath] = t.Place
		}
		tests = append(tests, slices.DeleteFunc(r.tests(), func(t testjson.TestCase) bool { return t.Test.IsSubTest() })...)
	}
	slices.SortStableFunc(tests, func(a, b testjson.TestCase) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	tests = tests[:min(len(tests), shownTests)]
	fmt.Fprintf(out, "seconds  the %d slowest tests\n", len(tests))
	for _, t := range tests {
		fmt.Fprintf(out, "%7.1f  %s %s\n", t.Elapsed.Seconds(), places[t.Package], t.Test)
	}
	fmt.Fprintln(out)
}

func printSkipped(out io.Writer, runs []*moduleRun) {
	for _, r := range runs {
		for _, t := range r.execution.Skipped() {
			fmt.Fprintf(out, "skipped: %s %s\n%s", t.Package, t.Test, strings.Join(r.execution.OutputLines(t), ""))
		}
	}
}

// printFailures prints each failed test of a module with all that it printed, and what go test printed.
func printFailures(out io.Writer, r *moduleRun) {
	if r.err == nil {
		return
	}
	for _, t := range testjson.FilterFailedUnique(r.execution.Failed()) {
		fmt.Fprintf(out, "FAIL: %s %s\n%s\n", t.Package, t.Test, failureOutput(r.execution, t))
	}
	for _, line := range r.execution.Errors() {
		fmt.Fprint(out, line)
	}
	if r.stderr != "" {
		fmt.Fprintln(out, r.stderr)
	}
	fmt.Fprintf(out, "module %s: %v\n", r.module, r.err)
}

func failureOutput(execution *testjson.Execution, t testjson.TestCase) string {
	pkg := execution.Package(t.Package)
	if t.Test == "" {
		var out strings.Builder
		_ = pkg.WriteOutputTo(&out, 0) // A Builder returns no error.
		return out.String()
	}
	return strings.Join(pkg.OutputLines(t), "")
}
