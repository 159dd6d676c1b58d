package orchestration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

func clusterID(id string) liqov1beta1.ClusterID { return liqov1beta1.ClusterID(id) }

// cheapest chooses the provider with the lowest price.
const cheapest = "{consumers: {selector: {matchLabels: {tier: gold}}}, prefer: [{kpi: Price, resource: cpu, weight: 1}], count: 1}"

func TestAChoiceIsPutIntoForce(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	l.orchestrate("cheapest", cheapest)
	l.run()
	l.until(ns, "DefaultName Remote: In milan")

	o := l.offloading(ns)
	if o.Labels[ManagedByLabel] != proffer || o.Annotations[Annotation] != "cheapest" || o.Annotations[drainTimeAnnotation] != "30" {
		t.Errorf("labels %v, annotations %v", o.Labels, o.Annotations)
	}
	l.event("Consumer rome: milan, after no choice")
	l.status("cheapest", func(s *v1alpha1.OrchestrationStatus) string {
		if len(s.Choices) != 1 || s.Choices[0].Namespaces != 1 || len(s.Choices[0].Chosen) != 1 || len(s.Choices[0].Rejected) != 1 || len(s.Providers) != 2 {
			return "incomplete"
		}
		if c := s.Choices[0].Chosen[0]; c.ClusterID != "milan" || c.Because != "Price cpu 0.02 of its annotation (1000)" || !c.Since.Time.Equal(l.clock()) {
			return fmt.Sprintf("chosen %+v", c)
		}
		return ready(s, metav1.ConditionTrue, v1alpha1.OrchestrationActive)
	})
}

// ready compares the condition.
func ready(s *v1alpha1.OrchestrationStatus, status metav1.ConditionStatus, reason string) string {
	if len(s.Conditions) != 1 || s.Conditions[0].Status != status || s.Conditions[0].Reason != reason {
		return fmt.Sprintf("want Ready %s, %s", status, reason)
	}
	return ""
}

func TestAChangeAddsTheNewProviderAndDropsTheOldOneWhenItsPodsAreGone(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	l.orchestrate("cheapest", cheapest)
	w, _ := l.run()
	l.until(ns, "DefaultName Remote: In milan")
	l.present(ns, "milan")
	end := l.pod(ns, "milan")

	l.setPrice("milan", "0.05")
	l.pass(10 * time.Minute)
	w.Wake()
	l.until(ns, "DefaultName Remote: In milan+oslo; draining milan=2026-11-25T10:40:00Z")
	l.status("cheapest", waitsFor("milan", "1 pod runs there"))

	// Without a pod, it waits until Oslo has the namespace.
	end()
	l.pass(podsPeriod)
	w.Wake()
	l.status("cheapest", waitsFor("milan", "what is chosen in its place does not have the namespace yet"))
	l.present(ns, "milan", "oslo")
	l.until(ns, "DefaultName Remote: In oslo")
	l.status("cheapest", func(s *v1alpha1.OrchestrationStatus) string {
		if len(s.Choices) != 1 || len(s.Choices[0].Notes) > 0 {
			return "still waits"
		}
		return ""
	})
}

func waitsFor(provider v1alpha1.OptionalClusterID, because string) func(*v1alpha1.OrchestrationStatus) string {
	return func(s *v1alpha1.OrchestrationStatus) string {
		for i := range s.Choices {
			if slices.ContainsFunc(s.Choices[i].Notes, func(n v1alpha1.NamespaceNote) bool { return n.Provider == provider && n.Because == because }) {
				return ""
			}
		}
		return "no note: " + because
	}
}

func TestADrainEndsAtItsDeadline(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	o := l.orchestrate("cheapest", cheapest)
	w, _ := l.run()
	l.until(ns, "DefaultName Remote: In milan")
	l.pod(ns, "milan")
	l.edit(o, func(s *v1alpha1.OrchestrationSpec) { s.Disabled = []v1alpha1.DisabledProvider{{Provider: "milan"}} })
	l.until(ns, "DefaultName Remote: In milan+oslo; draining milan=2026-11-25T10:30:00Z")
	l.pass(30 * time.Minute)
	w.Wake()
	l.until(ns, "DefaultName Remote: In oslo")
}

// edit changes the spec of an Orchestration.
func (l *lab) edit(o *v1alpha1.Orchestration, change func(*v1alpha1.OrchestrationSpec)) {
	l.t.Helper()
	kubetest.Edit(l.t, o, func(o client.Object) { change(&o.(*v1alpha1.Orchestration).Spec) }, kubetest.WriteSpec)
}

func TestWithNothingChosenNoClusterIsSelected(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	l.orchestrate("near", `{require: [{kpi: Latency, max: "50"}]}`)
	l.run()
	l.until(ns, "DefaultName Remote: In none")
	l.status("near", func(s *v1alpha1.OrchestrationStatus) string {
		return ready(s, metav1.ConditionFalse, v1alpha1.OrchestrationNoProvider)
	})
}

func TestADryRunWritesNothingButItsStatus(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	o := l.orchestrate("try", "{mode: DryRun}")
	l.run()
	l.status("try", func(s *v1alpha1.OrchestrationStatus) string {
		if len(s.Choices) != 1 || len(s.Choices[0].Chosen) != 2 || s.ChosenProviders != "milan, oslo" {
			return "no choice"
		}
		return ready(s, metav1.ConditionTrue, v1alpha1.OrchestrationDryRun)
	})
	if got := l.summary(ns); got != "none" {
		t.Error(got)
	}
	// What an Active one has written stays.
	l.edit(o, func(s *v1alpha1.OrchestrationSpec) { s.Mode = v1alpha1.ModeActive })
	l.until(ns, "DefaultName Remote: In milan+oslo")
	l.edit(o, func(s *v1alpha1.OrchestrationSpec) {
		s.Mode, s.Disabled = v1alpha1.ModeDryRun, []v1alpha1.DisabledProvider{{Provider: "milan"}}
	})
	l.status("try", func(s *v1alpha1.OrchestrationStatus) string {
		if len(s.Choices) != 1 || len(s.Choices[0].Chosen) != 1 || s.ChosenProviders != string(s.Choices[0].Chosen[0].ClusterID) {
			return "no new choice"
		}
		return ""
	})
	l.until(ns, "DefaultName Remote: In milan+oslo")
}

