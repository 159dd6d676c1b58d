package migrate

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/operatortest"
)

// deployment is one of the plugin fixed-resources, unless its containers are changed.
func deployment(args ...string) *appsv1.Deployment {
	return of(corev1.Container{Name: "plugin", Image: "ghcr.io/liqotech/fixed-resources:latest", Args: args})
}

func of(containers ...corev1.Container) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "plugin"}}
	d.Spec.Template.Spec.Containers = containers
	return d
}

func fromFile(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d, err := readDeployment(strings.NewReader(test.Read(t, filepath.Join("testdata", name))), "")
	test.Must(t, err)
	return d
}

func convert(t *testing.T, d *appsv1.Deployment) *Converted {
	t.Helper()
	c, err := Convert(d, Options{})
	test.Must(t, err)
	return c
}

func TestTheManifestsOfThePluginsAreConverted(t *testing.T) {
	for _, p := range []plugin{fixedResources, nodeLabelsResources} {
		t.Run(string(p), func(t *testing.T) {
			c := convert(t, fromFile(t, string(p)+".yaml"))
			operatortest.Golden(t, string(p)+".golden.yaml", strings.Split(strings.TrimSuffix(string(c.Manifest), "\n"), "\n"))
			for line := range strings.Lines(string(c.Manifest)) {
				if len(line) > commentWidth+1 {
					t.Errorf("%d columns: %s", len(line)-1, line)
				}
			}
		})
	}
}

