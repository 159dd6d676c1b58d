package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"proffer.dev/proffer/test"
)

// LiqoFiles returns the directory in Liqo's module with its chart and CRDs. It downloads the module
// if the module cache lacks it: no program of this module imports all of Liqo.
func LiqoFiles(ctx context.Context) (string, error) {
	dir, err := moduleDir(ctx, ".", "github.com/liqotech/liqo")
	return filepath.Join(dir, "deployments", "liqo"), err
}

// liqoFiles asks once for all tests of a process: go takes longer to answer than many a test. No test's end
// may cancel the question.
var liqoFiles = sync.OnceValues(func() (string, error) { return LiqoFiles(context.Background()) })

// LiqoFile returns the path of a file of Liqo, below LiqoFiles.
func LiqoFile(t testing.TB, path ...string) string {
	t.Helper()
	dir, err := liqoFiles()
	test.Must(t, err)
	return filepath.Join(append([]string{dir}, path...)...)
}

// LiqoCRD returns the path of one of Liqo's CRDs.
func LiqoCRD(t testing.TB, name string) string {
	t.Helper()
	return LiqoFile(t, "charts", "liqo-crds", "crds", name)
}

// moduleDir returns the directory of a module that one in a directory of the repository requires, and downloads
// it if needed.
func moduleDir(ctx context.Context, requiredIn, module string) (string, error) {
	root, err := inCheckout(requiredIn)
	if err != nil {
		return "", err
	}
	// go list reports nothing of a module that is not downloaded.
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-C", root, "-json", module).Output()
	var got struct{ Dir, Error string }
	switch text := json.Unmarshal(out, &got); {
	case got.Error != "":
		err = errors.New(got.Error)
	case err == nil:
		err = text
	}
	if err != nil {
		return "", fmt.Errorf("getting module %s: %w", module, err)
	}
	return got.Dir, nil
}
