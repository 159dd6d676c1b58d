package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/operatortest"
)

// asPlugin in the environment makes the test binary the plugin.
const asPlugin = "PROFFER_TEST_AS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		main()
	}
	os.Exit(m.Run())
}

// plugin runs the plugin against a server and returns its exit status and what it printed.
func plugin(t *testing.T, s *operatortest.Server, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	status = run(t.Context(), append(args, "--kubeconfig="+s.Kubeconfig), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut})
	return status, out.String(), errOut.String()
}

const policyYAML = `apiVersion: proffer.dev/v1alpha1
kind: ResourcePolicy
metadata:
  name: %s
spec:
  offer:
    fixed: {cpu: 2, memory: 4Gi, pods: 20}
`

const deploymentYAML = `apiVersion: apps/v1
kind: Deployment
metadata: {name: liqo-fixed-resources-plugin, namespace: liqo}
spec: {template: {spec: {containers: [{name: plugin, args: [--resource=cpu=2]}]}}}
`

// examples prepares a directory for the commands in examples.
func examples(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for file, text := range map[string]string{
		"policy.yaml":        fmt.Sprintf(policyYAML, "silver"),
		"policies/one.yaml":  fmt.Sprintf(policyYAML, "bronze"),
		"policies/two.yaml":  fmt.Sprintf(policyYAML, "standard") + "---\n" + fmt.Sprintf(policyYAML, "gold-pool"),
		"policies/ns.yaml":   "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n",
		"policies/README.md": "not a manifest",
		"deployment.yaml":    deploymentYAML,
	} {
		test.Must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700))
		test.Must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	return dir
}

// Each example in --help works as it is written, with the plugin as kubectl starts it.
func TestTheExamplesInHelpWork(t *testing.T) {
	s := operatortest.Start(t)
	self, err := os.Executable()
	test.Must(t, err)
	kubectl := fmt.Sprintf("kubectl() { shift; %s=1 '%s' \"$@\"; }\n", asPlugin, self)
	// A command that does not end by itself takes the place of the shell, so that it ends with it.
	following := fmt.Sprintf("kubectl() { shift; %s=1 exec '%s' \"$@\"; }\n", asPlugin, self)
	n := 0
	for _, cmd := range commands() {
		if slices.Contains([]string{"pause", "stop", "resume"}, cmd.Name()) { // Their own test has an API server.
			continue
		}
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") || strings.Contains(line, "--world cluster") { // test/plugin has an API server
				continue
			}
			n++
			t.Run(line, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				script, follows := kubectl+line, strings.Contains(line, "--watch") || cmd.Name() == "dashboard"
				if follows {
					script = following + line
				}
				shell := exec.CommandContext(ctx, "sh", "-c", script)
				shell.Dir, shell.Env = examples(t), append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "DISPLAY=", "WAYLAND_DISPLAY=")
				var stdout, stderr bytes.Buffer
				shell.Stdout, shell.Stderr = &stdout, &stderr
				if follows {
					shell.Stdout = endsAfter{&stdout, cancel}
				}
				err := shell.Run()
				status := shell.ProcessState.ExitCode()
				want := 0
				switch {
				case strings.Contains(line, "--world"):
					want = 1 // The policy is new, and decides for nobody.
				case strings.Contains(line, "--federation"):
					want = 1 // One provider of the operator publishes nothing.
				case cmd.Name() == "simulate":
					want = 2 // The operator of the test answers every change with evictions.
				case cmd.Name() == "check":
					want = 2 // Nothing is installed in the API server of the test.
				case cmd.Name() == "status":
					want = 2 // A policy of the test is invalid.
				}
				if status != want && !follows {
					t.Errorf("exit status %d (%v)\n%s%s", status, err, &stdout, &stderr)
				}
				if stdout.Len() == 0 && !strings.Contains(line, ">") || strings.Contains(stderr.String(), "error:") {
					t.Errorf("it prints %q and %q", &stdout, &stderr)
				}
			})
		}
	}
	if n < 30 {
		t.Errorf("%d examples", n)
	}
}

