package lab

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs are the paths of the files that a lab needs.
type Programs struct {
	// Checkout is the directory of the operator's module.
	Checkout string
	// ControlPlane is the program of hack/controlplane. Operator and Plugin are the programs under test.
	ControlPlane, Operator, Plugin string
	// Liqo is the directory of Liqo's programs and of kube-controller-manager. LiqoModule is the
	// directory of Liqo's source, with its chart and its CRDs.
	Liqo, LiqoModule string
}

// Build builds the programs that do not exist yet or are not current: small ones into bin/lab of the
// checkout, Liqo and Kubernetes into the cache of hack/controlplane. The first time on a machine takes
// minutes. If PROFFER_RACE_BIN or else PROFFER_BIN is set, Build uses that operator, and likewise the plugin
// of PROFFER_PLUGIN_BIN.
func Build(ctx context.Context, progress io.Writer) (Programs, error) {
	module, err := output(ctx, progress, ".", "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return Programs{}, err
	}
	checkout := filepath.Join(module, "..", "..")
	bin := filepath.Join(checkout, "bin", "lab")
	p := Programs{
		Checkout: checkout, ControlPlane: filepath.Join(bin, "controlplane"),
		Operator: cmp.Or(os.Getenv("PROFFER_RACE_BIN"), os.Getenv("PROFFER_BIN")),
		Plugin:   os.Getenv("PROFFER_PLUGIN_BIN"),
	}
	_, err = output(ctx, progress, checkout, "go", "build", "-o", p.ControlPlane, "./hack/controlplane/cmd/controlplane")
	if err != nil {
		return Programs{}, err
	}
	if p.Operator == "" {
		p.Operator = filepath.Join(bin, "proffer")
		// Reports of the race detector are found in the operator's log.
		if _, err := output(ctx, progress, checkout, "go", "build", "-race", "-o", p.Operator, "./cmd/proffer"); err != nil {
			return Programs{}, err
		}
	}
	if p.Plugin == "" {
		p.Plugin = filepath.Join(bin, "kubectl-proffer")
		if _, err := output(ctx, progress, checkout, "go", "build", "-o", p.Plugin, "./cmd/kubectl-proffer"); err != nil {
			return Programs{}, err
		}
	}
	p.LiqoModule, err = output(ctx, progress, ".", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/liqotech/liqo")
	if err != nil {
		return Programs{}, err
	}
	if p.Liqo, err = output(ctx, progress, checkout, p.ControlPlane, "liqo"); err != nil {
		return Programs{}, err
	}
	// Also build kube-apiserver and etcd now: the namespaces have no network to download modules.
	_, err = output(ctx, progress, checkout, p.ControlPlane)
	return p, err
}

func output(ctx context.Context, progress io.Writer, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Stderr = progress
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", filepath.Base(program), strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
