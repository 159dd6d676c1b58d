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
	return build(ctx, "PROFFER_BIN", filepath.Join(dir, "proffer"), nil)
}

// BuildRace is Build with the race detector, and uses PROFFER_RACE_BIN. Such an operator needs several
// times the processor time, so only the tests that have it do many things at once should start it.
func BuildRace(ctx context.Context, dir string) (string, error) {
	return build(ctx, "PROFFER_RACE_BIN", filepath.Join(dir, "proffer-race"), []string{"CGO_ENABLED=1"}, "-race")
}

// build returns the path in the variable if it is set, and otherwise builds the operator.
func build(ctx context.Context, variable, program string, env []string, flags ...string) (string, error) {
	if program := os.Getenv(variable); program != "" {
		return filepath.Abs(program)
	}
	root, err := Checkout(ctx)
	if err != nil {
		return "", err
	}
	if program, err = filepath.Abs(program); err != nil {
		return "", err
	}
	args := append([]string{"build", "-trimpath", "-o", program}, flags...)
	build := exec.CommandContext(ctx, "go", append(args, "./cmd/proffer")...)
	build.Env = append(os.Environ(), env...)
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
