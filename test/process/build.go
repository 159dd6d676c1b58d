package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Build builds the operator into dir and returns its path. If PROFFER_BIN is set, Build returns
// that path instead. The flags are those of `make build`, so that both share the build cache.
func Build(ctx context.Context, dir string) (string, error) {
	return build(ctx, "PROFFER_BIN", "./cmd/proffer", filepath.Join(dir, "proffer"), nil)
}

// BuildRace is Build with the race detector, and uses PROFFER_RACE_BIN. Such an operator needs several
// times the processor time, so only the tests that have it do many things at once should start it.
func BuildRace(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "proffer-race")
	return build(ctx, "PROFFER_RACE_BIN", "./cmd/proffer", program, []string{"CGO_ENABLED=1"}, "-race")
}

// AddPlugin puts kubectl-proffer, and the script that kubectl calls for its completions, into dir, which is
// for PATH. If PROFFER_PLUGIN_BIN is set, AddPlugin links to that program instead of building one.
func AddPlugin(ctx context.Context, dir string) error {
	const source, completion = "cmd/kubectl-proffer", "kubectl_complete-proffer"
	root, err := Checkout()
	if err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join(root, source, completion), filepath.Join(dir, completion)); err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	program := filepath.Join(dir, "kubectl-proffer")
	built, err := build(ctx, "PROFFER_PLUGIN_BIN", "./"+source, program, nil)
	if err != nil || built == program {
		return err
	}
	return os.Symlink(built, program)
}

// build returns the path in the variable if it is set, and otherwise builds a program.
func build(ctx context.Context, variable, source, program string, env []string, flags ...string) (string, error) {
	if program := os.Getenv(variable); program != "" {
		return filepath.Abs(program)
	}
	root, err := Checkout()
	if err != nil {
		return "", err
	}
	if program, err = filepath.Abs(program); err != nil {
		return "", err
	}
	args := append([]string{"build", "-trimpath", "-o", program}, flags...)
	build := exec.CommandContext(ctx, "go", append(args, source)...)
	build.Env = append(os.Environ(), env...)
	// Another module may select other versions of libraries, so build in the operator's own.
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", source, err, out)
	}
	return program, nil
}

// Checkout returns the directory of the operator's module. It searches upwards from the working directory,
// which may belong to another module of the repository.
func Checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if slices.Contains(strings.Split(string(data), "\n"), "module proffer.dev/proffer") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("not in a checkout of proffer.dev/proffer: run it there")
		}
		dir = filepath.Dir(dir)
	}
}
