package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"proffer.dev/proffer/hack/tether"
)

// startTimeout is for each of the programs. They need 3 s alone, and much more
// on a machine that compiles at the same time.
const startTimeout = 2 * time.Minute

// Options say what to start.
type Options struct {
	// CRDDirs are directories, or files, of CustomResourceDefinitions to install.
	// One that is not there is an error.
	CRDDirs []string
	// APIServerFlags are flags of kube-apiserver without their dashes. One given
	// here replaces envtest's own value, for instance
	// "disable-admission-plugins": {} brings ServiceAccount admission back.
	APIServerFlags map[string][]string
	// ClientCA is a file with certificates of authorities whose clients the API
	// server is to know, beside those of UserConfig.
	ClientCA string
	// Progress is told how the programs are found. Nil tells nobody.
	Progress io.Writer
	// Output gets what the programs print. Nil drops it.
	Output io.Writer
}

// A Cluster is a running etcd and kube-apiserver: an API with no nodes but those
// that a test makes, and with no controllers.
type Cluster struct {
	// Config is for a member of system:masters, without a limit on its rate that
	// a test would notice. Copy it before changing it.
	Config *rest.Config
	// Kubeconfig is the same for kubectl and for other processes.
	Kubeconfig []byte
	// Assets is the directory of the programs, kubectl among them.
	Assets string

	env  *envtest.Environment
	work string
	// tether ends the programs with this process, should nobody call Stop.
	tether *tether.Tether
	// others are the API servers beside the first.
	others []*exec.Cmd
}

// Start runs a new cluster on free ports of the loopback device. The caller must
// Stop it. If this process is killed, the programs are too.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	assets, err := Assets(ctx, opts.Progress)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "proffer-controlplane-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Assets: assets, work: work, env: newEnvironment(assets, work, opts)}
	if c.tether, err = tether.New(work); err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	if err := c.prepare(opts.ClientCA); err != nil {
		return nil, errors.Join(err, c.tether.Release(), os.RemoveAll(work))
	}
	stop := (&reporter{w: opts.Progress}).every("starting etcd and kube-apiserver")
	config, err := c.env.Start()
	stop()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the control plane of %s: %w", assets, err), c.Stop())
	}
	c.Config, c.Kubeconfig = config, c.env.KubeConfig
	return c, nil
}

