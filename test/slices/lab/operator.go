package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OperatorNamespace is where config/default puts the operator.
const OperatorNamespace = "proffer-system"

// An Operator is the program under test, in a process of its own.
type Operator struct {
	*process
	health string
}

// Install applies config/default to the provider, with components of config.
func (l *Lab) Install(ctx context.Context, components ...string) error {
	overlay, err := filepath.EvalSymlinks(l.Provider.dir)
	if err != nil {
		return err
	}
	config, err := filepath.Rel(overlay, filepath.Join(l.Provider.programs.Checkout, "config"))
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "resources: [%s/default]\ncomponents:\n", config)
	for _, component := range components {
		fmt.Fprintf(&text, "- %s/components/%s\n", config, component)
	}
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text.String()), 0o600); err != nil {
		return err
	}
	_, err = l.Provider.Kubectl(ctx, "", "apply", "-k", overlay)
	return err
}

// StartOperator runs the operator on the provider, with the arguments of its Deployment and those given, as its
// ServiceAccount, and waits until it is ready. The number tells operators that run at the same time apart.
func (l *Lab) StartOperator(ctx context.Context, number int, args ...string) (*Operator, error) {
	c := l.Provider
	var deployment appsv1.Deployment
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: "proffer"}, &deployment); err != nil {
		return nil, err
	}
	kubeconfig, err := c.kubeconfigOf(ctx, OperatorNamespace, "proffer")
	if err != nil {
		return nil, err
	}
	o := &Operator{}
	// Nobody else listens here; each operator has its own ports from 10000 on.
	ports := 10000 + 10*number
	var all []string
	for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
		if flag, _, ok := strings.Cut(arg, "-bind-address="); ok {
			address := fmt.Sprintf("127.0.0.1:%d", ports)
			ports++
			arg = flag + "-bind-address=" + address
			if flag == "--health-probe" {
				o.health = address
			}
		}
		all = append(all, arg)
	}
	// A pod finds its own namespace in a file; a process has to be told.
	all = append(append(all, "--leader-election-namespace="+OperatorNamespace), args...)
	cmd := command(c.programs.Operator, all...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	if o.process, err = c.run(fmt.Sprintf("proffer-%d", number), cmd); err != nil {
		return nil, err
	}
	return o, o.await(ctx, "the operator becomes ready", func(ctx context.Context) error { return probe(ctx, o.health) })
}

// Stop ends the operator as the kubelet does, and says how it ended.
func (o *Operator) Stop(ctx context.Context) error {
	_ = o.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-o.exited:
		return o.err
	case <-ctx.Done():
		return fmt.Errorf("the operator does not end: %w", context.Cause(ctx))
	}
}

// Kill ends the operator as a crash does, and returns when it has ended.
func (o *Operator) Kill() error {
	if err := o.cmd.Process.Kill(); err != nil {
		return err
	}
	<-o.exited
	return nil
}

// Faults are the lines of the operator's log that no good operator prints: races, panics, and what the API server refused.
func (o *Operator) Faults() ([]string, error) {
	data, err := os.ReadFile(o.log)
	if err != nil {
		return nil, err
	}
	var faults []string
	for line := range strings.Lines(string(data)) {
		lower := strings.ToLower(line)
		for _, fault := range []string{"data race", "panic", "fatal error", "forbidden", "unauthorized"} {
			if strings.Contains(lower, fault) {
				faults = append(faults, strings.TrimSpace(line))
				break
			}
		}
	}
	return faults, nil
}
