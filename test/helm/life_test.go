package helm

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

// cluster is an API server without controllers, so a Deployment starts no pods.
type cluster struct {
	kubectl, kubeconfig string
}

func newCluster(t *testing.T) cluster {
	t.Helper()
	log.SetLogger(logr.Discard()) // controller-runtime complains if nobody does.
	c := controlplane.StartTest(t, controlplane.Options{CRDDirs: []string{
		root + "/test/deploy/testdata/servicemonitor-crd.yaml", root + "/test/deploy/testdata/prometheusrule-crd.yaml",
	}})
	kubeconfig := c.KubeconfigFile(t)
	return cluster{kubectl: filepath.Join(c.Assets, "kubectl"), kubeconfig: kubeconfig}
}

// on runs kubectl and fails the test on an error.
func (c cluster) on(t *testing.T, args ...string) string {
	t.Helper()
	out, err := test.Kubectl(t.Context(), c.kubectl, c.kubeconfig, "", args...)
	test.Must(t, err)
	return out
}

// helm runs Helm on the cluster, in the operator's namespace, and fails the test on an error.
func (c cluster) helm(t *testing.T, args ...string) string {
	t.Helper()
	return mustHelm(t, append(args, "--kubeconfig", c.kubeconfig, "--namespace", namespace)...)
}

// there returns the names of the objects that exist in the cluster.
func (c cluster) there(t *testing.T, all objects) (names []string) {
	t.Helper()
	var text bytes.Buffer
	for _, u := range all {
		y, err := u.MarshalJSON()
		test.Must(t, err)
		text.Write(y)
		text.WriteString("\n---\n")
	}
	file := filepath.Join(filepath.Dir(c.kubeconfig), "objects.yaml")
	test.Must(t, os.WriteFile(file, text.Bytes(), 0o600))
	out := c.on(t, "get", "--ignore-not-found", "--output", `jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{"\n"}{end}`, "-f", file)
	names = strings.Fields(out)
	slices.Sort(names)
	return names
}

func names(all objects) []string { return keys(all, nil) }

// olderChart returns a copy of the chart with version 0.0.1, in which ResourcePolicy has another short
// name.
func olderChart(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "proffer")
	test.Must(t, os.CopyFS(dir, os.DirFS(chart)))
	edit(t, dir+"/Chart.yaml", "\nversion: 0.1.0\n", "\nversion: 0.0.1\n")
	edit(t, dir+"/files/crds/proffer.dev_resourcepolicies.yaml", "- rpol\n", "- older\n")
	return dir
}

func edit(t *testing.T, file, old, renewed string) {
	t.Helper()
	text := test.Read(t, file)
	if strings.Count(text, old) != 1 {
		t.Fatalf("%s has no %q, or several", file, old)
	}
	test.Must(t, os.WriteFile(file, []byte(strings.Replace(text, old, renewed, 1)), 0o600))
}

// create has the arguments of a first installation, as in the README.
var create = slices.Concat([]string{"--create-namespace", "--set", "namespace.create=true"}, withImage)

// make undeploy keeps the CRDs and the namespace.
func TestARefusalOfHelmAfterMakeUndeployIsInTheDocsWithTheFlagsItNeeds(t *testing.T) {
	c := newCluster(t)
	c.on(t, "create", "namespace", namespace)
	c.on(t, "apply", "-k", root+"/config/crd")
	install := slices.Concat([]string{"install", "proffer", chart, "--kubeconfig", c.kubeconfig, "--namespace", namespace}, create)
	const refusal = "invalid ownership metadata"
	if out, err := runHelm(install...); err == nil || !strings.Contains(out+err.Error(), refusal) {
		t.Errorf("got %v\n%s", err, out)
	}
	const flags = "--take-ownership --force-conflicts"
	mustHelm(t, append(install, strings.Fields(flags)...)...)
	for _, page := range []string{chart + "/README.md", root + "/docs/how-to/install.md"} {
		text := test.Read(t, page)
		if !strings.Contains(text, "refuses with `"+refusal+"`") || !strings.Contains(text, "`"+flags+"`") {
			t.Errorf("%s does not name the refusal and the flags", page)
		}
	}
}

