package pause

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// call runs pause, stop or resume as a user, empty for the administrator. It returns what is printed, and the error as text.
func call(t *testing.T, user, command string, args ...string) (out, failure string) {
	t.Helper()
	config, file := genericclioptions.NewConfigFlags(false), kubetest.Cluster(t).KubeconfigFile(t)
	config.KubeConfig = &file
	if user != "" {
		config.Impersonate = &user
	}
	streams, _, stdout, _ := genericiooptions.NewTestIOStreams()
	flags := operatorclient.NewFlags(config)
	cmd := map[string]*cobra.Command{
		"pause": NewPauseCommand(flags, streams), "stop": NewStopCommand(flags, streams), "resume": NewResumeCommand(flags, streams),
	}[command]
	cmd.SetArgs(append([]string{}, args...)) // Nil stands for those of the test.
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		failure = err.Error()
	}
	return stdout.String(), failure
}

// specOf returns the spec of a policy that is stored, as JSON has it.
func specOf(t *testing.T, name string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ResourcePolicy"))
	test.Must(t, kubetest.API(t).Get(t.Context(), client.ObjectKey{Name: name}, u))
	spec, _ := u.Object["spec"].(map[string]any)
	return spec
}

func TestResumeRemovesWhatPauseHasSet(t *testing.T) {
	policy := kubetest.Create(t, kubetest.Policy("gold", func(s *v1alpha1.ResourcePolicySpec) { s.Class, s.Mode = "gold", v1alpha1.ModeActive }))
	before := specOf(t, policy.Name)

	out, failure := call(t, "", "pause", "gold", "--until=2099-01-01T06:00:00+01:00")
	want := "ResourcePolicy gold is paused until 2099-01-01T06:00:00+01:00. The edit, by the field manager kubectl-proffer-pause:\n" +
		"  spec:\n    mode: Paused\n    pausedUntil: \"2099-01-01T05:00:00Z\"\nIt ends with: kubectl proffer resume gold\n"
	if diff := cmp.Diff(want, out); diff != "" || failure != "" {
		t.Fatalf("%s(-want +got):\n%s", failure, diff)
	}
	spec := specOf(t, "gold")
	if spec["mode"] != "Paused" || spec["pausedUntil"] != "2099-01-01T05:00:00Z" {
		t.Errorf("stored: %v", spec)
	}
	// Without an end, the end of before goes.
	call(t, "", "pause", "gold")
	if until, there := specOf(t, "gold")["pausedUntil"]; there {
		t.Errorf("it still ends at %v", until)
	}

	out, failure = call(t, "", "resume", "--class=gold")
	if want := "ResourcePolicy gold is Active again.\n"; out != want || failure != "" {
		t.Errorf("got %q %s, want %q", out, failure, want)
	}
	if diff := cmp.Diff(before, specOf(t, "gold")); diff != "" {
		t.Errorf("resumed (-before +after):\n%s", diff)
	}
	out, failure = call(t, "", "resume", "gold")
	if want := "ResourcePolicy gold is neither paused nor stopped.\n"; out != want || failure != "" {
		t.Errorf("got %q %s, want %q", out, failure, want)
	}
}

func TestTheExamplesInHelpWork(t *testing.T) {
	kubetest.Create(t, kubetest.Policy("gold", func(s *v1alpha1.ResourcePolicySpec) { s.Class = "gold" }))
	n := 0
	for line := range strings.SplitSeq(pauseExamples+"\n"+resumeExamples, "\n") {
		args, ok := strings.CutPrefix(strings.TrimSpace(line), "kubectl proffer ")
		if !ok {
			continue
		}
		n++
		words := strings.Fields(args)
		if out, failure := call(t, "", words[0], words[1:]...); failure != "" || !strings.HasPrefix(out, "ResourcePolicy gold is ") {
			t.Errorf("%s: %s%s", line, out, failure)
		}
	}
	if n != 7 {
		t.Errorf("%d examples", n)
	}
}

