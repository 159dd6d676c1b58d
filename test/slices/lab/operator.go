package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OperatorNamespace is the namespace that config/default installs into.
const OperatorNamespace = "proffer-system"

// An Operator is a process of the program under test.
type Operator struct {
	*process
	health string
	// Metrics is the address of what it serves over HTTPS.
	Metrics string
}

// Install applies config/default to the cluster, with these components.
func (c *Cluster) Install(ctx context.Context, components ...string) error {
	overlay, err := filepath.EvalSymlinks(c.dir)
	if err != nil {
		return err
	}
	config, err := filepath.Rel(overlay, filepath.Join(c.programs.Checkout, "config"))
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
	// Without --server-side, kubectl reads the API's schema again for each object that exists.
	_, err = c.Kubectl(ctx, "", "apply", "--server-side", "--force-conflicts", "-k", overlay)
	return err
}

// RunOperator installs the operator with these components, and runs it as StartOperator does.
func (c *Cluster) RunOperator(ctx context.Context, number int, components ...string) (*Operator, error) {
	if err := c.Install(ctx, components...); err != nil {
		return nil, err
	}
	// The operator is a process: no pod has to stand for it.
	_, err := c.Kubectl(ctx, "", "-n", OperatorNamespace, "scale", "deployment/proffer", "--replicas=0")
	if err != nil {
		return nil, err
	}
	return c.StartOperator(ctx, number)
}

// StartOperator runs the operator on the cluster as its ServiceAccount, with the arguments of its
// Deployment followed by args, and waits until it is ready. Operators that run at the same time, on
// whichever cluster, need different numbers.
func (c *Cluster) StartOperator(ctx context.Context, number int, args ...string) (*Operator, error) {
	var deployment appsv1.Deployment
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: "proffer"}, &deployment); err != nil {
		return nil, err
	}
	kubeconfig, err := c.kubeconfigOf(ctx, OperatorNamespace, "proffer")
	if err != nil {
		return nil, err
	}
	o := &Operator{}
	// Each operator has its own ports from 10000 on. Nothing else uses them in the namespace.
	ports := 10000 + 10*number
	var all []string
	for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
		if flag, _, ok := strings.Cut(arg, "-bind-address="); ok {
			address := fmt.Sprintf("127.0.0.1:%d", ports)
			ports++
			arg = flag + "-bind-address=" + address
			switch flag {
			case "--health-probe":
				o.health = address
			case "--metrics":
				o.Metrics = address
			}
		}
		all = append(all, strings.ReplaceAll(arg, "$(CLUSTER_ID)", c.ID))
	}
	// A pod reads its own namespace from a file; a process needs the flag.
	all = append(append(all, "--leader-election-namespace="+OperatorNamespace), args...)
	cmd := command(c.programs.Operator, all...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	if o.process, err = c.run(fmt.Sprintf("proffer-%d", number), cmd); err != nil {
		return nil, err
	}
	return o, o.await(ctx, "the operator becomes ready", func(ctx context.Context) error { return probe(ctx, o.health) })
}

// Stop sends SIGTERM and returns how the operator ended.
func (o *Operator) Stop(ctx context.Context) error {
	_ = o.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-o.exited:
		return o.err
	case <-ctx.Done():
		return fmt.Errorf("the operator does not end: %w", context.Cause(ctx))
	}
}

// Kill sends SIGKILL and returns once the operator has ended.
func (o *Operator) Kill() error {
	if err := o.cmd.Process.Kill(); err != nil {
		return err
	}
	<-o.exited
	return nil
}

// DropLease deletes the Lease of an operator that was killed, so that the next one takes over at once.
func (c *Cluster) DropLease(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = OperatorNamespace, "proffer.dev"
	return c.Client.Delete(ctx, lease)
}

// Problems returns the lines of the operator's log that must not occur: races, panics, and requests
// that the API server rejected for lack of permission.
func (o *Operator) Problems() ([]string, error) {
	data, err := os.ReadFile(o.log)
	if err != nil {
		return nil, err
	}
	var problems []string
	for line := range strings.Lines(string(data)) {
		lower := strings.ToLower(line)
		for _, word := range []string{"data race", "panic", "fatal error", "forbidden", "unauthorized"} {
			if strings.Contains(lower, word) {
				problems = append(problems, strings.TrimSpace(line))
				break
			}
		}
	}
	return problems, nil
}
