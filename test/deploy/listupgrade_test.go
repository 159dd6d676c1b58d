package deploy

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/test"
)

// listInConfigMap makes an admission policy read its list from a ConfigMap, as early builds had it.
func listInConfigMap(t *testing.T, policy, list string, entries map[string]string) {
	t.Helper()
	create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: list}, Data: entries})
	mustKubectl(t, "patch", "validatingadmissionpolicy", policy, "--type=merge",
		`--patch={"spec":{"paramKind":{"apiVersion":"v1","kind":"ConfigMap"}}}`)
	mustKubectl(t, "-n", namespace, "delete", "admissionparams", "--ignore-not-found", list)
}

// deleteWhatIsLeft runs what docs/how-to/upgrade.md says after an upgrade from such a build.
func deleteWhatIsLeft(t *testing.T) {
	t.Helper()
	text := test.Read(t, "../../docs/how-to/upgrade.md")
	_, section, found := strings.Cut(text, "**From a build that kept the lists")
	section, _, ended := strings.Cut(section, "**While the operator is down**")
	commands := 0
	for line := range strings.Lines(section) {
		if command, ok := strings.CutPrefix(line, "$ kubectl "); ok {
			mustKubectl(t, strings.Fields(command)...)
			commands++
		}
	}
	if !found || !ended || commands != 2 {
		t.Fatalf("docs/how-to/upgrade.md has %d commands to delete what an early build left, want 2", commands)
	}
}

func TestServedClassesFollowTheNewListAfterAnUpgrade(t *testing.T) {
	p := newPeering(t)
	applyComponent(t, "served-classes")
	removeParams(t, "proffer-served-classes")
	listInConfigMap(t, "proffer-served-classes", "proffer-served-classes", map[string]string{"gold": "proffer", "platinum": "theirs"})
	answers := func(other string, served ...string) {
		t.Helper()
		test.Eventually(t, func() error {
			errs := []error{notServed(other).of(tryCreate(t, p.rome, aSlice("s", other)))}
			for _, class := range served {
				errs = append(errs, tryCreate(t, p.rome, aSlice("s", class)))
			}
			return errors.Join(errs...)
		})
	}
	answers("silver", "gold", "platinum")

	mustKubectl(t, "apply", "-k", overlay(t, "served-classes"))
	test.Eventually(t, func() error { return withoutList.of(tryCreate(t, p.rome, aSlice("s", "gold"))) })
	args := container(t, deployment(t, render(t, "served-classes"))).Args
	applyPolicy(t, "gold", "{class: gold, offer: {fixed: {cpu: 4, memory: 4Gi, pods: 10}}}")
	o := start(t, append(args, "--other-served-class=platinum"))
	o.AwaitReady(t)
	answers("silver", "gold", "platinum")
	deleteWhatIsLeft(t)
	applyPolicy(t, "silver", "{class: silver, offer: {fixed: {cpu: 4, memory: 4Gi, pods: 10}}}")
	answers("bronze", "gold", "platinum", "silver")
	o.requireAllowed(t)
}

func TestThePodGuardFollowsTheNewListAfterAnUpgrade(t *testing.T) {
	o := newOffloading(t)
	listInConfigMap(t, "proffer-slice-pod-guard", "proffer-placements", map[string]string{".complete": "", placedUser: "pool=bronze"})
	// That build only required the entry.
	mustKubectl(t, "patch", "validatingadmissionpolicy", "proffer-slice-pod-guard", "--type=json",
		`--patch=[{"op":"replace","path":"/spec/validations/0/expression","value":"'.complete' in variables.list"}]`)
	requires := func(place string) {
		t.Helper()
		lacks := refusal{metav1.StatusReasonInvalid, "spec.pod.nodeSelector lacks " + place}
		test.Eventually(t, func() error { return lacks.of(o.send(t, o.placed, setPlace(nil))) })
	}
	requires("pool=bronze")
	mustKubectl(t, "apply", "-k", overlay(t, "slice-pod-guard"))
	test.Eventually(t, func() error { return withoutList.of(o.send(t, o.placed)) })
	o.list(t, map[string]string{placedUser: "pool=gold"})
	requires("pool=gold")
	deleteWhatIsLeft(t)
	o.list(t, map[string]string{placedUser: "pool=silver"})
	requires("pool=silver")
}
