package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"proffer.dev/proffer/test/process"
)

// maxStall is the longest time for which a download may receive nothing. A network that drops packets
// reports no error for minutes.
const maxStall = 60 * time.Second

// reachTimeout bounds the time in which the server of the archives has to answer.
const reachTimeout = 10 * time.Second

// download fetches the archive that the envtest project publishes. It uses the project's own
// program, which checks the archive's hash.
func download(ctx context.Context, dir string, progress *reporter) error {
	// The program takes half a minute to build, which a machine without Internet should not wait for.
	if err := reach(ctx, envtest.DefaultBinaryAssetsIndexURL); err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, "download-")
	if err != nil {
		return err
	}
	defer removeTree(work)

	tool := filepath.Join(work, "setup-envtest")
	err = goBuild(ctx, progress, "building setup-envtest", "hack/tools", tool,
		"sigs.k8s.io/controller-runtime/tools/setup-envtest")
	if err != nil {
		return err
	}

	minor := KubernetesVersion[:strings.LastIndex(KubernetesVersion, ".")] + ".x"
	watched, cancel := stopWhenStalled(ctx, work)
	defer cancel()
	cmd := exec.CommandContext(watched, tool, "use", minor, "-p", "path", "--bin-dir", filepath.Join(work, "bin"))
	cmd.Env = append(os.Environ(), "TMPDIR="+work) // stopWhenStalled measures the archive there.
	out, err := run(watched, progress, "downloading the prebuilt archive", cmd)
	if err != nil {
		return err
	}
	for _, name := range programs {
		if err := os.Rename(filepath.Join(strings.TrimSpace(out), name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// reach returns an error unless a server has something at a URL, and says so soon.
func reach(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// kubernetesModule is the module that requires the programs of Kubernetes.
const kubernetesModule = "hack/controlplane/kubernetes"

// build compiles the programs from kubernetesModule. Go's build cache lets an interrupted build continue.
func build(ctx context.Context, dir string, progress *reporter) error {
	err := goBuild(ctx, progress, "building etcd (30 s on two cores, the first time)", kubernetesModule,
		filepath.Join(dir, "etcd"), "-ldflags=-s -w", "go.etcd.io/etcd/server/v3")
	if err != nil {
		return err
	}
	return goBuild(ctx, progress, "building kube-apiserver and kubectl (5 min on two cores, the first time)",
		kubernetesModule, dir+string(filepath.Separator), kubernetesFlags(KubernetesVersion),
		"k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kubectl")
}

// kubernetesFlags returns the linker flags that set the version of a program of Kubernetes. An
// older kube-apiserver serves the version that client-go has.
func kubernetesFlags(release string) string {
	v := strings.Split(release, ".")
	flags := []string{"-ldflags=-s -w"}
	for _, version := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags, fmt.Sprintf("-X %s.gitVersion=v%s -X %s.gitMajor=%s -X %s.gitMinor=%s",
			version, release, version, v[0], version, v[1]))
	}
	return strings.Join(flags, " ")
}

// goBuild runs go build in a module, a directory of the repository, for this machine.
func goBuild(ctx context.Context, progress *reporter, doing, module, output string, args ...string) error {
	dir, err := inCheckout(module)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-mod=readonly", "-o", output}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir, "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH,
		"CGO_ENABLED=0")
	_, err = run(ctx, progress, doing, cmd)
	return err
}

// inCheckout returns the path of a directory of the repository.
func inCheckout(dir string) (string, error) {
	root, err := process.Checkout()
	return filepath.Join(root, filepath.FromSlash(dir)), err
}

// run runs cmd and returns its output. An error contains the last lines of stderr.
func run(ctx context.Context, progress *reporter, doing string, cmd *exec.Cmd) (string, error) {
	progress.say("%s", doing)
	defer progress.every(doing)()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return "", fmt.Errorf("%s: %w\n%s", doing, err, lastLines(stderr.String(), 10))
	}
	return stdout.String(), nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

var errStalled = fmt.Errorf("received nothing for %s", maxStall)

// stopWhenStalled returns a context that ends when the size of the files under dir has not changed
// for maxStall.
func stopWhenStalled(ctx context.Context, dir string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	size, since := treeSize(dir), time.Now()
	go wait.UntilWithContext(ctx, func(context.Context) {
		if s := treeSize(dir); s != size {
			size, since = s, time.Now()
		}
		if time.Since(since) >= maxStall {
			cancel(errStalled)
		}
	}, time.Second)
	return ctx, func() { cancel(nil) }
}

// treeSize returns the size of all files under dir in bytes. Files that disappear meanwhile do not
// count.
func treeSize(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // A file that another process removed.
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size
}

// removeTree removes dir with its content, including the read-only directories of setup-envtest.
func removeTree(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return err
	})
	_ = os.RemoveAll(dir) // The sweep of the staging directory removes the rest.
}
