package command

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/process"
)

// fails runs the operator, which must exit with the given code, and returns its output.
func fails(t *testing.T, code int, args []string, env ...string) string {
	t.Helper()
	self, err := os.Executable()
	test.Must(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append([]string{asOperator + "=1"}, env...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != code {
		t.Errorf("the operator ended with %v, want exit code %d", err, code)
	}
	return log.String()
}

func TestAMissingKubeconfigGetsOneLineThatSaysWhatToWrite(t *testing.T) {
	empty := t.TempDir()
	broken := filepath.Join(empty, "broken")
	test.Must(t, os.WriteFile(broken, []byte("no kubeconfig"), 0o600))
	alias := filepath.Join(empty, "alias")
	test.Must(t, os.WriteFile(alias, []byte("users: [{name: a, user: {token: *s3cr3t }}]"), 0o600))
	home := "HOME=" + empty
	const nothing = "proffer: no API server is configured: write --kubeconfig=FILE or set KUBECONFIG; only a Pod needs neither\n"
	for name, tc := range map[string]struct {
		args, env []string
		want      string
	}{
		"no kubeconfig": {nil, []string{home}, nothing},
		"KUBECONFIG does not exist": {
			nil, []string{home, "KUBECONFIG=" + filepath.Join(empty, "missing")}, nothing,
		},
		"--kubeconfig does not exist": {
			[]string{"--kubeconfig=" + filepath.Join(empty, "missing")}, []string{home},
			"proffer: reading the kubeconfig of --kubeconfig=FILE or KUBECONFIG: stat " + empty,
		},
		"KUBECONFIG has another format": {
			nil, []string{home, "KUBECONFIG=" + broken},
			"proffer: reading the kubeconfig of --kubeconfig=FILE or KUBECONFIG: error loading config file",
		},
		"a token is no YAML": {
			nil, []string{home, "KUBECONFIG=" + alias},
			"proffer: reading the kubeconfig of --kubeconfig=FILE or KUBECONFIG: a text in it begins with *, and names no anchor",
		},
	} {
		got := fails(t, 1, tc.args, tc.env...)
		if !strings.HasPrefix(got, tc.want) || strings.Count(got, "\n") != 1 || strings.Contains(got, "s3cr3t") {
			t.Errorf("%s: got %q, want one line that begins with %q", name, got, tc.want)
		}
	}
}

func TestTheVersionIsPrintedByTheFlagAndByTheCommand(t *testing.T) {
	self, err := os.Executable()
	test.Must(t, err)
	for _, arg := range []string{"--version", "version"} {
		cmd := exec.CommandContext(t.Context(), self, arg)
		cmd.Env = []string{asOperator + "=1"}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "proffer "+VersionOf("")+"\n" {
			t.Errorf("%s: %v, %q", arg, err, out)
		}
	}
	if help := helpOf(t, "--help"); !strings.Contains(help, "\n  proffer version\n") {
		t.Errorf("the help does not name it:\n%s", help)
	}
}

func TestAnAddressThatIsInUseIsNamedWithItsFlag(t *testing.T) {
	cluster := isolationClusterOf(t, false)
	kubeconfig := cluster.KubeconfigFile(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	test.Must(t, err)
	defer func() { _ = taken.Close() }()
	flags := []string{
		"grpc-bind-address", "grpc-flat-bind-address", "metrics-bind-address", "health-probe-bind-address",
		"pprof-bind-address",
	}
	for _, used := range flags {
		t.Run(used, func(t *testing.T) {
			args := []string{"--kubeconfig=" + kubeconfig}
			for _, flag := range flags {
				at := taken.Addr().String()
				if flag != used {
					at = process.FreeAddress(t)
				}
				args = append(args, "--"+flag+"="+at)
			}
			log := fails(t, 1, args)
			const inUse = "\nproffer: --%s=%s is in use: stop the program that listens there, or write another port\n"
			want := fmt.Sprintf(inUse, used, taken.Addr())
			if !strings.HasSuffix(log, want) || strings.Contains(log, "stacktrace") ||
				strings.Contains(log, "goroutine") {
				t.Errorf("got\n%s\nwant at the end:%s", log, want)
			}
		})
	}
}

func TestANormalStartAndEndLogNoErrors(t *testing.T) {
	cluster := isolationClusterOf(t, false)
	p := startProcessWith(t, cluster, deployedLease, metav1.NamespaceDefault)
	p.AwaitReady(t)
	test.Check(t, p.Stop(time.Minute))
	for line := range strings.Lines(p.Log()) {
		if !strings.HasPrefix(line, `{"level":"info",`) {
			t.Errorf("a log line is not of level info: %s", line)
		}
	}
}

func TestTheFlagOfAnAddressIsFoundByHostAndPort(t *testing.T) {
	o, err := parseFlags([]string{
		"--grpc-bind-address=127.0.0.1:7000", "--grpc-flat-bind-address=127.0.0.2:7000", "--metrics-bind-address=:8443",
		"--health-probe-bind-address=localhost:8081", "--pprof-bind-address=[::1]:6060",
	}, &bytes.Buffer{}, Program{})
	test.Must(t, err)
	listening := func(address string, cause error) error {
		at, err := net.ResolveTCPAddr("tcp", address)
		test.Must(t, err)
		return fmt.Errorf("setting up: %w",
			&net.OpError{Op: "listen", Net: "tcp", Addr: at, Err: os.NewSyscallError("bind", cause)})
	}
	const busy = " is in use: stop the program that listens there, or write another port"
	other := errors.New("something else")
	for _, tc := range []struct {
		err  error
		want string
	}{
		{listening("127.0.0.1:7000", syscall.EADDRINUSE), "--grpc-bind-address=127.0.0.1:7000" + busy},
		{listening("127.0.0.2:7000", syscall.EADDRINUSE), "--grpc-flat-bind-address=127.0.0.2:7000" + busy},
		{listening(":8443", syscall.EADDRINUSE), "--metrics-bind-address=:8443" + busy},
		{listening("[::]:8443", syscall.EADDRINUSE), "--metrics-bind-address=:8443" + busy},
		{listening("127.0.0.1:8081", syscall.EADDRINUSE), "--health-probe-bind-address=localhost:8081" + busy},
		{listening("[::1]:6060", syscall.EADDRINUSE), "--pprof-bind-address=[::1]:6060" + busy},
		{
			listening("[::1]:6060", syscall.EACCES),
			"--pprof-bind-address=[::1]:6060 cannot be used to listen; write another address: bind: permission denied",
		},
		{
			listening("127.0.0.1:9", syscall.EADDRINUSE),
			"setting up: listen tcp 127.0.0.1:9: bind: address already in use",
		},
		{other, other.Error()},
	} {
		if got := o.inUse(tc.err).Error(); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
	if o.inUse(nil) != nil {
		t.Error("inUse turns nil into an error")
	}
}