// prepare makes the directories that outlive an outage, certificates and data,
// and the scripts that start etcd and kube-apiserver. They note the process's
// number, which envtest keeps to itself; that of kube-apiserver also its flags,
// and it adds to the authorities of clients, which are a flag that envtest sets
// and a file that it writes just before.
func (c *Cluster) prepare(clientCA string) error {
	for _, dir := range []string{c.env.ControlPlane.APIServer.CertDir, c.env.ControlPlane.Etcd.DataDir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	quote := func(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
	etcd := fmt.Sprintf("#!/bin/sh\necho $$ >%s\nexec %s \"$@\"\n", quote(c.tether.File("etcd")), quote(filepath.Join(c.Assets, "etcd")))
	if err := os.WriteFile(c.env.ControlPlane.Etcd.Path, []byte(etcd), 0o700); err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\necho $$ >%s\n", quote(c.pidFile()))
	if clientCA != "" {
		all := filepath.Join(c.work, "client-ca.crt")
		own := filepath.Join(c.env.ControlPlane.APIServer.CertDir, "client-cert-auth-ca.crt")
		script += fmt.Sprintf("cat %s %s >%s\n", quote(own), quote(clientCA), quote(all))
		script += fmt.Sprintf("set -- \"$@\" --client-ca-file=%s\n", quote(all))
	}
	script += fmt.Sprintf("printf '%%s\\n' \"$@\" >%s\n", quote(c.flagsFile()))
	script += fmt.Sprintf("exec %s \"$@\"\n", quote(filepath.Join(c.Assets, "kube-apiserver")))
	return os.WriteFile(c.env.ControlPlane.APIServer.Path, []byte(script), 0o700)
}

func (c *Cluster) pidFile() string   { return c.tether.File("kube-apiserver") }
func (c *Cluster) flagsFile() string { return filepath.Join(c.work, "kube-apiserver.flags") }

// killAPIServer kills the server that the script last started. It is no error if
// there is none.
func (c *Cluster) killAPIServer() error {
	err := c.signalAPIServer(syscall.SIGKILL)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	// Its number may be another's from now on.
	return os.Remove(c.pidFile())
}

// signalAPIServer sends a signal to the server that the script last started.
func (c *Cluster) signalAPIServer(signal syscall.Signal) error {
	data, err := os.ReadFile(c.pidFile())
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, signal)
}

func newEnvironment(assets, work string, opts Options) *envtest.Environment {
	apiServer := &envtest.APIServer{
		Path:    filepath.Join(work, "kube-apiserver"),
		CertDir: filepath.Join(work, "certs"),
		Out:     opts.Output,
		Err:     opts.Output,
	}
	// Where there is no default route kube-apiserver finds no address of its own to
	// publish, and takes none of the loopback device for its Service.
	apiServer.Configure().Set("advertise-address", "127.0.0.1").Set("endpoint-reconciler-type", "none")
	for flag, values := range opts.APIServerFlags {
		apiServer.Configure().Set(flag, values...)
	}
	never := false
	return &envtest.Environment{
		ControlPlane: envtest.ControlPlane{
			APIServer: apiServer,
			Etcd: &envtest.Etcd{
				Path:    filepath.Join(work, "start-etcd"),
				DataDir: filepath.Join(work, "etcd"),
				Out:     opts.Output,
				Err:     opts.Output,
			},
			KubectlPath: filepath.Join(assets, "kubectl"),
		},
		// Whatever the environment says: a test must never write to a cluster
		// that somebody uses.
		UseExistingCluster:       &never,
		CRDDirectoryPaths:        opts.CRDDirs,
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
	}
}

// Stop ends all programs and removes their data. A second call does nothing.
func (c *Cluster) Stop() error {
	if c.env == nil {
		return nil
	}
	killed := errors.Join(c.killAPIServer(), c.killOthers())
	stopped := c.env.Stop()
	c.env = nil
	return errors.Join(killed, stopped, c.tether.Release(), os.RemoveAll(c.work))
}

// StopAPIServer kills kube-apiserver and leaves etcd: watches break and clients
// are refused, as in an outage, until StartAPIServer. It does not ask politely,
// because the server then waits a minute for watches to end by themselves.
func (c *Cluster) StopAPIServer() error {
	if err := c.killAPIServer(); err != nil {
		return fmt.Errorf("kill kube-apiserver: %w", err)
	}
	if err := c.env.ControlPlane.APIServer.Stop(); err != nil {
		return fmt.Errorf("stop kube-apiserver: %w", err)
	}
	return nil
}

// StartAPIServer brings it back where it was: the same port, certificates, keys
// of ServiceAccount tokens, and data. It returns once the server is healthy.
func (c *Cluster) StartAPIServer() error {
	if err := c.env.ControlPlane.APIServer.Start(); err != nil {
		return fmt.Errorf("start kube-apiserver again: %w", err)
	}
	return nil
}

// FreezeAPIServer has kube-apiserver stand still: connections stay open, and
// nothing is answered, until ThawAPIServer.
func (c *Cluster) FreezeAPIServer() error {
	if err := c.signalAPIServer(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze kube-apiserver: %w", err)
	}
	return nil
}

// ThawAPIServer has it go on with whatever was sent meanwhile.
func (c *Cluster) ThawAPIServer() error {
	if err := c.signalAPIServer(syscall.SIGCONT); err != nil {
		return fmt.Errorf("thaw kube-apiserver: %w", err)
	}
	return nil
}

// UserConfig returns the configuration of a client that the API server knows by
// this name and these groups. It may do what RBAC lets it do.
func (c *Cluster) UserConfig(name string, groups ...string) (*rest.Config, error) {
	user, err := c.env.AddUser(envtest.User{Name: name, Groups: groups}, rest.AnonymousClientConfig(c.Config))
	if err != nil {
		return nil, fmt.Errorf("add user %s: %w", name, err)
	}
	return user.Config(), nil
}

// WriteKubeconfig writes the administrator's kubeconfig, for the owner's eyes.
func (c *Cluster) WriteKubeconfig(path string) error {
	return os.WriteFile(path, c.Kubeconfig, 0o600)
}

// StartTest starts a cluster that ends with the test. Without KUBEBUILDER_ASSETS
// the first one on a machine gets the programs, which takes minutes; go test
// then needs a -timeout that leaves it the time.
func StartTest(t testing.TB, opts Options) *Cluster {
	t.Helper()
	if opts.Progress == nil {
		opts.Progress = os.Stderr
	}
	c, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	return c
}
