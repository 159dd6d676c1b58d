package interop

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// programs are the paths that all tests share.
var programs struct {
	operator   string
	kubectl    string
	kubeconfig string
	// crds and liqoCRDs are the directories of our CRDs and of Liqo's.
	crds, liqoCRDs string
}

func TestMain(m *testing.M) {
	if os.Getenv(asLiqo) != "" {
		os.Exit(runLiqo())
	}
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	work, err := os.MkdirTemp("", "proffer-interop-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return 1, err
	}
	programs.crds = filepath.Join(root, "config", "crd", "bases")
	if programs.liqoCRDs, err = moduleFile("github.com/liqotech/liqo", "deployments", "liqo", "crds"); err != nil {
		return 1, err
	}
	if programs.operator = os.Getenv("PROFFER_RACE_BIN"); programs.operator == "" {
		programs.operator = filepath.Join(work, "proffer")
		if err := build(root, programs.operator, "-race", "./cmd/proffer"); err != nil {
			return 1, err
		}
	}
	controlPlane := filepath.Join(work, "controlplane")
	if err := build(root, controlPlane, "./hack/controlplane/cmd/controlplane"); err != nil {
		return 1, err
	}
	// The control plane has a process group of its own, so an interrupt must stop it here.
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	stop, err := startControlPlane(controlPlane, root, filepath.Join(work, "kubeconfig"))
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := stop(); err == nil && stopErr != nil {
			code, err = 1, stopErr
		}
	}()
	go func() {
		<-interrupted
		_ = stop()
		os.Exit(130)
	}()
	return m.Run(), nil
}

func build(root, output string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build", "-o", output}, args...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", output, err, out)
	}
	return nil
}

func moduleFile(module string, path ...string) (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", module, err)
	}
	return filepath.Join(append([]string{string(out[:len(out)-1])}, path...)...), nil
}
