package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test"
)

var (
	heading       = regexp.MustCompile(`(?m)^## `)
	inlineCode    = regexp.MustCompile("`[^`]+`")
	inlineKubectl = regexp.MustCompile("`(kubectl [^`]+)`")
)

// alerts is the heading of the section that has no block of commands, but one section for each alert.
// test/monitoring compares these with the alerts.
const alerts = "Alerts"

// troublePages are the pages for who is on call.
var troublePages = []string{
	"find-why-a-consumer-gets-too-little", "find-why-a-node-is-not-ready", "find-out-what-hangs", "answer-an-alert",
}

// troubleshootingSections returns the sections of these pages by their headings.
func troubleshootingSections(t *testing.T) map[string]string {
	t.Helper()
	parts := map[string]string{}
	for _, page := range troublePages {
		text := test.Read(t, "../../docs/how-to/"+page+".md")
		for _, part := range heading.Split(text, -1)[1:] {
			title, body, _ := strings.Cut(part, "\n")
			parts[title] = body
		}
	}
	return parts
}

// commandOf returns the commands in the only console block of a section, and the output that the
// block shows.
func commandOf(t *testing.T, part string) (command, answer string) {
	t.Helper()
	blocks := test.Blocks(part, "console")
	if len(blocks) != 1 {
		t.Fatalf("a section has %d console blocks, want 1:\n%s", len(blocks), part)
	}
	var commands, answers strings.Builder
	for line := range strings.Lines(blocks[0].Text) {
		if c, ok := strings.CutPrefix(line, "$ "); ok {
			commands.WriteString(c)
		} else {
			answers.WriteString(line)
		}
	}
	return commands.String(), answers.String()
}

// shell runs commands with the cluster's kubectl and returns their output.
func shell(t *testing.T, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", commands)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.kubeconfig,
		"PATH="+filepath.Dir(cluster.kubectl)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", commands, err, out)
	}
	return string(out)
}

// columns returns the text without alignment.
func columns(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// awaitAnswer runs the command of a section until its output matches.
func awaitAnswer(t *testing.T, part, pattern string) {
	t.Helper()
	command, _ := commandOf(t, part)
	want := regexp.MustCompile(pattern)
	test.Eventually(t, func() error {
		if got := columns(shell(t, command)); !want.MatchString(got) {
			return fmt.Errorf("%s\nanswers %s\nwant a match of %s", command, got, pattern)
		}
		return nil
	})
}

// newHealthyCluster sets up a cluster with Liqo: rome is offered something in two classes, and has
// a slice.
func newHealthyCluster(t *testing.T) (*peering, *operator) {
	t.Helper()
	p := newPeering(t)
	test.Must(t, cluster.client.Delete(t.Context(), aSlice("probe", "gold")))
	deleteGrants(t)
	tenant(t)
	test.Must(t, corev1beta1.AddToScheme(scheme.Scheme))
	liqoCRD(t, "core.liqo.io_foreignclusters.yaml")
	create(t, &corev1beta1.ForeignCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "rome"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "rome"},
	})
	// A namespace cannot be deleted here: no controller finalizes it.
	liqo := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo"}}
	test.Must(t, client.IgnoreAlreadyExists(cluster.client.Create(t.Context(), liqo)))
	apply(t, "liqo-deployment.yaml")
	node(t)
	create(t, podOf(t))
	ready, port := true, int32(6001)
	create(t, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "proffer-x",
			Labels: map[string]string{discoveryv1.LabelServiceName: "proffer"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.244.1.7"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}},
			{Addresses: []string{"10.244.2.9"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}},
		},
		Ports: []discoveryv1.EndpointPort{{Port: &port}},
	})
	applyPolicy(t, "standard", `{consumers: {clusterIDs: [rome]}, offer: {fixed: {cpu: 3, memory: 4Gi, pods: 10}}}`)
	applyPolicy(t, "gold",
		`{class: gold, consumers: {clusterIDs: [rome]}, offer: {fixed: {cpu: 4, memory: 4Gi, pods: 10}}}`)
	o := start(t, container(t, deployment(t, render(t))).Args)
	o.AwaitReady(t)

	s := aSlice("mine", "gold")
	s.Spec.Resources = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("4Gi")}
	createAuthenticated(t, p, s)
	return p, o
}

