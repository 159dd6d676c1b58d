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

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"proffer.dev/proffer/hack/tether"
	"proffer.dev/proffer/test"
)

// StartTimeout is the timeout of each program, and of the API server until it serves CRDs that were installed: envtest
// waits for 10 s. A start takes 3 s on an idle machine, and much longer on one that compiles at the same time.
const StartTimeout = 2 * time.Minute

// Options configure a Cluster.
type Options struct {
	// CRDDirs are directories, or files, of CustomResourceDefinitions to install. A missing one is
	// an error.
	CRDDirs []string
	// APIServerFlags are flags of kube-apiserver without their dashes. They replace envtest's
	// values: "disable-admission-plugins": {} enables ServiceAccount admission again.
	APIServerFlags map[string][]string
	// EtcdFlags are flags of etcd in the same form.
	EtcdFlags map[string][]string
	// ClientCA is a file with CA certificates whose clients the API server also accepts, in
	// addition to those of UserConfig.
	ClientCA string
	// Progress receives how the programs are found. It may be nil.
	Progress io.Writer
	// Output receives the output of the programs. It may be nil.
	Output io.Writer
}

// A Cluster is a running etcd and kube-apiserver: an API without controllers, and without nodes
// until a test creates them.
type Cluster struct {
	// Config is the configuration of a member of system:masters, with a rate limit that no test
	// reaches. The caller must copy it before changing it.
	Config *rest.Config
	// Kubeconfig is the same configuration as a file, for kubectl and other processes.
	Kubeconfig []byte
	// Assets is the directory of the programs, including kubectl.
	Assets string

	env  *envtest.Environment
	work string
	// tether kills the programs if this process ends without Stop.
	tether *tether.Tether
	// others are the additional API servers.
	others []*exec.Cmd
}

// Start runs a new cluster on free ports of the loopback device. The caller must Stop it. If this
// process is killed, the programs are killed too.
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

// prepare creates the directories for certificates and data, which outlive an outage, and the
// scripts that start etcd and kube-apiserver. The scripts write the process ID to a file, because
// envtest does not expose it. The script of kube-apiserver also writes the flags, and adds the CAs
// of clients: envtest sets that flag, and writes its file just before the start.
func (c *Cluster) prepare(clientCA string) error {
	for _, dir := range []string{c.env.ControlPlane.APIServer.CertDir, c.env.ControlPlane.Etcd.DataDir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	quote := func(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
	etcd := fmt.Sprintf("#!/bin/sh\necho $$ >%s\nexec %s \"$@\"\n",
		quote(c.tether.File("etcd")), quote(filepath.Join(c.Assets, "etcd")))
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
	// Such a cluster is small and short-lived: collecting garbage less often takes a fifth of its processor time off.
	script += fmt.Sprintf("GOGC=${GOGC:-300} exec %s \"$@\"\n", quote(filepath.Join(c.Assets, "kube-apiserver")))
	return os.WriteFile(c.env.ControlPlane.APIServer.Path, []byte(script), 0o700)
}

func (c *Cluster) pidFile() string   { return c.tether.File("kube-apiserver") }
func (c *Cluster) flagsFile() string { return filepath.Join(c.work, "kube-apiserver.flags") }

// killAPIServer kills the server that the script last started. Without a server it does nothing.
func (c *Cluster) killAPIServer() error {
	err := c.signalAPIServer(syscall.SIGKILL)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	// The process ID may be reused from now on.
	return os.Remove(c.pidFile())
}

// signalAPIServer sends a signal to the server that the script last started.
func (c *Cluster) signalAPIServer(signal syscall.Signal) error {
	data, err := os.ReadFile(c.pidFile())
	if err == nil {
		var pid int
		if pid, err = strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			err = syscall.Kill(pid, signal)
		}
	}
	if err != nil {
		return fmt.Errorf("send %v to kube-apiserver: %w", signal, err)
	}
	return nil
}

func newEnvironment(assets, work string, opts Options) *envtest.Environment {
	apiServer := &envtest.APIServer{
		Path:    filepath.Join(work, "kube-apiserver"),
		CertDir: filepath.Join(work, "certs"),
		Out:     opts.Output,
		Err:     opts.Output,
	}
	// Without a default route kube-apiserver finds no address of its own to publish, and it does
	// not accept a loopback address for its Service.
	apiServer.Configure().Set("advertise-address", "127.0.0.1").Set("endpoint-reconciler-type", "none")
	for flag, values := range opts.APIServerFlags {
		apiServer.Configure().Set(flag, values...)
	}
	etcd := &envtest.Etcd{
		Path:    filepath.Join(work, "start-etcd"),
		DataDir: filepath.Join(work, "etcd"),
		Out:     opts.Output,
		Err:     opts.Output,
	}
	for flag, values := range opts.EtcdFlags {
		etcd.Configure().Set(flag, values...)
	}
	never := false
	return &envtest.Environment{
		ControlPlane: envtest.ControlPlane{
			APIServer:   apiServer,
			Etcd:        etcd,
			KubectlPath: filepath.Join(assets, "kubectl"),
		},
		// The environment must not decide this: a test must never write to a real cluster.
		UseExistingCluster:       &never,
		CRDDirectoryPaths:        opts.CRDDirs,
		ErrorIfCRDPathMissing:    true,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: StartTimeout},
		ControlPlaneStartTimeout: StartTimeout,
		ControlPlaneStopTimeout:  StartTimeout,
	}
}