// commands returns all commands that do something.
func commands() []*cobra.Command {
	return below(newRootCommand(genericiooptions.NewTestIOStreamsDiscard()))
}

// below returns the commands of a command, with theirs.
func below(cmd *cobra.Command) (all []*cobra.Command) {
	for _, c := range cmd.Commands() {
		all = append(append(all, c), below(c)...)
	}
	return all
}

func TestEachCommandHasAHelpThatIsReadable(t *testing.T) {
	sentence := regexp.MustCompile(`^[A-Z].*\.$`)
	for _, cmd := range commands() {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || cmd.Example == "" {
			t.Errorf("%s: %q, with the examples %q", cmd.Name(), cmd.Short, cmd.Example)
		}
		for line := range strings.SplitSeq(cmd.Long+"\n"+cmd.Example, "\n") {
			if len(line) > 100 {
				t.Errorf("%s: %d characters: %s", cmd.Name(), len(line), line)
			}
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if _, usage := pflag.UnquoteUsage(f); !sentence.MatchString(usage) && f.Name != "help" {
				t.Errorf("%s --%s: %q is no sentence", cmd.Name(), f.Name, usage)
			}
			if cmd.Root().PersistentFlags().Lookup(f.Name) != nil {
				t.Errorf("%s --%s hides the flag of all commands", cmd.Name(), f.Name)
			}
		})
	}
}

// What the table prints is tested in its package: this is what leads there.
func TestCommandsPrintTheOperatorsAnswer(t *testing.T) {
	s := operatortest.Start(t)
	for _, tc := range []struct {
		args string
		want []string
	}{
		{"status", []string{"Policy silver is not Ready, Invalid: ", "-> kubectl edit resourcepolicy silver", "20 minutes ago"}},
		{"status -o yaml", []string{"status: wrong", "page: consumers/rome"}},
		{"offers", []string{"rome", "oslo", "<anyone>", "nvidia.com/gpu 2", "cpu 2.5, memory 12Gi, pods 15"}},
		{"offers --by-resource --sort used", []string{"nvidia.com/gpu   2", "2.5"}},
		{"offers --resource nvidia.com/gpu", []string{"oslo       gold    gold-pool   nvidia.com/gpu 2   0         0"}},
		{"offers rome -o wide", []string{"rome", "gold", "7, 4 committed, 3 remaining; it has 3"}},
		{"offers rome --class silver", []string{"rome"}},
		{"offers -o yaml", []string{"revision: 42", "clusterID: rome"}},
		{"explain rome/gold/cpu", []string{"override 0", "gold-trial", "it is a dry run", "batch", "worker-2"}},
		{"explain rome/gold -o json", []string{`"class": "gold"`}},
		{"explain turin", []string{"no: it gets the default offer"}},
		{"top", []string{"gold-pool", "142%"}},
		{"top consumers", []string{"rome", "bern", "WAITING"}},
		{"top -o wide", []string{"gold-pool", "3.5"}},
		{"top policies -o json", []string{`"used": "3500m"`}},
		{"top consumers -o yaml", []string{"usedPercent: 41"}},
		{"top nodes -o json", []string{`"total": [`}},
		{"explain rome -o wide", []string{"cpu=4.0,memory=16384Mi"}},
		{"simulate --drain worker-1 -o wide", []string{"held at 2.5 by reclaim"}},
		{"top nodes", []string{"worker-3", "Cordoned", "gold-pool"}},
		{"snapshot", []string{`"clusterID":"rome"`}},
		{"snapshot --anonymise", []string{`"clusterID":"consumer-1"`}},
		{"simulate --drain worker-1", []string{"held at 2.5 by reclaim", "liqo-tenant-rome/batch"}},
		{"simulate --drain worker-1 -o markdown", []string{"**Pods of `oslo` would be evicted; "}},
		{"version", []string{"Plugin:    unknown\n", "Operator:  " + operatortest.Version + "\n"}},
		{"migrate liqo-fixed-resources-plugin -n liqo", []string{"kind: ResourcePolicy"}},
		{"migrate liqo-node-labels-resources-plugin -n liqo --write " + filepath.Join(t.TempDir(), "policy.yaml"), []string{"PROFFER", "<anyone>"}},
		{"check", []string{"CHECK", "-> Install Proffer"}},
		{"check -o yaml", []string{"status: wrong"}},
		{"catalog", []string{"milan", "nvidia.com/gpu 1.85 EUR/hour", "liqoctl create resourceslice milan-gold-"}},
		{"catalog -o wide", []string{"nvidia.com/gpu=2", "A100 nodes", "Exhausted"}},
	} {
		_, stdout, stderr := plugin(t, s, strings.Fields(tc.args)...)
		for _, want := range tc.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: no %q in\n%s%s", tc.args, want, stdout, stderr)
			}
		}
	}
}

