package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/complete"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// timeout bounds the dry run of the API server: a file is converted without a cluster too.
const timeout = 10 * time.Second

const long = `Convert a resource plugin of Liqo v0.6 to v0.10 to a ResourcePolicy that offers the same.

It reads the plugin's Deployment, from the cluster or from a file, and prints the policy. Comments
in the policy name the argument that each value comes from, the arguments that have no equivalent,
and what the policy offers differently. The plugins are fixed-resources and node-labels-resources.
An argument that the plugin does not have is an error.

Nothing is created. The API server checks the policy in a dry run, and the operator simulates it. A
table compares what the plugin answers with what the operator would offer to each consumer. It is
printed on standard error, or on standard output with --write. If the API server or the operator
cannot be asked, the policy is printed all the same, and a warning has the reason.

It needs the right to get the Deployment; to write policies, as in ClusterRole
proffer-resourcepolicy-editor, for the dry run; and Role %s in the namespace
of the operator, for the table.`

const examples = `  # The policy for the plugin that runs as this Deployment
  kubectl proffer migrate liqo-fixed-resources-plugin -n liqo

  # The policy in a file
  kubectl proffer migrate liqo-node-labels-resources-plugin -n liqo --write dedicated.yaml

  # The policy for the Deployment in a file
  kubectl proffer migrate -f deployment.yaml`

type migrateOptions struct {
	flags   *operatorclient.Flags
	streams genericiooptions.IOStreams

	deployment, file, write string
	convert                 Options
}

// NewCommand returns the command.
func NewCommand(flags *operatorclient.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &migrateOptions{flags: flags, streams: streams}
	cmd := &cobra.Command{
		Use:               "migrate DEPLOYMENT | -f FILE",
		Short:             "Convert a resource plugin of Liqo v0.x to a ResourcePolicy",
		Long:              fmt.Sprintf(long, operatorclient.Simulator.Role),
		Example:           examples,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.deployment = nameFrom(args[0])
			}
			return o.run(cmd.Context())
		},
	}
	set := cmd.Flags()
	set.StringVarP(&o.file, "filename", "f", "",
		"A file with the Deployment, instead of the cluster; - is standard input.")
	set.StringVar(&o.write, "write", "", "A file for the policy, which must not exist yet, instead of standard output.")
	set.StringVar(&o.convert.Name, "name", "", "The name of the policy; by default that of the plugin.")
	set.StringVar(&o.convert.Container, "container", "",
		"The name of the plugin's container; needed only if several containers run a plugin.")
	complete.Flag(cmd, "name", complete.Words())
	complete.Flag(cmd, "container", complete.Words())
	return cmd
}

// nameFrom returns the name of a Deployment that may be written as kubectl prints it.
func nameFrom(argument string) string {
	kind, name, ok := strings.Cut(argument, "/")
	if ok && (kind == "deployment" || kind == "deploy" || kind == "deployment.apps") {
		return name
	}
	return argument
}

func (o *migrateOptions) run(ctx context.Context) error {
	deployment, err := o.read(ctx)
	if err != nil {
		return err
	}
	converted, err := Convert(deployment, o.convert)
	if err != nil {
		return fmt.Errorf("converting Deployment %s: %w", klog.KObj(deployment), err)
	}
	notChecked, err := o.check(ctx, converted)
	if err != nil {
		return err
	}
	if err := o.print(converted.Manifest); err != nil {
		return err
	}
	for _, warning := range converted.Warnings {
		o.warn(warning)
	}
	if notChecked != "" {
		o.warn("The API server did not check the policy: " + notChecked)
	}
	if err := o.compare(ctx, converted); err != nil {
		return err
	}
	if o.write != "" {
		fmt.Fprintf(o.streams.ErrOut, "The policy is in %s. Next: kubectl apply -f %s\n", o.write, o.write)
	}
	return nil
}

func (o *migrateOptions) warn(text string) {
	fmt.Fprintln(o.streams.ErrOut, "warning:", output.Clean(text))
}