// The test runs all commands of the page: first on a healthy cluster, and then with one problem of
// the page after the other.
func TestEachTroubleshootingCommandPrintsWhatThePageShows(t *testing.T) {
	parts := troubleshootingSections(t)
	p, o := newHealthyCluster(t)
	awaitAnswer(t, parts["A slice is not answered"], "ProfferGranted")
	awaitAnswer(t, parts["rome gets nothing"], `gold gold Offering .*\nstandard <none> Offering map`)

	t.Run("on a healthy cluster", func(t *testing.T) {
		for title, part := range parts {
			var command, answer string
			if title != alerts {
				command, answer = commandOf(t, part)
			}
			switch title {
			case alerts:
			case "rome gets too little":
				// Port forwarding needs a kubelet, which does not run here.
				forward, rest, _ := strings.Cut(command, "\n")
				if !strings.HasSuffix(forward, "port-forward service/proffer-metrics 8443 &") {
					t.Errorf("the first command does not forward the port: %s", forward)
				}
				remove(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "curious"}})
				remove(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "curious"}})
				rest = strings.ReplaceAll(rest, "localhost:8443", o.Address("metrics"))
				// The authorizer learns of the binding from a watch.
				setUp, ask, _ := strings.Cut(rest, "curl ")
				shell(t, setUp)
				test.Eventually(t, func() error {
					if got := shell(t, "curl "+ask); !strings.Contains(got, `"known":true`) || !strings.Contains(got, "fixed at 3") {
						return fmt.Errorf("the explanation is %s", got)
					}
					return nil
				})
			case "The plugin gets no answer":
				// No replica is behind the Service here. test/plugin runs the command with an operator.
				if got := shell(t, "! "+command); !strings.Contains(got, "no endpoints available") {
					t.Errorf("without a replica, %sanswers %s", command, got)
				}
			case "The numbers look old":
				awaitAnswer(t, part, `^LEADER RENEWED\n\S+ \d{4}-\S+Z\n?$`)
			default:
				if diff := cmp.Diff(columns(answer), columns(shell(t, command))); diff != "" {
					t.Errorf("%s: the output differs from the page (-page +output):\n%s", title, diff)
				}
			}
			for _, inline := range inlineKubectl.FindAllStringSubmatch(part, -1) {
				if out := shell(t, inline[1]); strings.TrimSpace(out) == "" || strings.HasPrefix(out, "No resources found") {
					t.Errorf("%s: %s finds nothing", title, inline[1])
				}
			}
		}
	})
	t.Run("policies that offer nothing to rome", func(t *testing.T) {
		applyPolicy(t, "misspelt",
			`{class: a, consumers: {clusterIDs: [roma]}, offer: {fixed: {cpu: 3, memory: 4Gi, pods: 10}}}`)
		applyPolicy(t, "nodeless",
			`{class: b, consumers: {clusterIDs: [rome]}, offer: {nodes: {selector: {matchLabels: {no: such}}}}}`)
		applyPolicy(t, "rehearsed", `{class: c, mode: DryRun, offer: {fixed: {cpu: 3, memory: 4Gi, pods: 10}}}`)
		applyPolicy(t, "outdone",
			`{priority: -1, consumers: {clusterIDs: [rome]}, offer: {fixed: {cpu: 3, memory: 4Gi, pods: 10}}}`)
		for _, line := range []string{`misspelt a \S+ <none>`, `nodeless b NoNodes`, `rehearsed c DryRun`,
			`outdone <none> Shadowed <none>`} {
			awaitAnswer(t, parts["rome gets nothing"], "\n"+line)
		}
	})
	t.Run("a slice of a class that is not served", func(t *testing.T) {
		unserved := strings.Replace(parts["A slice is not answered"], "rslice mine", "rslice unserved", 1)
		createAuthenticated(t, p, aSlice("unserved", "platinum"))
		awaitAnswer(t, unserved, `^class platinum\nAuthentication Accepted\s*$`)
		test.Eventually(t, func() error {
			if got := shell(t, "kubectl -n liqo-tenant-rome events"); !strings.Contains(got, "NotServed") {
				return fmt.Errorf("the events are\n%s", got)
			}
			return nil
		})
	})
	t.Run("a policy that is deleted", func(t *testing.T) {
		test.Must(t, cluster.client.Delete(t.Context(), named("gold")))
		awaitAnswer(t, parts["rome's node is NotReady"], `mine gold 0 0 ProfferWithdrawn`)
	})
	t.Run("an operator that has ended", func(t *testing.T) {
		test.Must(t, o.Stop(gracefulStop))
		awaitAnswer(t, parts["The numbers look old"], `\n(<none> )?\d{4}-\S+Z\n?$`)
	})
}

// TestThePageQuotesExplanationsExactly checks that the explanations on the page are those of the
// operator.
func TestThePageQuotesExplanationsExactly(t *testing.T) {
	source := test.Read(t, "../../internal/offer/explain.go")
	_, table, _ := strings.Cut(troubleshootingSections(t)["rome gets too little"], "|---|")
	n := 0
	number := regexp.MustCompile(`\d+`)
	for line := range strings.Lines(table) {
		cell := inlineCode.FindString(strings.SplitN(line, "|", 3)[min(1, strings.Count(line, "|"))])
		quoted := strings.Trim(cell, "`")
		if quoted == "" || strings.HasPrefix(quoted, `"known"`) {
			continue
		}
		n++
		pattern := number.ReplaceAllString(regexp.QuoteMeta(quoted), "%[sd]")
		pattern = strings.ReplaceAll(pattern, "%[sd]%", "%[sd]%%")
		if !regexp.MustCompile(pattern).MatchString(source) {
			t.Errorf("no explanation matches %q", quoted)
		}
	}
	if n < 6 {
		t.Errorf("%d explanations on the page, want at least 6", n)
	}
}
