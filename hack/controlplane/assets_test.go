package controlplane

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/test"
)

// fixture is a finder with a cache in a directory of the test and with fake sources.
type fixture struct {
	finder
	progress *bytes.Buffer
	calls    []string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Setenv(assetsEnv, "")
	t.Setenv(cacheEnv, t.TempDir())
	fx := &fixture{progress: &bytes.Buffer{}}
	fx.finder.progress = &reporter{w: fx.progress}
	return fx
}

// source adds a source that writes these programs and returns err.
func (fx *fixture) source(name string, err error, files ...string) *fixture {
	fx.sources = append(fx.sources, source{name: name, fetch: func(_ context.Context, dir string, _ *reporter) error {
		fx.calls = append(fx.calls, name)
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(name), 0o755); err != nil {
				return err
			}
		}
		return err
	}})
	return fx
}

// cached returns the directory of the fixture's cache.
func (fx *fixture) cached(t *testing.T) string {
	t.Helper()
	c, err := assetsCache()
	test.Must(t, err)
	return c.dir
}

func writePrograms(t *testing.T, dir string, mode os.FileMode, names ...string) string {
	t.Helper()
	test.Must(t, os.MkdirAll(dir, 0o755))
	for _, name := range names {
		test.Must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), mode))
	}
	return dir
}

func TestTheEnvironmentComesFirst(t *testing.T) {
	fx := newFixture(t).source("download", nil, programs...)
	dir := writePrograms(t, t.TempDir(), 0o755, programs...)
	t.Setenv(assetsEnv, dir)
	got, err := fx.find(t.Context())
	if err != nil || got != dir {
		t.Errorf("got %q, %v, want %q", got, err, dir)
	}
	if len(fx.calls) > 0 {
		t.Errorf("fetched from %v", fx.calls)
	}
}