// TestAReleaseLives goes through what an admin does with a release, in this order.
func TestAReleaseLives(t *testing.T) {
	c := newCluster(t)
	all := template(t, "--set", "namespace.create=true")
	shortName := func(t *testing.T) string {
		t.Helper()
		return c.on(t, "get", "crd", "resourcepolicies.proffer.dev", "-o", "jsonpath={.spec.names.shortNames[*]}")
	}
	requireThere := func(t *testing.T, want objects) {
		t.Helper()
		everything := template(t, everyToggle("namespace.create=true")...)
		if diff := cmp.Diff(names(want), c.there(t, everything)); diff != "" {
			t.Errorf("the chart's objects in the cluster differ (-want +got):\n%s", diff)
		}
	}

	t.Run("install creates the namespace with its labels, and everything else", func(t *testing.T) {
		out := c.helm(t, slices.Concat([]string{"install", "proffer", olderChart(t)}, create)...)
		requireThere(t, all)
		if got := c.on(t, "get", "namespace", namespace, "-o", `jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`); got != "restricted" {
			t.Errorf("the namespace enforces %q, want restricted", got)
		}
		policy := regexp.MustCompile(`echo '(.*)' \| kubectl apply -f -`).FindStringSubmatch(out)
		if policy == nil {
			t.Fatalf("the notes have no policy:\n%s", out)
		}
		file := filepath.Join(filepath.Dir(c.kubeconfig), "policy.yaml")
		test.Must(t, os.WriteFile(file, []byte(policy[1]), 0o600))
		c.on(t, "apply", "-f", file)
		if check := "\n  kubectl proffer check\n"; !strings.Contains(out, check) {
			t.Errorf("the notes do not name the check:\n%s", out)
		}
	})
	t.Run("upgrade changes the CRD, and adds every component", func(t *testing.T) {
		if got := shortName(t); got != "older" {
			t.Fatalf("the short name is %s before the upgrade", got)
		}
		c.helm(t, append([]string{"upgrade", "proffer", chart, "--reset-then-reuse-values"}, everyToggle()...)...)
		if got := shortName(t); got != "rpol" {
			t.Errorf("the short name is %s after the upgrade", got)
		}
		requireThere(t, template(t, everyToggle("namespace.create=true")...))
	})
	t.Run("upgrade keeps the list of classes", func(t *testing.T) {
		list := filepath.Join(filepath.Dir(c.kubeconfig), "list.yaml")
		test.Must(t, os.WriteFile(list, []byte(`{apiVersion: proffer.dev/v1alpha1, kind: AdmissionParams, metadata: {name: proffer-served-classes}, data: {gold: proffer}}`), 0o600))
		c.on(t, "-n", namespace, "apply", "-f", list) // as the operator creates it
		c.helm(t, "upgrade", "proffer", chart, "--reset-then-reuse-values", "--set", "servedClasses.others={default}")
		if got := c.on(t, "-n", namespace, "get", "admissionparams", "proffer-served-classes", "-o", "jsonpath={.data}"); got != `{"gold":"proffer"}` {
			t.Errorf("the list is %s", got)
		}
	})
	// The CRDs of the component orchestrator are kept like that of policies, and unlike that of Offers.
	withOrchestrations, toggled := maps.Clone(all), template(t, everyToggle()...)
	for _, kind := range []string{"orchestrations", "providerchoices"} {
		crd := "CustomResourceDefinition//" + kind + ".proffer.dev"
		withOrchestrations[crd] = toggled[crd]
	}
	t.Run("rollback takes the components away again, and the CRD back", func(t *testing.T) {
		c.helm(t, "rollback", "proffer", "1")
		requireThere(t, withOrchestrations)
		if got := shortName(t); got != "older" {
			t.Errorf("the short name is %s after the rollback", got)
		}
	})
	t.Run("a second release is refused", func(t *testing.T) {
		_, err := runHelm(slices.Concat([]string{"install", "second", chart, "--namespace", "second", "--create-namespace", "--kubeconfig", c.kubeconfig}, withImage)...)
		if err == nil || !strings.Contains(err.Error(), "cannot be imported into the current release") {
			t.Errorf("helm says %v", err)
		}
	})
	kept := objects{}
	for name, u := range withOrchestrations {
		if u.GetAnnotations()[resourcePolicy] == "keep" {
			kept[name] = u
		}
	}
	t.Run("uninstall keeps the CRDs, the policies and the namespace", func(t *testing.T) {
		c.helm(t, "uninstall", "proffer")
		requireThere(t, kept)
		if got := c.on(t, "get", "resourcepolicies", "-o", "name"); got != "resourcepolicy.proffer.dev/standard\n" {
			t.Errorf("the policies are %q", got)
		}
	})
	t.Run("install continues from what is kept", func(t *testing.T) {
		c.helm(t, slices.Concat([]string{"install", "proffer", chart}, create)...)
		requireThere(t, withOrchestrations)
		if got := shortName(t); got != "rpol" {
			t.Errorf("the short name is %s after the installation", got)
		}
	})
	t.Run("uninstall without keep deletes the CRDs too", func(t *testing.T) {
		c.helm(t, "upgrade", "proffer", chart, "--reset-then-reuse-values", "--set", "crds.keep=false")
		c.helm(t, "uninstall", "proffer")
		for _, crd := range []string{"resourcepolicies.proffer.dev", "grants.proffer.dev", "admissionparams.proffer.dev"} {
			// A CRD is marked until its objects are deleted, and then it is gone.
			if got := c.on(t, "get", "crd", crd, "--ignore-not-found", "-o", "jsonpath={.kind}{.metadata.deletionTimestamp}"); got == "CustomResourceDefinition" {
				t.Errorf("%s is kept", crd)
			}
		}
		c.on(t, "get", "namespace", namespace)
	})
}

