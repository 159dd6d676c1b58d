package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"gotest.tools/gotestsum/testjson"
)

// plain are the modules and packages that are tested without the race detector, which makes tests many
// times as slow; /... stands for all packages below. Some start programs, and read pages, charts, images and
// answers; the plugin is one of these programs. Some are pure: nothing in them runs at the same time. Races of the
// operator are looked for where replicas, streams and consumers compete: in its own packages, and in the operator
// with the race detector that test/interop and test/slices start.
var plain = []string{
	"api/...", "cmd/kubectl-proffer/...", "hack/release", "hack/verify/...", "internal/broker", "internal/capacity",
	"internal/catalog", "internal/filter/limits", "internal/grant", "internal/grant/holding",
	"internal/grant/protocol", "internal/offer",
	"internal/quantity", "internal/rehearse/...", "internal/selection", "internal/visible",
	"test/bench", "test/deploy", "test/example", "test/helm", "test/image", "test/interop", "test/life",
	"test/monitoring", "test/openapi", "test/page", "test/plugin", "test/slices/...",
}

// twice are packages that are tested in both ways: with the race detector, their explorations of all orders of events
// are short.
var twice = []string{"internal/controllers/slice"}

// isPlain reports whether a place is tested without the race detector.
func isPlain(place string) bool {
	return slices.ContainsFunc(plain, func(p string) bool {
		above, all := strings.CutSuffix(p, "/...")
		return place == above || all && strings.HasPrefix(place, above+"/")
	})
}

// longest are packages that take minutes. They come first in their run, the longest first, so that none
// of them runs alone at the end.
var longest = []string{
	"internal/operator", "internal/command", "hack/demo", "internal/metasync", "internal/controllers/slice",
	"test/accounting",
	"internal/source/external", "internal/web", "internal/source/nodes", "internal/controllers/orchestration",
	"test/deploy", "test/example", "test/life", "test/plugin", "internal/rehearse/world",
}

// needs are packages whose importers need a control plane or a database.
var needs = []string{"proffer.dev/proffer/hack/controlplane", "proffer.dev/proffer/test/dbtest"}

// testPackage is a package with tests.
type testPackage struct {
	ImportPath string
	Dir        string
	// Place is the directory relative to the working directory: "internal/offer".
	Place string
	// plain says that it is tested without the race detector.
	plain bool
}

// plan returns the runs of go test, in the order of the arguments.
func plan(ctx context.Context, s settings) ([]*moduleRun, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var runs []*moduleRun
	for _, module := range s.modules {
		packages, left, err := packagesOf(ctx, here, module, s.unit)
		with := slices.DeleteFunc(slices.Clone(packages), func(p testPackage) bool { return p.plain })
		without := slices.DeleteFunc(packages, func(p testPackage) bool {
			return !p.plain && !slices.Contains(twice, p.Place)
		})
		if len(with) > 0 || len(without) == 0 { // A run of no packages says that there are none.
			runs = append(runs, &moduleRun{module: module, race: true, packages: with, left: left, err: err})
		}
		if len(without) > 0 {
			runs = append(runs, &moduleRun{module: module, packages: without})
		}
	}
	for _, r := range runs {
		r.args, r.execution = arguments(r, s.flags), &testjson.Execution{}
	}
	return runs, ctx.Err()
}

// arguments returns the arguments of go test. What the tests build is built without cgo, as the Makefile does,
// so that Go's build cache has it: only the race detector needs cgo. make lint vets.
func arguments(r *moduleRun, flags []string) []string {
	args := []string{"test", "-json", "-vet=off", "-p", strconv.Itoa(runtime.NumCPU())}
	if r.race {
		args = append(args, "-race")
	}
	args = append(args, flags...)
	for _, p := range r.packages {
		args = append(args, p.ImportPath)
	}
	return args
}

// packagesOf returns the packages of a module that have tests, the longest first. With unit it leaves
// out those that need a control plane or a database, and returns their number.
func packagesOf(ctx context.Context, here, module string, unit bool) (found []testPackage, left int, err error) {
	binaries, packages, err := listTests(ctx, module)
	if err != nil {
		return nil, 0, err
	}
	for _, p := range packages {
		if unit && needsAny(binaries[p.ImportPath]) {
			left++
			continue
		}
		place, err := filepath.Rel(here, p.Dir)
		if err != nil {
			return nil, 0, err
		}
		p.Place = filepath.ToSlash(place)
		p.plain = isPlain(p.Place) || isPlain(path.Clean(filepath.ToSlash(module)))
		found = append(found, p)
	}
	slices.SortStableFunc(found, func(a, b testPackage) int { return rank(a) - rank(b) })
	return found, left, nil
}

// listTests returns the packages with tests, and the dependencies of their test binaries by import path.
func listTests(ctx context.Context, module string) (binaries map[string][]string, packages []testPackage, err error) {
	list := exec.CommandContext(ctx, "go", "list", "-e", "-test",
		"-json=ImportPath,ForTest,Dir,Deps,TestGoFiles,XTestGoFiles", "./...")
	list.Dir = module
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("listing the packages of %s: %w\n%s", module, err, &stderr)
	}
	binaries = map[string][]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l struct {
			ImportPath, ForTest, Dir        string
			Deps, TestGoFiles, XTestGoFiles []string
		}
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			return binaries, packages, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("reading the packages of %s: %w", module, err)
		}
		name, binary := strings.CutSuffix(l.ImportPath, ".test")
		switch {
		case l.ForTest != "":
		case binary:
			binaries[name] = l.Deps
		case len(l.TestGoFiles)+len(l.XTestGoFiles) > 0:
			packages = append(packages, testPackage{ImportPath: l.ImportPath, Dir: l.Dir})
		}
	}
}

// needsAny reports whether one of needs is among the dependencies of a test binary. Go writes a package
// that is compiled for it as "PACKAGE [BINARY]".
func needsAny(deps []string) bool {
	return slices.ContainsFunc(deps, func(dep string) bool {
		name, _, _ := strings.Cut(dep, " ")
		return slices.Contains(needs, name)
	})
}

func rank(p testPackage) int {
	if i := slices.Index(longest, p.Place); i >= 0 {
		return i
	}
	return len(longest)
}