func TestJSONIsWhatTheOperatorAnswers(t *testing.T) {
	s := operatortest.Start(t)
	_, stdout, _ := plugin(t, s, "offers", "-o", "json")
	var got rest.Offers
	test.Must(t, json.Unmarshal([]byte(stdout), &got))
	if diff := cmp.Diff(operatortest.Offers(), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAChangeGoesThroughTheDryRunToTheOperator(t *testing.T) {
	s := operatortest.Start(t)
	dir := examples(t)
	status, _, stderr := plugin(t, s, "simulate", "-f", filepath.Join(dir, "policies"), "--delete=standard,x", "--drain=worker-1", "--add-nodes=2=cpu=4,memory=8Gi")
	if status != 3 || !strings.Contains(stderr, "ResourcePolicy standard is also to be deleted") {
		t.Fatalf("%d %s", status, stderr)
	}
	status, _, stderr = plugin(t, s, "simulate", "-f", filepath.Join(dir, "policies"), "--drain=worker-1", "--add-nodes=2=cpu=4,memory=8Gi")
	if status != 2 || !strings.Contains(stderr, "left out Namespace other: only ResourcePolicies are simulated") {
		t.Fatalf("%d %s", status, stderr)
	}
	changes := s.Changes()
	if len(changes) != 1 {
		t.Fatalf("%d changes", len(changes))
	}
	var got []string
	for _, p := range changes[0].Apply {
		// The API server of the test sets the default of mode, and keeps the version of what it has.
		got = append(got, fmt.Sprintf("%s %s %q", p.Name, p.Spec.Mode, p.ResourceVersion))
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{`bronze Active ""`, `gold-pool Active "7"`, `standard Active "7"`}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := rest.Change{Drain: []string{"worker-1"}, AddNodes: []rest.AddedNodes{{Count: 2, Allocatable: kubetest.Quantities("cpu", "4", "memory", "8Gi")}}}
	changes[0].Apply = nil
	if diff := cmp.Diff(want, changes[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A snapshot needs neither an operator nor an API server.
func TestASnapshotIsRehearsedWithoutACluster(t *testing.T) {
	s := operatortest.Start(t)
	t.Chdir(examples(t))
	_, snapshot, _ := plugin(t, s, "snapshot", "--anonymise")
	test.Must(t, os.WriteFile("world.json", []byte(snapshot), 0o600))
	for name, text := range map[string]string{
		"unknown.yaml": fmt.Sprintf(policyYAML, "silver") + "  shape: round\n",
		"amounts.yaml": strings.Replace(fmt.Sprintf(policyYAML, "silver"), "cpu: 2, memory: 4Gi", "cpu: 0.5, memory: 8GB", 1),
		"cut.json":     snapshot[:len(snapshot)/2],
	} {
		test.Must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	for _, tc := range []struct {
		args   string
		status int
		want   string
	}{
		{"--world=world.json -f policy.yaml", 1, "silver   -     Shadowed"},
		{"--world=world.json --delete=gold-pool", 1, "held at 2.5 by reclaim: its pods request 2.5"},
		{"--world=world.json --drain=worker-1", 3, `the change does not fit: drain[0]: there is no Node "worker-1"`},
		{"--world=world.json -f unknown.yaml", 3, `unknown.yaml: ResourcePolicy silver: json: unknown field "shape"`},
		{"--world=world.json -f amounts.yaml", 3, `amounts.yaml: ResourcePolicy silver: spec.offer.fixed[cpu]: Invalid value: "0.5": an amount with a decimal point is a text: quote it, or write 500m`},
		{"--world=world.json -f amounts.yaml", 3, `spec.offer.fixed[memory]: Invalid value: "8GB": write an amount as Kubernetes does`},
		{"--world=cut.json --delete=standard", 3, "--world=cut.json: reading the snapshot: "},
		{"--world=absent.json --delete=standard", 3, "--world: open absent.json: "},
	} {
		var out, errOut bytes.Buffer
		args := append([]string{"simulate", "--kubeconfig=absent"}, strings.Fields(tc.args)...)
		status := run(t.Context(), args, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut})
		if status != tc.status || !strings.Contains(out.String()+errOut.String(), tc.want) {
			t.Errorf("%s: status %d\n%s%s\nwant %d, %s", tc.args, status, &out, &errOut, tc.status, tc.want)
		}
	}
}

func TestErrorsOfSimulateHaveAStatusOfTheirOwn(t *testing.T) {
	s := operatortest.Start(t)
	dir := examples(t)
	s.Refuse("POST /apis/proffer.dev/v1alpha1/resourcepolicies", operatortest.Refusal{
		Code: 422, Body: operatortest.Status(422, metav1.StatusReasonInvalid, `ResourcePolicy.proffer.dev "silver" is invalid: spec.class: write lower-case letters`, nil),
	})
	s.Refuse("DELETE /apis/proffer.dev/v1alpha1/resourcepolicies/standard", operatortest.Refusal{
		Code: 403, Body: operatortest.Status(403, metav1.StatusReasonForbidden, `resourcepolicies.proffer.dev "standard" is forbidden: User "u" cannot delete resource`, nil),
	})
	test.Must(t, os.WriteFile(filepath.Join(dir, "old.yaml"), []byte("apiVersion: proffer.dev/v1\nkind: ResourcePolicy\nmetadata: {name: old}\n"), 0o600))
	test.Must(t, os.WriteFile(filepath.Join(dir, "amounts.yaml"), []byte(strings.Replace(fmt.Sprintf(policyYAML, "silver"), "cpu: 2", "cpu: 0.5", 1)), 0o600))
	for args, want := range map[string]string{
		"simulate":                                "there is no change to simulate: write -f FILE, --delete, --drain or --add-nodes",
		"simulate policy.yaml":                    "unknown command",
		"simulate --dry-run":                      "unknown flag",
		"simulate --drain=n -o xml":               `there is no output format "xml": write -o table|wide|json|yaml|markdown`,
		"simulate -f absent.yaml":                 `"absent.yaml" does not exist`,
		"simulate -f policies/ns.yaml":            "the files have no ResourcePolicy",
		"simulate -f old.yaml":                    "old.yaml: ResourcePolicy old has apiVersion proffer.dev/v1: write proffer.dev/v1alpha1",
		"simulate -f policy.yaml":                 "policy.yaml: ResourcePolicy silver: ResourcePolicy.proffer.dev \"silver\" is invalid: spec.class: write lower-case letters",
		"simulate --delete=absent":                `--delete=absent: resourcepolicies.proffer.dev "absent" not found`,
		"simulate --delete=standard":              "the dry run needs the right to write policies, as in ClusterRole proffer-resourcepolicy-editor",
		"simulate --add-nodes=cpu=8":              `--add-nodes=cpu=8: "cpu" is not a number of nodes`,
		"simulate -f amounts.yaml":                "amounts.yaml: ResourcePolicy silver: spec.offer.fixed[cpu]: Invalid value: \"0.5\": an amount with a decimal point is a text: quote it, or write 500m\n",
		"simulate -f policy.yaml --context=other": `context "other" does not exist`,
	} {
		t.Run(args, func(t *testing.T) {
			t.Chdir(dir)
			status, stdout, stderr := plugin(t, s, strings.Fields(args)...)
			if status != 3 || !strings.Contains(stderr, want) || !strings.HasPrefix(stderr, "error: ") && !strings.Contains(stderr, "\nerror: ") {
				t.Errorf("status %d, %s%s\nwant %s", status, stdout, stderr, want)
			}
		})
	}
}

// The errors of a command whose status is an answer have a status of their own.
func TestErrorsAreOneLineWithTheStatusOfTheirCommand(t *testing.T) {
	s := operatortest.Start(t)
	for args, want := range map[string]int{
		"offers a b": 1, "offers -o xml": 1, "explain": 1, "explain rome/silver": 1, "top pods": 1, "snapshot x": 1, "nonsense": 1,
		"version x": 1, "migrate": 1, "migrate absent -n liqo": 1, "migrate -f absent.yaml": 1, "offers --context=other": 1,
		"dashboard x": 1, "dashboard --port=-1": 1, "dashboard --context=other": 1,
		"status x": 3, "status -o wide": 3, "status --context=other": 3, "simulate x": 3, "check x": 3, "check -o wide": 3, "check --context=other": 3, "catalog x": 3, "catalog --context=other": 3,
	} {
		status, stdout, stderr := plugin(t, s, strings.Fields(args)...)
		if status != want || stdout != "" || !strings.HasPrefix(stderr, "error: ") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: status %d, %q, %q", args, status, stdout, stderr)
		}
	}
}

func TestAWrongArgumentIsExplained(t *testing.T) {
	s := operatortest.Start(t)
	for args, want := range map[string]string{
		"offers rome oslo":       "error: write at most one consumer, such as: kubectl proffer offers rome\n",
		"offers --pool gold":     "error: unknown flag: --pool: see kubectl proffer offers --help\n",
		"offers --class none":    "No offers: no ResourcePolicy offers anything in class none.\n",
		"offers --resource fpga": "No offers: no ResourcePolicy offers fpga.\n",
		"offers --sort size":     `error: there is no order "size": write --sort=consumer|class|policy|offered|granted|used` + "\n",
		"offers nobody":          "nobody is not a known consumer: it gets the default offer.\nnobody is not a known consumer: it gets the default offer.\n",
		"offers nobody -o yaml":  "",
		"explain":                "error: write one consumer, such as: kubectl proffer explain rome\n",
		"top pods":               "error: write one of policies, consumers and nodes\n",
		"top nodes --sort size":  `error: there is no order "size": write --sort=node|allocatable|local|used` + "\n",
		"offers --known":         "error: --known is about one consumer: write its ID, such as: kubectl proffer offers rome --known\n",
		"explan rome":            "error: unknown command \"explan\" for \"kubectl proffer\": did you mean explain?\n",
		"s":                      "error: unknown command \"s\" for \"kubectl proffer\": did you mean status or simulate or stop or snapshot?\n",
	} {
		if _, _, stderr := plugin(t, s, strings.Fields(args)...); stderr != want {
			t.Errorf("%s prints %q, want %q", args, stderr, want)
		}
	}
}

// The page of a consumer that does not exist looks like one of a consumer that does.
func TestAConsumerThatIsNotKnownIsReportedFirstAndLast(t *testing.T) {
	s := operatortest.Start(t)
	const notice = "Rome is not a known consumer: it gets the default offer. Did you mean rome?"
	for _, command := range []string{"offers", "explain"} {
		var out bytes.Buffer
		status := run(t.Context(), []string{command, "Rome", "--kubeconfig=" + s.Kubeconfig}, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
		if text := out.String(); status != 0 || !strings.HasPrefix(text, notice+"\n") || !strings.HasSuffix(text, "\n"+notice+"\n") {
			t.Errorf("%s: status %d, %s", command, status, text)
		}
		for _, format := range []string{"", "json"} {
			status, stdout, stderr := plugin(t, s, command, "Rome", "--known", "--output="+format)
			if status != 3 || stdout != "" || stderr != "error: "+notice+"\n" {
				t.Errorf("%s --known: status %d, %q, %q", command, status, stdout, stderr)
			}
		}
		if status, stdout, stderr := plugin(t, s, command, "rome", "--known"); status != 0 || stdout == "" || stderr != "" {
			t.Errorf("%s --known of a consumer that is known: status %d, %q, %q", command, status, stdout, stderr)
		}
	}
	_, _, stderr := plugin(t, s, "explain", "Rome/gold")
	if want := notice + "\nerror: Rome is offered nothing in class gold, only in: <unnamed>\n"; stderr != want {
		t.Errorf("got %q, want %q", stderr, want)
	}
}

func TestAnAPIServerThatDoesNotAnswerIsExplained(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	const want = "the API server cannot be reached (dial tcp 127.0.0.1:1: connect: connection refused): choose another with --context or --kubeconfig\n"
	for _, command := range []string{"status", "offers", "explain rome", "top", "snapshot", "simulate --drain=worker-1", "check", "migrate plugin -n liqo", "catalog", "dashboard --no-browser", "version"} {
		var out bytes.Buffer
		run(t.Context(), append(strings.Fields(command), "--server=http://127.0.0.1:1"), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
		if _, got, _ := strings.Cut(out.String(), ": "); command != "version" && got != want || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%s prints %q, want %q", command, out.String(), want)
		}
	}
}

func TestAnOperatorThatCannotBeReachedHasNoVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		request string
		refusal operatortest.Refusal
		want    string
	}{
		"no right": {operatortest.ReaderPath, operatortest.Refusal{Code: 403, Body: operatortest.Status(403, metav1.StatusReasonForbidden, "forbidden", nil)},
			`unknown: you may not create serviceaccounts/token "proffer-reader" in namespace proffer-system: ask for Role proffer-plugin-reader`},
		"not ready": {operatortest.OperatorPath("GET", rest.OffersPath), operatortest.Refusal{
			Code: 503, Header: map[string]string{rest.VersionHeader: "v0.1.1"}, Body: operatortest.Status(503, metav1.StatusReasonServiceUnavailable, "no offers yet", nil),
		}, "v0.1.1\n"},
		"no replica": {operatortest.OperatorPath("GET", rest.OffersPath), operatortest.Refusal{Code: 503, Body: operatortest.Status(503, metav1.StatusReasonServiceUnavailable, "no endpoints available", nil)},
			"unknown: no replica of the operator is ready: "},
		"too old": {operatortest.OperatorPath("GET", rest.OffersPath), operatortest.Refusal{Code: 200, Body: rest.Offers{}},
			"unknown: the operator does not report its version: it is too old for this plugin\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := operatortest.Start(t)
			s.Refuse(tc.request, tc.refusal)
			status, stdout, stderr := plugin(t, s, "version")
			if status != 0 || stderr != "" || !strings.HasPrefix(stdout, "Plugin:    ") || !strings.Contains(stdout, "\nOperator:  "+tc.want) {
				t.Errorf("%d %q, %q; want %q", status, stdout, stderr, tc.want)
			}
		})
	}
}

func TestAWatchShowsChangesOnly(t *testing.T) {
	s := operatortest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines := make(chan string, 100)
	var errOut bytes.Buffer
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"offers", "rome", "--class=gold", "--watch", "--kubeconfig=" + s.Kubeconfig},
			genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: lineWriter(lines), ErrOut: &errOut})
	}()
	for range 5 { // The header, and four resources.
		<-lines
	}
	rome := operatortest.Detailed(operatortest.Offers().Consumers[2])
	rome.Offers[1].Resources["cpu"] = operatortest.Amounts("cpu", "8")["cpu"]
	s.Refuse(operatortest.OperatorPath("GET", rest.OffersPath+"/rome"), operatortest.Refusal{Code: 200, Body: rome})
	at, got := <-lines, strings.Join(strings.Fields(<-lines), " ")
	if want := "rome gold cpu 6 -> 8 3 2.5 gold-pool 50% of 14 is a pool of 7, 4 committed, 3 remaining; it has 3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if want := operatortest.Evaluated.Time.Local().Format(time.TimeOnly); at != want {
		t.Errorf("the change is at %q, want %q", at, want)
	}
	cancel()
	<-done
	if len(lines) > 0 {
		t.Errorf("also: %q", <-lines)
	}
}

