package controlplane

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

// A fresh machine has an empty module cache.
func TestAMissingModuleIsDownloaded(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	test.Must(t, err)
	t.Setenv("GOPROXY", "file://"+filepath.Join(strings.TrimSpace(string(out)), "cache", "download"))
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	if _, err := os.Stat(LiqoCRD(t, "core.liqo.io_foreignclusters.yaml")); err != nil {
		t.Error(err)
	}
	if _, err := moduleDir(t.Context(), ".", "example.com/no/such/module"); err == nil ||
		!strings.Contains(err.Error(), "example.com/no/such/module") {
		t.Errorf("a module that does not exist: got %v", err)
	}
}