// Stop ends all programs and removes their data. Further calls do nothing.
func (c *Cluster) Stop() error {
	if c.env == nil {
		return nil
	}
	killed := errors.Join(c.killAPIServer(), c.killOthers())
	stopped := ignoreGone(c.env.Stop())
	c.env = nil
	return errors.Join(killed, stopped, c.tether.Release(), os.RemoveAll(c.work))
}

// ignoreGone removes errors about signals to processes that no longer exist. envtest sends SIGTERM until
// it has noticed that the server, which we have killed, has ended.
func ignoreGone(err error) error {
	return utilerrors.FilterOut(err, func(err error) bool { return errors.Is(err, syscall.ESRCH) })
}

// StopAPIServer kills kube-apiserver but not etcd. As in an outage, watches break and connections
// are refused until StartAPIServer. It does not stop the server gracefully, because the server
// would wait a minute for watches to end.
func (c *Cluster) StopAPIServer() error {
	if err := c.killAPIServer(); err != nil {
		return fmt.Errorf("kill kube-apiserver: %w", err)
	}
	if err := ignoreGone(c.env.ControlPlane.APIServer.Stop()); err != nil {
		return fmt.Errorf("stop kube-apiserver: %w", err)
	}
	return nil
}

// StartAPIServer starts kube-apiserver again with the same port, certificates, keys of
// ServiceAccount tokens, and data. It returns once the server is healthy.
func (c *Cluster) StartAPIServer() error {
	if err := c.env.ControlPlane.APIServer.Start(); err != nil {
		return fmt.Errorf("start kube-apiserver again: %w", err)
	}
	return nil
}

// FreezeAPIServer stops kube-apiserver from running: connections stay open, but nothing is answered
// until ThawAPIServer.
func (c *Cluster) FreezeAPIServer() error { return c.signalAPIServer(syscall.SIGSTOP) }

// ThawAPIServer lets the server continue with everything that was sent meanwhile.
func (c *Cluster) ThawAPIServer() error { return c.signalAPIServer(syscall.SIGCONT) }

// UserConfig returns the configuration of a client that the API server authenticates as this user
// with these groups. RBAC applies to it.
func (c *Cluster) UserConfig(name string, groups ...string) (*rest.Config, error) {
	user, err := c.env.AddUser(envtest.User{Name: name, Groups: groups}, rest.AnonymousClientConfig(c.Config))
	if err != nil {
		return nil, fmt.Errorf("add user %s: %w", name, err)
	}
	return user.Config(), nil
}

// StartTest starts a cluster that ends with the test. Without KUBEBUILDER_ASSETS, the first call on
// a machine gets the programs, which takes minutes: then go test needs a longer -timeout.
func StartTest(t testing.TB, opts Options) *Cluster {
	t.Helper()
	if opts.Progress == nil {
		opts.Progress = os.Stderr
	}
	c, err := Start(t.Context(), opts)
	test.Must(t, err)
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	return c
}