// everyToggle sets these values, and each component except older.
func everyToggle(values ...string) (args []string) {
	for component, toggle := range toggles {
		if component != older {
			values = append(values, toggle)
		}
	}
	return []string{"--set", strings.Join(values, ",")}
}

var folded = regexp.MustCompile(` \\\n\s+`)

// commands returns the commands in the console blocks of a text, without the prompt.
func commands(text string) (lines []string) {
	for _, block := range test.Blocks(text, "console") {
		for line := range strings.Lines(folded.ReplaceAllString(block.Text, " ")) {
			if line, ok := strings.CutPrefix(line, "$ "); ok {
				line, _, _ = strings.Cut(line, " #")
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}

// TestTheCommandsOfTheReadmeWork runs them in their order. The commands of docs/how-to on the chart are
// among them.
func TestTheCommandsOfTheReadmeWork(t *testing.T) {
	readme := test.Read(t, chart+"/README.md")
	pages, err := filepath.Glob(root + "/docs/how-to/*.md")
	test.Must(t, err)
	var others []string
	for _, page := range pages {
		text := test.Read(t, page)
		others = append(others, commands(text)...)
	}
	// The paths in newCluster are relative to this package, those of the commands to the repository.
	c, deployed := newCluster(t), newCluster(t)
	t.Chdir(root)
	lines, ran := commands(readme), 0
	for _, line := range lines {
		words := strings.Fields(line)
		switch {
		// test/image runs make image-push, and no controller rolls out a Deployment here.
		case words[0] == "make", strings.Contains(line, "rollout status"):
			continue
		case strings.Contains(line, "--take-ownership"):
			c = deployed
			c.on(t, "apply", "-k", "config/default")
		case strings.HasPrefix(line, "kubectl delete crd"), strings.HasPrefix(line, "kubectl delete namespace"):
			words = append(words, "--wait=false") // Controllers complete it.
		}
		ran++
		switch words[0] {
		case "helm":
			mustHelm(t, append(words[1:], "--kubeconfig", c.kubeconfig)...)
		case "kubectl":
			c.on(t, words[1:]...)
		default:
			t.Errorf("the README has the command %s", line)
		}
	}
	if ran < 7 {
		t.Errorf("%d commands ran, want 7 at least", ran)
	}
	for _, line := range others {
		if strings.Contains(line, "charts/proffer") && !slices.Contains(lines, line) {
			t.Errorf("docs/how-to has a command that the README of the chart lacks: %s", line)
		}
	}
}