func TestEachWayToWriteAnArgumentIsUnderstood(t *testing.T) {
	cases := map[string]struct {
		container corev1.Container
		want      v1alpha1.PolicyOffer
	}{
		"one argument for each resource": {
			corev1.Container{Image: "fixed-resources", Args: []string{"--resource=cpu=1", "--resource=memory=1Gi", "--resource=pods=5"}},
			v1alpha1.PolicyOffer{Fixed: kubetest.Quantities("cpu", "1", "memory", "1Gi", "pods", "5")},
		},
		"the value as an argument of its own": {
			corev1.Container{Image: "fixed-resources", Args: []string{"--resource", "cpu=1", "--port", "6002"}},
			v1alpha1.PolicyOffer{Fixed: kubetest.Quantities("cpu", "1")},
		},
		"several resources with commas between them": {
			corev1.Container{Image: "fixed-resources", Args: []string{"--resource=cpu=1,memory=1Gi", "--resource=pods=5"}},
			v1alpha1.PolicyOffer{Fixed: kubetest.Quantities("cpu", "1", "memory", "1Gi", "pods", "5")},
		},
		"the last of two values": {
			corev1.Container{Image: "fixed-resources", Args: []string{"--resource=cpu=1", "--resource=cpu=2"}},
			v1alpha1.PolicyOffer{Fixed: kubetest.Quantities("cpu", "2")},
		},
		"a resource with a domain": {
			corev1.Container{Image: "fixed-resources", Args: []string{"--resource=nvidia.com/gpu=4"}},
			v1alpha1.PolicyOffer{Fixed: kubetest.Quantities("nvidia.com/gpu", "4")},
		},
		"a command instead of the image's entrypoint": {
			corev1.Container{Command: []string{"/usr/bin/liqo-resource-plugin", "--resource=cpu=1"}, Args: []string{"--resource=pods=5"}},
			v1alpha1.PolicyOffer{Fixed: kubetest.Quantities("cpu", "1", "pods", "5")},
		},
		"an image with a port, a tag and a digest": {
			corev1.Container{Image: "localhost:5000/a/fixed-resources:v1@sha256:0123", Args: []string{"--resource=cpu=1"}},
			v1alpha1.PolicyOffer{Fixed: kubetest.Quantities("cpu", "1")},
		},
		"a label whose value looks like a boolean": {
			corev1.Container{Args: []string{"--node-label=liqo=true", "-v", "4", "--logtostderr", "--v=2"}},
			v1alpha1.PolicyOffer{Nodes: &v1alpha1.Nodes{
				Selector:    &metav1.LabelSelector{MatchLabels: map[string]string{"liqo": "true"}},
				Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := convert(t, of(c.container)).Policy.Spec.Offer
			if diff := cmp.Diff(c.want, got, cmp.Comparer(func(a, b v1alpha1.Quantity) bool { return a.Cmp(b.Quantity) == 0 })); diff != "" {
				t.Errorf("offer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThePluginIsFoundBesideOtherContainers(t *testing.T) {
	mesh := corev1.Container{Name: "istio-proxy", Image: "istio/proxyv2", Args: []string{"proxy", "sidecar"}}
	first := corev1.Container{Name: "first", Image: "fixed-resources", Args: []string{"--resource=cpu=1"}}
	second := corev1.Container{Name: "second", Image: "fixed-resources", Args: []string{"--resource=cpu=2"}}
	if got := convert(t, of(mesh, first)).Policy.Spec.Offer.Fixed["cpu"]; got.Value() != 1 {
		t.Errorf("cpu %v, want 1", got.Value())
	}
	c, err := Convert(of(first, second), Options{Container: "second", Name: "chosen"})
	test.Must(t, err)
	if got := c.Policy.Spec.Offer.Fixed["cpu"]; got.Value() != 2 || c.Policy.Name != "chosen" {
		t.Errorf("policy %s of cpu %v, want chosen of 2", c.Policy.Name, got.Value())
	}
}

func TestWhatCannotBeConvertedIsRefusedByName(t *testing.T) {
	two := []corev1.Container{
		{Name: "first", Image: "fixed-resources", Args: []string{"--resource=cpu=1"}},
		{Name: "second", Image: "node-labels-resources", Args: []string{"--node-label=a=b"}},
	}
	cases := map[string]struct {
		deployment *appsv1.Deployment
		options    Options
		want       []string
	}{
		"unknown arguments":         {deployment("--resource=cpu=1", "--factor=2", "-x", "--quiet", "word"), Options{}, []string{"--factor, --quiet, -x, word"}},
		"an argument of the other":  {deployment("--resource=cpu=1", "--node-label=a=b"), Options{}, []string{"fixed-resources has no such arguments: --node-label."}},
		"a log flag without logs":   {deployment("--resource=cpu=1", "-v=4"), Options{}, []string{"no such arguments: -v."}},
		"an environment variable":   {deployment("--resource=cpu=$(CPU)"), Options{}, []string{"--resource=cpu=$(CPU)", "environment variable"}},
		"help":                      {deployment("--resource=cpu=1", "--help"), Options{}, []string{"--help"}},
		"no resource":               {deployment("--port=6001"), Options{}, []string{"--resource is required"}},
		"not a pair":                {deployment("--resource=cpu"), Options{}, []string{"would not start", `"cpu" is not of the form name=value`}},
		"not a quantity":            {deployment("--resource=cpu=many"), Options{}, []string{"would not start", "cpu=many"}},
		"not a port":                {deployment("--resource=cpu=1", "--port=http"), Options{}, []string{"would not start", "--port"}},
		"a negative amount":         {deployment("--resource=cpu=-5"), Options{}, []string{"--resource", "spec.offer.fixed[cpu]", v1alpha1.AmountNegative}},
		"a fraction of a byte":      {deployment("--resource=memory=100m"), Options{}, []string{"spec.offer.fixed[memory]", v1alpha1.AmountNotWhole}},
		"a misspelt resource":       {deployment("--resource=cpu=1", "--resource=pod=10"), Options{}, []string{"write pods"}},
		"a label that is no label":  {of(corev1.Container{Args: []string{"--node-label=a b=c"}}), Options{}, []string{"--node-label", "spec.offer.nodes.selector"}},
		"the third plugin":          {of(corev1.Container{Image: "per-node-resources"}), Options{}, []string{"per-node-resources cannot be converted"}},
		"no plugin":                 {of(corev1.Container{Name: "web", Image: "nginx"}), Options{}, []string{"no container runs fixed-resources or node-labels-resources"}},
		"two plugins":               {of(two...), Options{}, []string{"first and second", "--container"}},
		"a container there is not":  {of(two...), Options{Container: "third"}, []string{"no container third", "first, second"}},
		"a name that is not a name": {deployment("--resource=cpu=1"), Options{Name: "My Policy"}, []string{`"My Policy"`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Convert(c.deployment, c.options)
			if err == nil {
				t.Fatal("converted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want %q in it", err, want)
				}
			}
		})
	}
}

func TestArgumentsWithoutAnEqualAreWarnedOf(t *testing.T) {
	stopped := deployment("--resource=cpu=1", "--resource=cpu=2", "--port=6002")
	stopped.Spec.Replicas = new(int32)
	cases := map[string]struct {
		deployment *appsv1.Deployment
		want       []string
	}{
		"none": {deployment("--resource=cpu=1,memory=1Gi,pods=5"), nil},
		"fixed": {stopped, []string{
			"--port=6002 has no equivalent in a policy: the operator listens on --grpc-bind-address, by default :6001.",
			"--resource sets cpu more than once: the last value counts, as for the plugin.",
			"The plugin does not offer memory and pods: virtual nodes of consumers take no pods without it.",
			"The Deployment has 0 replicas: the plugin offers nothing at present.",
		}},
		"node labels": {of(corev1.Container{Args: []string{"--node-label=a=b", "--logtostderr", "-v", "4"}}), []string{
			"--logtostderr=true has no equivalent in a policy: it only affects the log. The operator has --zap-log-level.",
			"-v=4 has no equivalent in a policy: it only affects the log. The operator has --zap-log-level.",
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := convert(t, c.deployment)
			if diff := cmp.Diff(c.want, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			comments := strings.Join(strings.Fields(strings.ReplaceAll(string(got.Manifest), "\n#", "")), " ")
			for _, warning := range c.want {
				if !strings.Contains(comments, warning) {
					t.Errorf("the manifest lacks %q:\n%s", warning, got.Manifest)
				}
			}
		})
	}
}

// A Deployment of a file may hold any text.
func TestNoTextOfTheDeploymentLeavesItsComment(t *testing.T) {
	d := deployment("--resource=cpu=1,pods=5,memory=1Gi")
	d.Name, d.Spec.Template.Spec.Containers[0].Image = "a\nkind: Secret", "fixed-resources:x\u2028data: {}"
	c := convert(t, d)
	if diff := cmp.Diff(kubetest.Quantities("cpu", "1", "pods", "5", "memory", "1Gi").ResourceList(), c.Policy.Spec.Offer.Fixed.ResourceList()); diff != "" {
		t.Errorf("offer (-want +got):\n%s", diff)
	}
}

func TestReadingAFileFindsTheDeployment(t *testing.T) {
	const one, other = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: one}}", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: other}}"
	cases := map[string]struct{ text, name, want, problem string }{
		"the only one":      {text: "{apiVersion: v1, kind: Service}\n---\n" + one, want: "one"},
		"by name":           {text: one + "\n---\n" + other, name: "other", want: "other"},
		"in a list":         {text: "{apiVersion: v1, kind: List, items: [" + one + "]}", want: "one"},
		"several":           {text: one + "\n---\n" + other, problem: "name one of one, other"},
		"another name":      {text: one, name: "third", problem: "no Deployment third"},
		"none":              {text: "{apiVersion: v1, kind: Service}", problem: "no Deployment of apps/v1"},
		"nothing":           {text: "", problem: "no Deployment of apps/v1"},
		"not YAML":          {text: "{", problem: "EOF"},
		"not a Deployment":  {text: "{apiVersion: apps/v1, kind: Deployment, spec: 3}", problem: "decoding Deployment"},
		"of another domain": {text: "{apiVersion: example.com/v1, kind: Deployment}", problem: "no Deployment of apps/v1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := readDeployment(strings.NewReader(c.text), c.name)
			switch {
			case c.problem == "" && err != nil:
				t.Error(err)
			case c.problem == "":
				if d.Name != c.want {
					t.Errorf("Deployment %s, want %s", d.Name, c.want)
				}
			case err == nil || !strings.Contains(err.Error(), c.problem):
				t.Errorf("error %v, want %q", err, c.problem)
			}
		})
	}
}
