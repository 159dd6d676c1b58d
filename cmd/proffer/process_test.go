package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/hack/controlplane"
)

// asOperator in the environment makes the test binary the operator.
const asOperator = "PROFFER_TEST_AS_OPERATOR"

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) == "" {
		os.Exit(m.Run())
	}
	os.Exit(operate(os.Args[1:], func(o *options) {
		// As short as a Lease can be, so that a test can wait until it is lost.
		o.election.LeaseDuration, o.election.RenewDeadline, o.election.RetryPeriod = 2*time.Second, time.Second, 100*time.Millisecond
	}))
}

// process is the operator in a process of its own, with a short Lease in the namespace default.
type process struct {
	args   []string
	log    logBuffer
	cmd    *exec.Cmd
	exited chan struct{}
	err    error
}

// startProcess runs the operator with the arguments of its Deployment until the test ends.
func startProcess(t *testing.T, cluster *controlplane.Cluster) *process {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{args: deployedArgs(t), exited: make(chan struct{})}
	p.cmd = exec.Command(self, append(p.args, "--leader-election-namespace=default")...)
	p.cmd.Env = append(os.Environ(), asOperator+"=1", "KUBECONFIG="+kubeconfig)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("log of the operator:\n%s", p.log.String())
		}
	})
	return p
}

// deployedArgs are the arguments in the Deployment, at free ports of the loopback device.
func deployedArgs(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "manager", "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		t.Fatal(err)
	}
	args := d.Spec.Template.Spec.Containers[0].Args
	for i, arg := range args {
		if flag, _, ok := strings.Cut(arg, "-bind-address="); ok {
			args[i] = flag + "-bind-address=" + freeAddress(t)
		}
	}
	return args
}

// address is that of --<what>-bind-address.
func (p *process) address(what string) string {
	for _, arg := range p.args {
		if address, ok := strings.CutPrefix(arg, "--"+what+"-bind-address="); ok {
			return address
		}
	}
	return ""
}

// lives fails the test if the process has ended.
func (p *process) lives(t *testing.T) {
	t.Helper()
	select {
	case <-p.exited:
		t.Fatalf("the operator ended: %v", p.err)
	default:
	}
}

// terminate ends the process as the kubelet does.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		t.Fatal("the operator did not end")
	}
	if p.err != nil {
		t.Errorf("the operator ended with %v", p.err)
	}
}

// logBuffer is written by a process while a test reads it.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