// compare prints what the plugin answers and what the operator would offer, or why it is not known.
func (o *migrateOptions) compare(ctx context.Context, converted *Converted) error {
	compared, err := o.ask(ctx, converted)
	if err != nil {
		o.warn("The policy was not compared with what the plugin answers: " + err.Error())
		return nil //nolint:nilerr // The policy has been printed.
	}
	p := output.For(o.streams.ErrOut) // The policy alone is on standard output.
	if o.write != "" {
		p = output.For(o.streams.Out)
	}
	if err := p.Lines(compared.lines(p.Width)...); err != nil {
		return err
	}
	for _, warning := range compared.warnings() {
		o.warn(warning)
	}
	return nil
}

// ask has the operator simulate the policy.
func (o *migrateOptions) ask(ctx context.Context, converted *Converted) (*comparison, error) {
	client := o.flags.Client(operatorclient.Simulator)
	defer output.Slow(o.streams.ErrOut, "The operator is evaluating the policy")()
	world, err := client.World(ctx)
	if err != nil {
		return nil, err
	}
	simulation, err := client.Simulate(ctx, &rest.Change{Apply: []v1alpha1.ResourcePolicy{*converted.Policy}})
	if err != nil {
		return nil, err
	}
	return &comparison{converted: converted, world: world, simulation: simulation}, nil
}

func (o *migrateOptions) read(ctx context.Context) (*appsv1.Deployment, error) {
	switch {
	case o.file == "-":
		return readDeployment(o.streams.In, o.deployment)
	case o.file != "":
		file, err := os.Open(o.file)
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // It was only read.
		deployment, err := readDeployment(file, o.deployment)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", o.file, err)
		}
		return deployment, nil
	case o.deployment == "":
		return nil, errors.New("write the name of the plugin's Deployment, or -f with a file that has it; " +
			"kubectl get deployments -n liqo lists them")
	}
	config, err := o.flags.RESTConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := o.flags.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	defer output.Slow(o.streams.ErrOut, "Waiting for the API server")()
	deployment, err := client.AppsV1().Deployments(namespace).Get(ctx, o.deployment, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Deployment %s in namespace %s: "+
			"name the plugin's namespace with -n, usually liqo", o.deployment, namespace)
	}
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("you may not get deployments.apps in namespace %s: "+
			"ask for this right, or pass a file that has the Deployment with -f", namespace)
	}
	if err != nil {
		return nil, operatorclient.Explain(err)
	}
	return deployment, nil
}

// check lets the API server check the policy. Its error is a refusal; why the API server could not
// check is returned as a sentence.
func (o *migrateOptions) check(ctx context.Context, converted *Converted) (notChecked string, err error) {
	policies, err := o.flags.Policies()
	if err != nil {
		return err.Error(), nil // A file is converted without a cluster too.
	}
	policy := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(converted.Manifest, &policy.Object); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer output.Slow(o.streams.ErrOut, "The API server is checking the policy")()
	_, err = operatorclient.DryRunPolicy(ctx, policies, policy)
	switch {
	case err == nil:
		return "", nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return "", fmt.Errorf("the API server refuses the policy: %w", err)
	case apierrors.IsNotFound(err):
		return "the CRD ResourcePolicy is not installed. Install Proffer before you apply the policy", nil
	case apierrors.IsForbidden(err):
		return "a dry run needs the right to write resourcepolicies.proffer.dev, " +
			"as in ClusterRole " + operatorclient.PolicyEditor, nil
	}
	return operatorclient.Explain(err).Error(), nil
}

// print writes the manifest to the standard output or to the new file.
func (o *migrateOptions) print(manifest []byte) error {
	if o.write == "" {
		_, err := o.streams.Out.Write(manifest)
		return err
	}
	file, err := os.OpenFile(o.write, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already: name another file with --write, or remove it", o.write)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(manifest)
	return errors.Join(err, file.Close())
}