// lineWriter sends each line that is written.
type lineWriter chan<- string

func (w lineWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		w <- strings.TrimSpace(line)
	}
	return len(p), nil
}

// kubectl calls kubectl_complete-proffer with the words so far.
func TestCompletionsComeFromTheOperator(t *testing.T) {
	s := operatortest.Start(t)
	s.Refuse("GET /api/v1/nodes", operatortest.Refusal{Code: 200, Body: metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
		Items:    []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "worker-2"}}},
	}})
	for words, want := range map[string][]string{
		"offers ":             {"9f1c2a44-7a53-4d1e-8e0b-5f6f0d7c1b22", "oslo", "rome", ":4"},
		"explain ":            {"9f1c2a44-7a53-4d1e-8e0b-5f6f0d7c1b22", "oslo", "rome", ":4"},
		"explain rome/":       {"rome/", "rome/gold", ":4"},
		"explain rome/gold/c": {"rome/gold/cpu", "rome/gold/memory", "rome/gold/nvidia.com/gpu", "rome/gold/pods", ":4"},
		"explain milan/":      {":4"},
		"simulate --drain ":   {"worker-1", "worker-2", ":4"},
		"offers rome ":        {":4"},
		"dashboard ":          {":4"},
		"status ":             {":4"},
		"status --output ":    {"json", "yaml", ":4"},
		"offers --class ":     {"gold", ":4"},
		"simulate --delete ":  {"gold-pool", "gold-trial", "standard", ":4"},
		"top ":                {"policies", "consumers", "nodes", ":4"},
		"offers --output ":    {"wide", "json", "yaml", ":4"},
		"simulate --output ":  {"table", "wide", "json", "yaml", "markdown", ":4"},
		"simulate -f policy.": {":0"},
		"catalog --provider ": {"milan", ":4"},
		"catalog --output ":   {"wide", "json", "yaml", ":4"},
		"catalog ":            {":4"},
	} {
		var out bytes.Buffer
		args := append([]string{cobra.ShellCompRequestCmd, "--kubeconfig=" + s.Kubeconfig}, strings.Split(words, " ")...)
		run(t.Context(), args, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &bytes.Buffer{}})
		if diff := cmp.Diff(want, strings.Fields(out.String())); diff != "" {
			t.Errorf("%q (-want +got):\n%s", words, diff)
		}
	}
}

// endsAfter ends a command a second after it has written something.
type endsAfter struct {
	io.Writer
	end func()
}

func (e endsAfter) Write(p []byte) (int, error) {
	time.AfterFunc(time.Second, e.end)
	return e.Writer.Write(p)
}
