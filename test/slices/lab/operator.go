package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OperatorNamespace is the namespace that config/default installs into.
const OperatorNamespace = "proffer-system"

// operator is a process of the program under test.
type operator struct {
	*process
	// health and metrics are the addresses of its probes, and of what it serves over HTTPS.
	health, metrics string
}

// Install applies config/default to the cluster, with these components.
func (c *Cluster) Install(ctx context.Context, components ...string) error {
	overlay, err := filepath.EvalSymlinks(c.dir)
	if err != nil {
		return err
	}
	config, err := filepath.Rel(overlay, filepath.Join(c.lab.programs.Checkout, "config"))
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
	return c.Do(ctx, "apply", "--server-side", "--force-conflicts", "-k", overlay)
}

// RunOperator installs the operator with these components, and runs it as StartOperator does.
func (c *Cluster) RunOperator(ctx context.Context, components ...string) error {
	if err := c.Install(ctx, components...); err != nil {
		return err
	}
	// The operator is a process: no pod has to stand for it.
	if err := c.Do(ctx, "-n", OperatorNamespace, "scale", "deployment/proffer", "--replicas=0"); err != nil {
		return err
	}
	return c.StartOperator(ctx)
}

// StartOperator runs the operator on the cluster as its ServiceAccount, with the present arguments of its
// Deployment followed by args, and waits until it is ready.
func (c *Cluster) StartOperator(ctx context.Context, args ...string) error {
	var deployment appsv1.Deployment
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: "proffer"}, &deployment); err != nil {
		return err
	}
	kubeconfig, err := c.kubeconfigOf(ctx, OperatorNamespace, "proffer")
	if err != nil {
		return err
	}
	o := &operator{}
	// Each operator has its own ports from 10000 on. Nothing else uses them in the namespace.
	c.lab.operators++
	ports := 10000 + 10*c.lab.operators
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
				o.metrics = address
			}
		}
		all = append(all, strings.ReplaceAll(arg, "$(CLUSTER_ID)", c.ID))
	}
	// A pod reads its own namespace from a file; a process needs the flag.
	all = append(append(all, "--leader-election-namespace="+OperatorNamespace), args...)
	cmd := command(c.lab.programs.Operator, all...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	if o.process, err = c.run(fmt.Sprintf("proffer-%d", c.lab.operators), cmd); err != nil {
		return err
	}
	c.operator = o
	return o.await(ctx, "the operator becomes ready", func(ctx context.Context) error { return probe(ctx, o.health) })
}

// Address returns the address of what the operator serves over HTTPS.
func (c *Cluster) Address() string { return c.operator.metrics }

// StopOperator ends the operator as the kubelet does. It returns an error unless the operator ends well and has
// printed nothing that must not occur.
func (c *Cluster) StopOperator(ctx context.Context) error {
	o := c.operator
	_ = o.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-o.exited:
		return errors.Join(o.err, o.checkLog())
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("the operator does not end: %w", context.Cause(ctx)), o.checkLog())
	}
}

// RestartOperator ends the operator and starts one with args.
func (c *Cluster) RestartOperator(ctx context.Context, args ...string) error {
	return errors.Join(c.StopOperator(ctx), c.StartOperator(ctx, args...))
}

// KillOperator ends the operator as a crash does. The next one takes over at once: it finds no Lease. The error is
// also about what the operator has printed that must not occur.
func (c *Cluster) KillOperator(ctx context.Context) error {
	o := c.operator
	if err := o.cmd.Process.Kill(); err != nil {
		return err
	}
	<-o.exited
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = OperatorNamespace, "proffer.dev"
	return errors.Join(o.checkLog(), c.Client.Delete(ctx, lease))
}

// checkLog returns an error with the lines of the operator's log that must not occur: races, panics, and requests
// that the API server rejected for lack of permission.
func (o *operator) checkLog() error {
	data, err := os.ReadFile(o.log)
	if err != nil {
		return err
	}
	var problems []string
	for line := range strings.Lines(string(data)) {
		lower := strings.ToLower(line)
		if slices.ContainsFunc(forbidden, func(word string) bool { return strings.Contains(lower, word) }) {
			problems = append(problems, strings.TrimSpace(line))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("the operator printed:\n%s", strings.Join(problems, "\n"))
	}
	return nil
}

// forbidden are the words of lines that must not occur in the operator's log.
var forbidden = []string{"data race", "panic", "fatal error", "forbidden", "unauthorized"}
