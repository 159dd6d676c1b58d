package pause

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

func TestOneConsumerIsPausedInEachPolicyThatMayBeForIt(t *testing.T) {
	named := func(ids ...v1alpha1.ClusterID) func(*v1alpha1.ResourcePolicySpec) {
		return func(s *v1alpha1.ResourcePolicySpec) { s.Consumers = &v1alpha1.Consumers{ClusterIDs: ids} }
	}
	before := map[string]map[string]any{}
	for name, edit := range map[string]func(*v1alpha1.ResourcePolicySpec){
		"for-all": func(*v1alpha1.ResourcePolicySpec) {}, "for-both": named("oslo", "rome"), "for-oslo": named("oslo"),
		"dry": func(s *v1alpha1.ResourcePolicySpec) { s.Mode = v1alpha1.ModeDryRun },
	} {
		kubetest.Create(t, kubetest.Policy(name, edit))
		before[name] = specOf(t, name)
	}
	out, failure := call(t, "", "pause", "--consumer=rome", "--until=2099-01-01T06:00:00Z")
	var want strings.Builder
	for _, name := range []string{"for-all", "for-both"} {
		want.WriteString("ResourcePolicy " + name + " is paused for rome until 2099-01-01T06:00:00Z. The edit, by the field manager kubectl-proffer-pause:\n" +
			"  spec:\n    pausedConsumers:\n    - clusterID: rome\n      until: \"2099-01-01T06:00:00Z\"\n" +
			"It ends with: kubectl proffer resume " + name + " --consumer rome\n")
	}
	if diff := cmp.Diff(want.String(), out); diff != "" || failure != "" {
		t.Fatalf("%s(-want +got):\n%s", failure, diff)
	}
	paused := []any{map[string]any{"clusterID": "rome", "until": "2099-01-01T06:00:00Z"}}
	for name, want := range map[string]any{"for-all": paused, "for-both": paused, "for-oslo": nil, "dry": nil} {
		if diff := cmp.Diff(want, specOf(t, name)["pausedConsumers"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, failure := call(t, "", "resume", "--consumer=rome"); failure != "" {
		t.Error(failure)
	}
	for name, want := range before {
		if diff := cmp.Diff(want, specOf(t, name)); diff != "" {
			t.Errorf("%s, resumed (-before +after):\n%s", name, diff)
		}
	}
}

// What is paused, stopped and resumed one after the other leaves the rest as it is.
func TestEachPauseEndsByItself(t *testing.T) {
	kubetest.Create(t, kubetest.Policy("gold"))
	state := func() string {
		spec := specOf(t, "gold")
		of := []string{spec["mode"].(string)}
		all, _ := spec["pausedConsumers"].([]any)
		for _, c := range all {
			of = append(of, c.(map[string]any)["clusterID"].(string))
		}
		slices.Sort(of) // Upper case comes first.
		return strings.Join(of, " ")
	}
	for _, step := range []struct{ command, want string }{
		{"pause gold --consumer=rome", "Active rome"},
		{"pause gold --consumer=oslo", "Active oslo rome"},
		{"pause gold --until=2h", "Paused oslo rome"},
		{"pause gold --consumer=rome --until=1h", "Paused oslo rome"},
		{"resume gold", "Active oslo rome"},
		{"resume gold --consumer=rome", "Active oslo"},
		{"resume gold --consumer=oslo", "Active"},
	} {
		words := strings.Fields(step.command)
		_, failure := call(t, "", words[0], words[1:]...)
		if got := state(); got != step.want || failure != "" {
			t.Errorf("%s: got %s %s, want %s", step.command, got, failure, step.want)
		}
	}
}

func TestAPauseOfOthersForAConsumerStays(t *testing.T) {
	policy := kubetest.Create(t, kubetest.Policy("theirs", func(s *v1alpha1.ResourcePolicySpec) {
		s.PausedConsumers = []v1alpha1.PausedConsumer{{ClusterID: "rome"}}
	}))
	manager := policy.ManagedFields[0].Manager
	for command, want := range map[string]string{
		"pause":  "ResourcePolicy theirs: it is paused for rome already, by " + manager + ": change it there",
		"resume": "ResourcePolicy theirs: it is paused for rome by " + manager + ": remove it from spec.pausedConsumers there",
	} {
		if _, failure := call(t, "", command, "theirs", "--consumer=rome"); failure != want {
			t.Errorf("%s: got %q, want %q", command, failure, want)
		}
	}
	out, failure := call(t, "", "resume", "theirs", "--consumer=oslo")
	if want := "ResourcePolicy theirs is not paused for oslo alone.\n"; out != want || failure != "" {
		t.Errorf("got %q %q, want %q", out, failure, want)
	}
}

// Somebody else sets until when rome is paused, and then sets the whole entry in a file.
func TestWhatOthersAddToAPauseStays(t *testing.T) {
	kubetest.Create(t, kubetest.Policy("gold"))
	call(t, "", "pause", "gold", "--consumer=rome", "--until=2h")
	patch := func(text string) {
		t.Helper()
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ResourcePolicy"))
		u.SetName("gold")
		test.Must(t, kubetest.API(t).Patch(t.Context(), u, client.RawPatch(types.MergePatchType, []byte(text)), client.FieldOwner("editor")))
	}
	patch(`{"spec":{"pausedConsumers":[{"clusterID":"rome","until":"2099-01-01T00:00:00Z"}]}}`)
	for command, want := range map[string]string{
		"pause":  "ResourcePolicy gold: it is paused for rome already, by editor: change it there",
		"resume": "ResourcePolicy gold: it is paused for rome by editor: remove it from spec.pausedConsumers there",
	} {
		if out, failure := call(t, "", command, "gold", "--consumer=rome"); failure != want || out != "" {
			t.Errorf("%s: got %q %q, want %q", command, out, failure, want)
		}
	}
	call(t, "", "pause", "gold", "--until=2h")
	patch(`{"spec":{"pausedUntil":"2099-01-01T00:00:00Z"}}`)
	for _, command := range []string{"pause", "stop", "resume"} {
		want := "ResourcePolicy gold: spec.pausedUntil is set by editor: remove it there first"
		if out, failure := call(t, "", command, "gold"); failure != want || out != "" {
			t.Errorf("%s: got %q %q, want %q", command, out, failure, want)
		}
	}
	patch(`{"spec":{"pausedUntil":null,"pausedConsumers":null}}`)
	if out, failure := call(t, "", "resume", "gold"); out != "ResourcePolicy gold is Active again.\n" {
		t.Errorf("got %q %q", out, failure)
	}
}

func TestAPolicyThatIsResumedSaysForWhomItStaysPaused(t *testing.T) {
	kubetest.Create(t, kubetest.Policy("gold"))
	call(t, "", "pause", "gold", "--consumer=rome")
	call(t, "", "pause", "gold")
	out, _ := call(t, "", "resume", "gold")
	if want := "ResourcePolicy gold is Active again.\nIt stays paused for rome: end that with --consumer.\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// Pauses that are over do not fill the list.
func TestAPauseDropsThoseThatAreOver(t *testing.T) {
	f := fields{PausedConsumers: []v1alpha1.PausedConsumer{
		{ClusterID: "over", Until: &metav1.Time{Time: time.Unix(100, 0)}}, {ClusterID: "ends", Until: &metav1.Time{Time: time.Unix(101, 0)}}, {ClusterID: "lasts"},
	}}
	f.dropEnded(time.Unix(100, 0))
	if diff := cmp.Diff([]string{"ends", "lasts"}, idsOf(f)); diff != "" {
		t.Error(diff)
	}
}

// idsOf returns the consumers for which a policy is paused.
func idsOf(f fields) []string {
	return output.Texts(f.PausedConsumers, func(c v1alpha1.PausedConsumer) string { return string(c.ClusterID) })
}