func TestWrongAssetsAreNamedAndNoSourceIsTried(t *testing.T) {
	for name, tc := range map[string]struct {
		dir  func(t *testing.T) string
		want []string
	}{
		"a missing directory": {
			dir:  func(t *testing.T) string { return filepath.Join(t.TempDir(), "nowhere") },
			want: []string{"kube-apiserver (not there)", "etcd (not there)", "kubectl (not there)"},
		},
		"one program missing": {
			dir: func(t *testing.T) string {
				return writePrograms(t, t.TempDir(), 0o755, "kube-apiserver", "kubectl")
			},
			want: []string{"missing etcd (not there);"},
		},
		"not executable": {
			dir:  func(t *testing.T) string { return writePrograms(t, t.TempDir(), 0o644, programs...) },
			want: []string{"kube-apiserver (not executable)"},
		},
		"a directory in place of a program": {
			dir: func(t *testing.T) string {
				dir := writePrograms(t, t.TempDir(), 0o755, "kube-apiserver", "kubectl")
				return filepath.Dir(writePrograms(t, filepath.Join(dir, "etcd"), 0o755, "etcd"))
			},
			want: []string{"etcd (not a file)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t).source("download", nil, programs...)
			t.Setenv(assetsEnv, tc.dir(t))
			_, err := fx.find(t.Context())
			for _, want := range append(tc.want, assetsEnv, os.Getenv(assetsEnv), "unset it") {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if len(fx.calls) > 0 {
				t.Errorf("fetched from %v", fx.calls)
			}
		})
	}
}

func TestTheFirstSourceThatWorksFillsTheCacheOnce(t *testing.T) {
	fx := newFixture(t).
		source("download", errors.New("connection refused"), "etcd").
		source("build", nil, programs...).
		source("never", nil, programs...)
	for range 2 {
		got, err := fx.find(t.Context())
		if err != nil || got != fx.cached(t) {
			t.Fatalf("got %q, %v, want %q", got, err, fx.cached(t))
		}
	}
	if diff := cmp.Diff([]string{"download", "build"}, fx.calls); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	data, err := os.ReadFile(filepath.Join(fx.cached(t), "etcd"))
	if err != nil || string(data) != "build" {
		t.Errorf("etcd has the content %q, %v; want that of the build", data, err)
	}
	for _, want := range []string{"not from download: connection refused", "from build", "from the cache (build)"} {
		if !strings.Contains(fx.progress.String(), want) {
			t.Errorf("progress does not contain %q:\n%s", want, fx.progress)
		}
	}
}

func TestAFilledCacheIsReportedInOneLine(t *testing.T) {
	fx := newFixture(t).source("build", nil, programs...)
	for range 2 {
		fx.progress.Reset()
		if _, err := fx.find(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fx.progress.String(), "control plane: using "+fx.cached(t)+" from the cache (build)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnIncompleteCacheIsReplaced(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string) error{
		"a program missing": func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, "kubectl")) },
		"a truncated program": func(_ *testing.T, dir string) error {
			return os.Truncate(filepath.Join(dir, "etcd"), 1)
		},
		"not executable": func(_ *testing.T, dir string) error {
			return os.Chmod(filepath.Join(dir, "etcd"), 0o644)
		},
		"no manifest": func(_ *testing.T, dir string) error {
			return os.Remove(filepath.Join(dir, manifestName))
		},
		"a truncated manifest": func(_ *testing.T, dir string) error {
			return os.Truncate(filepath.Join(dir, manifestName), 3)
		},
		"a file in its place": func(_ *testing.T, dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		},
		"a staging directory left": func(t *testing.T, dir string) error {
			writePrograms(t, filepath.Join(filepath.Dir(dir), ".staging-1"), 0o755, "etcd")
			return os.RemoveAll(dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t).source("download", nil, programs...)
			if _, err := fx.find(t.Context()); err != nil {
				t.Fatal(err)
			}
			test.Must(t, damage(t, fx.cached(t)))
			dir, err := fx.find(t.Context())
			test.Must(t, err)
			if _, err := checkPrograms(dir); err != nil {
				t.Error(err)
			}
			if len(fx.calls) != 2 {
				t.Errorf("fetched %d times, want 2", len(fx.calls))
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".staging-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestAllSourcesFailingSaysWhatToDo(t *testing.T) {
	fx := newFixture(t).
		source("download", errors.New("no such host")).
		source("build", nil, "etcd", "kubectl")
	_, err := fx.find(t.Context())
	for _, want := range []string{
		"set KUBEBUILDER_ASSETS", "GOPROXY", "download: no such host", "build: missing kube-apiserver (not there)",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if _, err := os.Stat(fx.cached(t)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cache is not empty: %v", err)
	}
}

func TestACacheThatCannotBeWrittenSaysWhatToDo(t *testing.T) {
	fx := newFixture(t).source("download", nil, programs...)
	// A file in place of the directory: even root cannot write there.
	file := filepath.Join(t.TempDir(), "file")
	test.Must(t, os.WriteFile(file, nil, 0o600))
	t.Setenv(cacheEnv, filepath.Join(file, "cache"))
	_, err := fx.find(t.Context())
	if err == nil || !strings.Contains(err.Error(), "set PROFFER_CACHE to a directory you can write to") {
		t.Errorf("got %v", err)
	}
	if len(fx.calls) > 0 {
		t.Errorf("fetched from %v although the cache cannot be written", fx.calls)
	}
}

func TestAReadOnlyCacheIsUsed(t *testing.T) {
	fx := newFixture(t).source("download", nil, programs...)
	dir, err := fx.find(t.Context())
	test.Must(t, err)
	test.Must(t, errors.Join(os.Remove(filepath.Join(os.Getenv(cacheEnv), ".lock")),
		os.Chmod(os.Getenv(cacheEnv), 0o500)))
	t.Cleanup(func() { _ = os.Chmod(os.Getenv(cacheEnv), 0o700) })
	if got, err := fx.find(t.Context()); err != nil || got != dir {
		t.Errorf("got %q, %v, want %q", got, err, dir)
	}
	// Root may write anyway, so check that no lock was taken.
	if _, err := os.Stat(filepath.Join(os.Getenv(cacheEnv), ".lock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a lock was taken to read the cache (%v)", err)
	}
}

func TestWithoutACacheDirectoryTheErrorNamesTheVariable(t *testing.T) {
	fx := newFixture(t)
	for _, name := range []string{cacheEnv, "XDG_CACHE_HOME", "HOME"} {
		t.Setenv(name, "")
	}
	if _, err := fx.find(t.Context()); err == nil || !strings.Contains(err.Error(), "set PROFFER_CACHE") {
		t.Errorf("got %v", err)
	}
}

func TestOneOfManyProcessesFillsTheCache(t *testing.T) {
	root := t.TempDir()
	var fetched atomic.Int32
	var all sync.WaitGroup
	fixtures := make([]*fixture, 8)
	for i := range fixtures {
		fixtures[i] = newFixture(t)
	}
	t.Setenv(cacheEnv, root)
	for _, fx := range fixtures {
		fx.sources = []source{{name: "download", fetch: func(_ context.Context, dir string, _ *reporter) error {
			fetched.Add(1)
			for _, name := range programs {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o755); err != nil {
					return err
				}
			}
			return nil
		}}}
		all.Go(func() {
			dir, err := fx.find(t.Context())
			if err == nil {
				_, err = checkPrograms(dir)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := fetched.Load(); n != 1 {
		t.Errorf("fetched %d times, want once", n)
	}
}

func TestAnInterruptEndsTheSearch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	fx := newFixture(t)
	fx.sources = []source{{name: "download", fetch: func(context.Context, string, *reporter) error {
		cancel()
		return errors.New("killed")
	}}}
	fx.source("build", nil, programs...)
	if _, err := fx.find(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	if len(fx.calls) > 0 {
		t.Errorf("continued with %v", fx.calls)
	}
}

func TestTheVersionsMatchTheModules(t *testing.T) {
	for want, file := range map[string]string{
		"k8s.io/kubernetes v" + KubernetesVersion:                "kubernetes/go.mod",
		"go.etcd.io/etcd/server/v3 v" + EtcdVersion:              "kubernetes/go.mod",
		"k8s.io/kubernetes v" + OldKubernetesVersion:             "kubernetes-old/go.mod",
		"github.com/liqotech/liqo v" + LiqoVersion:               "../../test/slices/go.mod",
		"github.com/prometheus/prometheus v" + PrometheusVersion: "../../test/monitoring/go.mod",
	} {
		data := test.Read(t, file)
		if !slices.Contains(strings.Split(strings.ReplaceAll(data, " // indirect", ""), "\n"), "\t"+want) {
			t.Errorf("%s does not require %s", file, want)
		}
	}
}
