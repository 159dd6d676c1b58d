package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
)

func node(name, zone string, taints ...corev1.Taint) capacity.Node {
	return capacity.Node{
		Name:   name,
		State:  capacity.Ready,
		Labels: map[string]string{"zone": zone},
		Taints: Taints(taints),
	}
}

func parse(t *testing.T, text string) capacity.Selector {
	t.Helper()
	s, err := labels.Parse(text)
	test.Must(t, err)
	return Of(s)
}

func TestNodesAreSelectedLikeInKubernetes(t *testing.T) {
	gpu := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}
	soft := corev1.Taint{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}
	memory := corev1.Taint{Key: "gib", Value: "64", Effect: corev1.TaintEffectNoExecute}
	l := capacity.NewLedger()
	l.SetNode(node("plain", "a"))
	l.SetNode(node("soft", "b", soft))
	l.SetNode(node("gpu", "b", gpu))
	l.SetNode(node("memory", "c", memory))
	tolerating := func(t ...corev1.Toleration) capacity.Selection {
		return capacity.Selection{Tolerations: Tolerations(t)}
	}
	for _, tc := range []struct {
		name      string
		selection capacity.Selection
		nodes     int
	}{
		{"everything", capacity.Selection{}, 2},
		{"an explicit selector of everything", capacity.Selection{Selector: Of(labels.Everything())}, 2},
		{"nothing", capacity.Selection{Selector: Of(labels.Nothing())}, 0},
		{"no selector", capacity.Selection{Selector: Of(nil)}, 2},
		{"a set", capacity.Selection{Selector: parse(t, "zone in (b)")}, 1},
		{"a key that is absent", capacity.Selection{Selector: parse(t, "!zone")}, 0},
		{"the taint's value", tolerating(corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "yes"}), 3},
		{"another value", tolerating(corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "no"}), 2},
		{"another effect",
			tolerating(corev1.Toleration{
				Key: "gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			}), 2},
		{"every taint", tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}), 4},
		{"a comparison", tolerating(corev1.Toleration{Key: "gib", Operator: corev1.TolerationOpGt, Value: "32"}), 3},
	} {
		if got := l.View([]capacity.Selection{tc.selection}).Pools[0].Nodes; got != tc.nodes {
			t.Errorf("%s: %d nodes, want %d", tc.name, got, tc.nodes)
		}
	}
}

func TestDifferentSelectionsHaveDifferentKeys(t *testing.T) {
	seconds := int64(5)
	same := func(a, b capacity.Selection) bool { return a.Key() == b.Key() }
	tolerating := func(t corev1.Toleration) capacity.Selection {
		return capacity.Selection{Tolerations: Tolerations([]corev1.Toleration{t})}
	}
	key := corev1.Toleration{Key: "k", Value: "v"}
	for name, other := range map[string]corev1.Toleration{
		"value": {Key: "k", Value: "w"}, "operator": {Key: "k", Operator: corev1.TolerationOpExists, Value: "v"},
		"effect": {Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}, "key": {Key: "kv"},
	} {
		if same(tolerating(key), tolerating(other)) {
			t.Errorf("tolerations that differ in %s have the same key", name)
		}
	}
	if !same(tolerating(key), tolerating(corev1.Toleration{Key: "k", Value: "v", TolerationSeconds: &seconds})) {
		t.Error("tolerations that differ only in their seconds have different keys")
	}
	if same(capacity.Selection{Selector: Of(labels.Nothing())}, capacity.Selection{Selector: Of(labels.Everything())}) {
		t.Error("the selectors of nothing and of everything have the same key")
	}
}

func TestKeysListsTheLabelsThatASelectorReads(t *testing.T) {
	if diff := cmp.Diff([]string{"a", "b"}, parse(t, "a in (1, 2),!b").Keys()); diff != "" {
		t.Error(diff)
	}
}

func TestTaintsAreWrittenLikeInKubernetes(t *testing.T) {
	for _, taint := range []corev1.Taint{
		{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}, {Key: "k", Effect: corev1.TaintEffectNoExecute},
	} {
		if got, want := Taints([]corev1.Taint{taint})[0].String(), taint.ToString(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
