package check

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/controllers/orchestration"
	"proffer.dev/proffer/test"
)

func orchestrationIn(name string, status metav1.ConditionStatus, reason string) v1alpha1.Orchestration {
	o := v1alpha1.Orchestration{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
	o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, ObservedGeneration: 2, Message: "of the operator"}}
	return o
}

func offloadingOf(namespace, orchestrationName string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Annotations: map[string]string{orchestration.Annotation: orchestrationName},
	}}
}

func TestEachOrchestrationThatIsNotReadyIsReported(t *testing.T) {
	broker := flags{orchestrate: true}
	good := orchestrationIn("good", metav1.ConditionTrue, v1alpha1.OrchestrationActive)
	nobody := orchestrationIn("nobody", metav1.ConditionFalse, v1alpha1.OrchestrationNoProvider)
	edited := orchestrationIn("edited", metav1.ConditionTrue, v1alpha1.OrchestrationActive)
	edited.Generation++
	unread := v1alpha1.Orchestration{ObjectMeta: metav1.ObjectMeta{Name: "unread", Generation: 1}}
	type orchestrations = []v1alpha1.Orchestration
	type offloadings = []metav1.PartialObjectMetadata
	own := there(offloadings{offloadingOf("team-rome", "good")})
	admins := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "mine"}}
	cases := map[string]struct {
		flags       flags
		all         known[orchestrations]
		offloadings known[offloadings]
		want        []is
	}{
		"good":               {broker, there(orchestrations{good}), own, []is{{OK, []string{"All Orchestrations (1) are Ready."}}}},
		"none":               {broker, there[orchestrations](nil), there[offloadings](nil), []is{{Warning, []string{"no Orchestration"}}}},
		"no CRD":             {broker, failing[orchestrations](errNotFound), own, nil},
		"no right":           {broker, failing[orchestrations](errForbidden), own, []is{{Skipped, []string{"list orchestrations.proffer.dev"}}}},
		"no right on Liqo's": {broker, there(orchestrations{good}), failing[offloadings](errForbidden), []is{{Skipped, []string{"list namespaceoffloadings.offloading.liqo.io"}}}},
		"no Liqo":            {broker, there(orchestrations{good}), failing[offloadings](errNotFound), []is{{OK, nil}}},
		"each that is not good": {broker, there(orchestrations{good, nobody, edited, unread}), own, []is{
			{Warning, []string{"nobody is not Ready, NoProvider: of the operator", "docs/reference/conditions.md"}},
			{Warning, []string{"edited was not evaluated since it was edited"}},
			{Warning, []string{"unread was not evaluated since it was edited"}},
		}},
		"left behind": {broker, there(orchestrations{good}), there(offloadings{admins, offloadingOf("b-rome", "gone"), offloadingOf("team-rome", "good"), offloadingOf("a-rome", "gone")}), []is{
			{Warning, []string{"do not exist send pods on, in a-rome, b-rome.", "drainMinutes"}},
		}},
		"no broker":                    {flags{}, there[orchestrations](nil), there[offloadings](nil), nil},
		"no broker, no CRDs":           {flags{}, failing[orchestrations](errNotFound), failing[offloadings](errNotFound), nil},
		"no broker, no right":          {flags{}, failing[orchestrations](errForbidden), failing[offloadings](errForbidden), nil},
		"no broker, but Orchestration": {flags{}, there(orchestrations{nobody}), there[offloadings](nil), []is{{Warning, []string{"runs without --orchestrate, so the Orchestrations (1) have no effect"}}}},
		"a broker no more":             {flags{}, failing[orchestrations](errNotFound), own, []is{{Warning, []string{"send pods on, in team-rome."}}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := findOrchestrations(c.flags, c.all, c.offloadings)
			if len(got) != len(c.want) {
				t.Fatalf("findings %v, want %d", got, len(c.want))
			}
			for i, want := range c.want {
				if diff := want.diff(got[i]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// The cluster of a broker has a NamespaceOffloading of an admin, and one that the operator has written.
func TestOrchestrationsAreReadFromTheCluster(t *testing.T) {
	file := kubeconfig(t)
	apply := func(manifest string) {
		kubectl(t, file, "apply", "--server-side", "-f", manifest)
		t.Cleanup(func() { kubectl(t, file, "delete", "--wait=false", "--ignore-not-found", "-f", manifest) })
	}
	for _, crd := range []string{
		"../../../config/components/orchestrator/crd.yaml", controlplane.LiqoCRD(t, "offloading.liqo.io_namespaceoffloadings.yaml"),
	} {
		apply(crd)
		kubectl(t, file, "wait", "--for=condition=Established", "--timeout=60s", "-f", crd)
	}
	apply("../../../test/deploy/testdata/orchestration.yaml")
	config, err := caller(file, "").RESTConfig()
	test.Must(t, err)
	c, err := newCluster(config)
	test.Must(t, err)
	all, offloadings := list[v1alpha1.Orchestration](t.Context(), c, &v1alpha1.OrchestrationList{}), c.offloadings(t.Context())
	if all.err != nil || len(all.value) != 1 || offloadings.err != nil || len(offloadings.value) != 1 {
		t.Fatalf("%+v and %+v", all, offloadings)
	}
	want := is{Warning, []string{"gold was not evaluated since it was edited"}}
	if diff := want.diff(findOrchestrations(flags{orchestrate: true}, all, offloadings)[0]); diff != "" {
		t.Error(diff)
	}
}