func TestEveryPolicyOfAClassIsPaused(t *testing.T) {
	in := func(class string) func(*v1alpha1.ResourcePolicySpec) {
		return func(s *v1alpha1.ResourcePolicySpec) { s.Class = class }
	}
	for name, class := range map[string]string{"one": "silver", "two": "silver", "other": "bronze", "unnamed": ""} {
		kubetest.Create(t, kubetest.Policy(name, in(class)))
	}
	modes := func() map[string]any {
		all := map[string]any{}
		for _, name := range []string{"one", "two", "other", "unnamed"} {
			all[name] = specOf(t, name)["mode"]
		}
		return all
	}
	for _, step := range []struct {
		args []string
		want map[string]any
	}{
		{[]string{"pause", "--class=silver"}, map[string]any{"one": "Paused", "two": "Paused", "other": "Active", "unnamed": "Active"}},
		{[]string{"pause", "--class="}, map[string]any{"one": "Paused", "two": "Paused", "other": "Active", "unnamed": "Paused"}},
		{[]string{"resume", "one", "unnamed"}, map[string]any{"one": "Active", "two": "Paused", "other": "Active", "unnamed": "Active"}},
	} {
		_, failure := call(t, "", step.args[0], step.args[1:]...)
		if diff := cmp.Diff(step.want, modes()); diff != "" || failure != "" {
			t.Errorf("%v: %s(-want +got):\n%s", step.args, failure, diff)
		}
	}
}

func TestAPauseOfOthersStays(t *testing.T) {
	policy := kubetest.Create(t, kubetest.Policy("theirs", func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModePaused }))
	manager := policy.ManagedFields[0].Manager
	for _, tc := range []struct{ command, want string }{
		{"pause", "ResourcePolicy theirs: it is paused already, by " + manager + ": change it there"},
		{"resume", "ResourcePolicy theirs: it is paused by " + manager + ": set spec.mode to Active there"},
	} {
		if _, failure := call(t, "", tc.command, "theirs"); failure != tc.want {
			t.Errorf("%s: got %q, want %q", tc.command, failure, tc.want)
		}
	}
	if mode := specOf(t, "theirs")["mode"]; mode != "Paused" {
		t.Errorf("it is %v", mode)
	}
}

func TestTheOthersArePausedAfterAnError(t *testing.T) {
	kubetest.Create(t, kubetest.Policy("dry", func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeDryRun }))
	kubetest.Create(t, kubetest.Policy("wet"))
	_, failure := call(t, "", "pause", "dry", "wet")
	if want := "ResourcePolicy dry: it is a dry run, which decides nothing: there is nothing to pause"; failure != want {
		t.Errorf("got %q, want %q", failure, want)
	}
	if mode := specOf(t, "wet")["mode"]; mode != "Paused" {
		t.Errorf("wet is %v", mode)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	kubetest.Create(t, kubetest.Policy("gold", func(s *v1alpha1.ResourcePolicySpec) {
		s.Consumers = &v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome", "oslo"}}
	}))
	kubetest.Create(t, kubetest.Policy("free"))
	for name, tc := range map[string]struct {
		user string
		args []string
		want string
	}{
		"no policy":         {"", []string{"pause"}, "name policies, or a class with --class, but not both, or a consumer with --consumer: see pause --help"},
		"both":              {"", []string{"pause", "gold", "--class=gold"}, "name policies, or a class with --class, but not both, or a consumer with --consumer: see pause --help"},
		"an unknown one":    {"", []string{"pause", "glod"}, `resourcepolicies.proffer.dev "glod" not found: see kubectl get resourcepolicies`},
		"no such consumer":  {"", []string{"pause", "--class=glod", "--consumer=rome"}, `no ResourcePolicy of the class "glod" is for rome: see kubectl get resourcepolicies`},
		"no consumer":       {"", []string{"pause", "gold", "--consumer="}, "--consumer is empty: write the ID of a consumer"},
		"another consumer":  {"", []string{"pause", "gold", "--consumer=lima"}, "it is a dry run, or for other consumers than lima: there is nothing to pause"},
		"a wrong consumer":  {"", []string{"pause", "free", "--consumer=Rome"}, "a cluster ID is a lower-case UUID or a DNS-1123 label, such as rome: write it as Liqo shows it"},
		"nothing to end":    {"", []string{"resume", "--class=glod", "--consumer=rome"}, `no ResourcePolicy of the class "glod" is paused for rome: see kubectl get resourcepolicies`},
		"the unnamed class": {"", []string{"resume", "--class=<unnamed>", "--consumer=rome"}, `no ResourcePolicy of the class "" is paused for rome: see kubectl get resourcepolicies`},
		"an unknown class":  {"", []string{"resume", "--class=glod"}, `no ResourcePolicy of the class "glod" is in force: see kubectl get resourcepolicies`},
		"no rights":         {"eve", []string{"pause", "gold"}, "ask for the ClusterRole proffer-resourcepolicy-editor"},
		"a wrong end":       {"", []string{"pause", "gold", "--until=tomorrow"}, "ResourcePolicy gold: --until=tomorrow: write a time of day such as 06:00, a duration such as 2h, or 2026-12-01T06:00:00Z"},
		"an end before":     {"", []string{"pause", "gold", "--until=2020-01-01T00:00:00Z"}, "ResourcePolicy gold: --until=2020-01-01T00:00:00Z: that is over: write a time to come"},
	} {
		t.Run(name, func(t *testing.T) {
			out, failure := call(t, tc.user, tc.args[0], tc.args[1:]...)
			if out != "" || !strings.HasSuffix(failure, tc.want) {
				t.Errorf("got %q %q, want an error %q", out, failure, tc.want)
			}
		})
	}
	if mode := specOf(t, "gold")["mode"]; mode != "Active" {
		t.Errorf("gold is %v", mode)
	}
}

