package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/test"
)

func TestForbiddenImportsAreReported(t *testing.T) {
	const m = module + "/"
	for name, tc := range map[string]struct {
		pkg  listed
		want []string
	}{
		"an allowed import": {
			pkg: listed{
				ImportPath: m + "internal/offer", Imports: []string{"fmt", m + "internal/capacity"},
				TestImports: []string{"k8s.io/apimachinery/pkg/labels"},
			},
		},
		"an import in the opposite direction": {
			pkg: listed{ImportPath: m + "internal/offer", Imports: []string{m + "internal/table"}},
			want: []string{
				"internal/offer imports proffer.dev/proffer/internal/table: internal/offer may import only internal/capacity, because " + pure,
			},
		},
		"a place that may import nothing": {
			pkg: listed{ImportPath: m + "internal/capacity", Imports: []string{m + "api/v1alpha1"}},
			want: []string{
				"internal/capacity imports proffer.dev/proffer/api/v1alpha1: internal/capacity imports nothing of this module, because " + pure,
			},
		},
		"a name with the same prefix": {
			pkg: listed{ImportPath: m + "internal/offer", Imports: []string{m + "internal/capacityold"}},
			want: []string{
				"internal/offer imports proffer.dev/proffer/internal/capacityold: internal/offer may import only internal/capacity, because " + pure,
			},
		},
		"a package of the same place": {
			pkg: listed{
				ImportPath: m + "internal/resourcereader",
				Imports:    []string{m + "internal/resourcereader/tls", m + "proto/resourcereader/flat"},
			},
		},
		"input and output in a pure package": {
			pkg:  listed{ImportPath: m + "internal/capacity", Imports: []string{"log/slog"}},
			want: []string{"internal/capacity imports log/slog: internal/capacity keeps out of log, because " + pure},
		},
		"a type of Kubernetes in the arithmetic": {
			pkg: listed{ImportPath: m + "internal/capacity", Imports: []string{"k8s.io/api/core/v1"}},
			want: []string{
				"internal/capacity imports k8s.io/api/core/v1: internal/capacity keeps out of k8s.io, because " + pure,
			},
		},
		"Liqo's types in the table": {
			pkg: listed{
				ImportPath: m + "internal/table", Imports: []string{"github.com/liqotech/liqo/apis/core/v1beta1"},
			},
			want: []string{
				"internal/table imports github.com/liqotech/liqo/apis/core/v1beta1: internal/table keeps out of github.com/liqotech/liqo, because the table holds plain values of the core",
			},
		},
		"the server in the controllers": {
			pkg: listed{ImportPath: m + "internal/controllers/policy", Imports: []string{m + "internal/resourcereader"}},
			want: []string{
				"internal/controllers/policy imports proffer.dev/proffer/internal/resourcereader: internal/controllers/policy may import only internal/policy, api, internal/table, internal/kube, internal/debounce, internal/quantity, internal/selection, internal/filter, internal/visible, internal/capacity, internal/offer, internal/grant, because " + kind,
			},
		},
		"the controllers of one kind in those of another": {
			pkg: listed{ImportPath: m + "internal/controllers/policy", Imports: []string{m + "internal/controllers/slice"}},
			want: []string{
				"internal/controllers/policy imports proffer.dev/proffer/internal/controllers/slice: internal/controllers/policy may import only internal/policy, api, internal/table, internal/kube, internal/debounce, internal/quantity, internal/selection, internal/filter, internal/visible, internal/capacity, internal/offer, internal/grant, because " + kind,
			},
		},
		"the control plane in a test": {
			pkg: listed{
				ImportPath:   m + "api/v1alpha1",
				XTestImports: []string{m + "hack/controlplane", m + "api/v1alpha1", "k8s.io/client-go/rest"},
			},
		},
		"the control plane in the operator": {
			pkg: listed{ImportPath: m + "internal/controllers/policy", Imports: []string{m + "hack/controlplane"}},
			want: []string{
				"internal/controllers/policy imports proffer.dev/proffer/hack/controlplane: internal/controllers/policy may import only internal/policy, api, internal/table, internal/kube, internal/debounce, internal/quantity, internal/selection, internal/filter, internal/visible, internal/capacity, internal/offer, internal/grant, because " + kind,
			},
		},
		"a test that imports in the opposite direction": {
			pkg: listed{ImportPath: m + "internal/capacity", TestImports: []string{m + "internal/offer"}},
			want: []string{
				"a test of internal/capacity imports proffer.dev/proffer/internal/offer: internal/capacity may import only hack/controlplane, test, because " + pure,
			},
		},
		"a logger in a pure package": {
			pkg: listed{ImportPath: m + "internal/grant/protocol", Imports: []string{"github.com/go-logr/logr"}},
			want: []string{
				"internal/grant/protocol imports github.com/go-logr/logr: internal/grant keeps out of github.com/go-logr, because " + pure,
			},
		},
		"a package without a rule": {
			pkg:  listed{ImportPath: m + "pkg/util"},
			want: []string{"pkg/util has no rule: add one to hack/verify/imports/table.go"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, check(table, []listed{tc.pkg})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPurePackageMustNotReadTheClock(t *testing.T) {
	dir := t.TempDir()
	const text = "package offer\n\nimport \"time\"\n\nfunc age(of, now time.Time) time.Duration { return now.Sub(of) }\n\nvar start = time.Now()\n"
	test.Must(t, os.WriteFile(filepath.Join(dir, "clock.go"), []byte(text), 0o600))
	for place, want := range map[string][]string{
		"internal/offer": {
			"internal/offer/clock.go uses time.Now: internal/offer takes times as values, because " + pure,
		},
		"internal/engine": nil,
	} {
		got := check(table, []listed{
			{ImportPath: module + "/" + place, Dir: dir, GoFiles: []string{"clock.go"}, Imports: []string{"time"}},
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", place, diff)
		}
	}
}

func TestTheImportsOfThisModuleAreListed(t *testing.T) {
	packages, err := list()
	test.Must(t, err)
	for _, p := range packages {
		if p.ImportPath == module+"/internal/offer" {
			if len(p.Imports) == 0 {
				t.Error("internal/offer is listed without its imports")
			}
			return
		}
	}
	t.Errorf("internal/offer is not among %d packages", len(packages))
}