func TestTheOldestOrchestrationDecidesAndTheOtherSaysSo(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	l.orchestrate("a-first", "{providers: {clusterIDs: [oslo]}}")
	l.orchestrate("b-second", "{providers: {clusterIDs: [milan]}}")
	l.run()
	l.until(ns, "DefaultName Remote: In oslo")
	l.status("b-second", func(s *v1alpha1.OrchestrationStatus) string {
		if len(s.Choices) != 1 || s.Choices[0].DecidedBy != "a-first" || len(s.Choices[0].Chosen) > 0 || s.ConsumerCount != 0 {
			return "does not say who decides"
		}
		return ""
	})
}

func TestADeletedOrchestrationLeavesNothingAfterTheDrain(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	o := l.orchestrate("cheapest", cheapest)
	w, _ := l.run()
	l.until(ns, "DefaultName Remote: In milan")
	end := l.pod(ns, "milan")
	kubetest.Remove(t, o)
	// New pods run here, and those on Milan may end there.
	l.until(ns, "DefaultName Local: In milan; draining milan=2026-11-25T10:30:00Z")
	end()
	l.pass(podsPeriod)
	w.Wake()
	l.until(ns, "none")
}

func TestOthersNamespaceOffloadingsAreLeftAlone(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	l.create(&offloadingv1beta1.NamespaceOffloading{
		ObjectMeta: metav1.ObjectMeta{Name: offloadingName, Namespace: ns},
		Spec:       offloadingv1beta1.NamespaceOffloadingSpec{NamespaceMappingStrategy: "EnforceSameName", PodOffloadingStrategy: "Local", ClusterSelector: corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{}}},
	})
	l.orchestrate("cheapest", cheapest)
	l.run()
	l.status("cheapest", waitsFor("", "it has a NamespaceOffloading that is not Proffer's: delete that one to have the pods sent on"))
	if got := l.summary(ns); got != "EnforceSameName Local: " {
		t.Error(got)
	}
}

func TestSomeNamespacesAreRefused(t *testing.T) {
	l := newLab(t)
	back := l.sent("team-milano-oslo", "team-milano")
	forged := l.named("forged")
	l.namespace("forged", map[string]string{liqo.RemoteClusterIDLabel: "oslo"}, map[string]string{liqo.ManagedByMapAnnotation: l.named("liqo-tenant-rome") + "/milan", liqo.OriginalNameAnnotation: "x"})
	nowhere := l.named("nowhere")
	l.namespace("nowhere", map[string]string{liqo.RemoteClusterIDLabel: "rome"}, map[string]string{liqo.ManagedByMapAnnotation: "default/milan", liqo.OriginalNameAnnotation: "x"})
	// Neither of these was sent.
	l.namespace("labelled", map[string]string{liqo.RemoteClusterIDLabel: "rome"}, nil)
	good := l.sent("team-rome", "team")
	l.orchestrate("cheapest", cheapest)
	l.run()
	l.until(good, "DefaultName Remote: In milan")
	var events []string
	test.Eventually(t, func() string {
		for len(l.recorder.Events) > 0 {
			events = append(events, <-l.recorder.Events)
		}
		for _, want := range []string{
			"it has been on this cluster before: its name at the consumer is team-milano",
			"consumer rome has sent it, and its label liqo.io/remote-cluster-id names \"oslo\"",
			"its NamespaceMap is in no tenant namespace of a consumer",
		} {
			if !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, want) }) {
				return fmt.Sprintf("no Event %q in %q", want, events)
			}
		}
		return ""
	})
	for _, ns := range []string{back, forged, nowhere, l.named("labelled"), l.named("liqo-tenant-rome")} {
		if got := l.summary(ns); got != "none" {
			t.Errorf("%s: %s", ns, got)
		}
	}
}

func TestAProviderThatFailsIsReplaced(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	l.orchestrate("cheapest", strings.Replace(cheapest, "count: 1", "count: 1, drainMinutes: 0", 1))
	l.run()
	l.until(ns, "DefaultName Remote: In milan")
	l.setReady("milan", corev1.ConditionFalse)
	l.until(ns, "DefaultName Remote: In oslo")
	l.status("cheapest", func(s *v1alpha1.OrchestrationStatus) string {
		if len(s.Choices) != 1 || len(s.Choices[0].Rejected) != 1 || s.Choices[0].Rejected[0].Because != "its virtual node milan is not Ready" {
			return "no reason"
		}
		return ""
	})
}

func TestLiqoMayComeLater(t *testing.T) {
	l := newLab(t, "core.liqo.io_foreignclusters.yaml")
	ns := l.sent("team-rome", "team")
	l.orchestrate("cheapest", cheapest)
	w, _ := l.run()
	l.status("cheapest", func(s *v1alpha1.OrchestrationStatus) string {
		return ready(s, metav1.ConditionFalse, v1alpha1.OrchestrationNoLiqo)
	})
	for _, name := range liqoCRDs[:3] {
		kubetest.Install(t, controlplane.LiqoCRD(t, name))
	}
	l.provider("milan", "0.02")
	w.Wake()
	l.until(ns, "DefaultName Remote: In milan")
}