// A policy that is deleted between the read and the write is not created again.
func TestADeletedPolicyIsNotCreated(t *testing.T) {
	policy := kubetest.Policy("gone")
	policy.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ResourcePolicy"}
	policy.UID = "was-deleted"
	object := kubetest.Unstructured(t, policy)
	config, file := genericclioptions.NewConfigFlags(false), kubetest.Cluster(t).KubeconfigFile(t)
	config.KubeConfig = &file
	in, err := operatorclient.NewFlags(config).Policies()
	test.Must(t, err)
	if _, err = apply(t.Context(), in, object, fields{Mode: "Paused"}); err == nil {
		t.Error("it was created")
	}
}

func TestTheEndIsTheNextTimeOfDay(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	now := time.Date(2026, 11, 29, 22, 30, 15, 500, zone)
	for text, want := range map[string]time.Time{
		"23:00":                time.Date(2026, 11, 29, 23, 0, 0, 0, zone),
		"06:00":                time.Date(2026, 11, 30, 6, 0, 0, 0, zone),
		"22:30":                time.Date(2026, 11, 30, 22, 30, 0, 0, zone),
		"2h":                   time.Date(2026, 11, 30, 0, 30, 15, 0, zone),
		"2026-12-01T06:00:00Z": time.Date(2026, 12, 1, 7, 0, 0, 0, zone),
	} {
		if got, err := parseUntil(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "24:00", "-1h", "0s", "06:00:00", "2026-11-29T21:00:00Z"} {
		if got, err := parseUntil(text, now); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

// Between the read and the write of one command, others edit the policy.
func TestEditsOfOthersAreKept(t *testing.T) {
	kubetest.Create(t, kubetest.Policy("gold"))
	config, file := genericclioptions.NewConfigFlags(false), kubetest.Cluster(t).KubeconfigFile(t)
	config.KubeConfig = &file
	in, err := operatorclient.NewFlags(config).Policies()
	test.Must(t, err)
	read, err := in.Get(t.Context(), "gold", metav1.GetOptions{})
	test.Must(t, err)
	call(t, "", "pause", "gold", "--consumer=oslo")
	o := &options{now: time.Now, policies: in, consumer: "rome"}
	if _, err := o.edit(t.Context(), read, o.pause); err != nil {
		t.Fatal(err)
	}
	now, err := in.Get(t.Context(), "gold", metav1.GetOptions{})
	test.Must(t, err)
	if diff := cmp.Diff([]string{"oslo", "rome"}, idsOf(fieldsOf(now))); diff != "" {
		t.Error(diff)
	}

	// What was shown of a stop is not what it would do any longer.
	o = &options{policies: in}
	stop := func(ctx context.Context, p *unstructured.Unstructured) ([]string, error) {
		return o.stopOne(ctx, p, read)
	}
	_, err = o.edit(t.Context(), read, stop)
	if want := "it has changed since: it was not stopped, and what stopping it changes may be different"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if mode := specOf(t, "gold")["mode"]; mode != "Active" {
		t.Errorf("it is %v", mode)
	}
}
