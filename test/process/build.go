package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds the operator into dir and returns its path. If PROFFER_BIN is set, Build returns
// that path instead. The flags are those of `make build`, so that both share the build cache.
func Build(ctx context.Context, dir string) (string, error) {
	if program := os.Getenv("PROFFER_BIN"); program != "" {
		return filepath.Abs(program)
	}
	root, err := Checkout(ctx)
	if err != nil {
		return "", err
	}
	program, err := filepath.Abs(filepath.Join(dir, "proffer"))
	if err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/proffer")
	// Another module may select other versions of libraries, so build in the operator's own.
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the operator: %w\n%s", err, out)
	}
	return program, nil
}

// Checkout returns the directory of the operator's module. The working directory must be inside
// that module, or inside one that requires it.
func Checkout(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "proffer.dev/proffer").Output()
	if err != nil {
		return "", fmt.Errorf("finding the repository (run this inside it): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
