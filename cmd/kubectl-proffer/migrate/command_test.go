package migrate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// caller runs the command as a user of a cluster.
type caller struct {
	t          *testing.T
	kubeconfig string
	// user is empty for the administrator.
	user string
	in   string
}

// admin is the administrator of the test's cluster, whose namespace liqo exists.
func admin(t *testing.T) caller {
	t.Helper()
	file := kubetest.Cluster(t).KubeconfigFile(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo"}}
	if err := kubetest.API(t).Create(t.Context(), namespace); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	return caller{t: t, kubeconfig: file}
}

// nobody has no cluster.
func nobody(t *testing.T) caller {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	const text = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]}"
	test.Must(t, os.WriteFile(file, []byte(text), 0o600))
	return caller{t: t, kubeconfig: file}
}

func (c caller) migrate(args ...string) (out, warnings string, err error) {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &c.kubeconfig
	flags.Namespace = new("liqo")
	if c.user != "" {
		flags.Impersonate = &c.user
	}
	streams, stdin, stdout, stderr := genericiooptions.NewTestIOStreams()
	stdin.WriteString(c.in)
	cmd := NewCommand(operatorclient.NewFlags(flags), streams)
	cmd.SetArgs(append([]string{}, args...)) // Nil stands for those of the test.
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(c.t.Context())
	return stdout.String(), stderr.String(), err
}

func (c caller) fails(want string, args ...string) {
	c.t.Helper()
	out, _, err := c.migrate(args...)
	if err == nil || !strings.Contains(err.Error(), want) || out != "" {
		c.t.Errorf("%v: error %v and output %q, want an error with %q and no output", args, err, out, want)
	}
}

func goldenOf(t *testing.T, p plugin) string {
	t.Helper()
	return test.Read(t, filepath.Join("testdata", string(p)+".golden.yaml"))
}

// deploy creates the Deployment of a file for the time of the test.
func deploy(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(kubetest.Cluster(t).Config)
	test.Must(t, err)
	d := fromFile(t, name)
	deployments := clientset.AppsV1().Deployments(d.Namespace)
	if _, err := deployments.Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		test.Check(t, deployments.Delete(context.WithoutCancel(t.Context()), d.Name, metav1.DeleteOptions{}))
	})
	return d
}

func TestADeploymentOfTheClusterIsConverted(t *testing.T) {
	c := admin(t)
	for _, p := range []plugin{fixedResources, nodeLabelsResources} {
		d := deploy(t, string(p)+".yaml")
		out, warnings, err := c.migrate("deployment/" + d.Name)
		test.Must(t, err)
		if diff := cmp.Diff(goldenOf(t, p), out); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p, diff)
		}
		if strings.Contains(warnings, "did not check") || !strings.Contains(warnings, "has no equivalent in a policy") {
			t.Errorf("%s: warnings %q", p, warnings)
		}
		if want := "The policy was not compared with what the plugin answers: there is no ServiceAccount proffer-simulator in namespace " +
			"proffer-system: the operator is not installed there"; !strings.Contains(warnings, want) {
			t.Errorf("%s: warnings %q, want %q", p, warnings, want)
		}
	}
	c.fails("no Deployment other in namespace liqo", "other")
	c.fails("write the name of the plugin's Deployment")
}

// The dry run leaves nothing behind, and the API server accepts what was printed.
func TestTheAPIServerAcceptsThePolicyAndKeepsNothingOfTheDryRun(t *testing.T) {
	c := admin(t)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	out, notes, err := c.migrate("-f", "testdata/node-labels-resources.yaml", "--write", file, "--name", "moved")
	if err != nil || out != "" || !strings.Contains(notes, "kubectl apply -f "+file) {
		t.Fatalf("output %q, notes %q, error %v", out, notes, err)
	}
	text := test.Read(t, file)
	policies := &v1alpha1.ResourcePolicyList{}
	if err := kubetest.API(t).List(t.Context(), policies); err != nil || len(policies.Items) != 0 {
		t.Errorf("%d policies after the dry run, error %v", len(policies.Items), err)
	}
	converted := convert(t, fromFile(t, "node-labels-resources.yaml"))
	if want := strings.Replace(string(converted.Manifest), "name: node-labels-resources", "name: moved", 1); text != want {
		t.Errorf("the file (-want +got):\n%s", cmp.Diff(want, text))
	}
	kubetest.Create(t, converted.Policy)
	// The policy of the name may have another source: it is replaced.
	_, notes, err = c.migrate("-f", "testdata/fixed-resources.yaml", "--name", converted.Policy.Name)
	if err != nil || strings.Contains(notes, "did not check") {
		t.Errorf("notes %q, error %v", notes, err)
	}
	c.fails("exists already", "-f", "testdata/node-labels-resources.yaml", "--write", file)
}

func TestARefusalOfTheAPIServerIsAnError(t *testing.T) {
	c := admin(t)
	var labels []string
	for i := range 65 { // The schema allows 64.
		labels = append(labels, fmt.Sprintf("label-%d=a", i))
	}
	c.in = "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a, args: ['--node-label=" + strings.Join(labels, ",") + "']}]}}}}"
	c.fails("at most 64 matchLabels", "-f", "-")
}

func TestAPolicyThatTheAPIServerCannotCheckIsPrintedWithTheReason(t *testing.T) {
	somebody := admin(t)
	somebody.user = "somebody"
	for reason, c := range map[string]caller{"the right to write resourcepolicies.proffer.dev": somebody, "connection refused": nobody(t)} {
		out, warnings, err := c.migrate("-f", "testdata/fixed-resources.yaml")
		if err != nil || out != goldenOf(t, fixedResources) {
			t.Errorf("error %v, output:\n%s", err, out)
		}
		if !strings.Contains(warnings, "The API server did not check the policy: ") || !strings.Contains(warnings, reason) {
			t.Errorf("warnings %q, want the reason %q", warnings, reason)
		}
		if !strings.Contains(warnings, "The policy was not compared with what the plugin answers: ") {
			t.Errorf("warnings %q do not say that nothing was compared", warnings)
		}
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	c := nobody(t)
	c.fails("no such file", "-f", "testdata/none.yaml")
	c.fails("reading testdata/fixed-resources.yaml: there is no Deployment other", "other", "-f", "testdata/fixed-resources.yaml")
	c.fails("converting Deployment liqo/liqo-fixed-resources-plugin: there is no container other", "-f", "testdata/fixed-resources.yaml", "--container=other")
}
