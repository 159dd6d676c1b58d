package orchestration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// killedAfterEachWrite runs one operator after the other until the namespace has this summary. Each is
// killed after its first write.
func (l *lab) killedAfterEachWrite(namespace, want string) (writes int) {
	l.t.Helper()
	for range 20 {
		l.set(1)
		_, kill := l.run()
		test.Eventually(l.t, func() string {
			if l.remaining() > 0 && !l.is(namespace, want) {
				return "no write"
			}
			return ""
		})
		kill()
		if l.remaining() == 0 {
			writes++
		}
		if l.is(namespace, want) {
			return writes
		}
	}
	l.t.Fatalf("got %q, want %q", l.summary(namespace), want)
	return writes
}

func (l *lab) set(left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = left
}

func (l *lab) remaining() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

// TestAKillBetweenAnyTwoWritesChangesNothing goes through the life of a choice. Each operator makes
// one write: the status with the choice, then the NamespaceOffloading.
func TestAKillBetweenAnyTwoWritesChangesNothing(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	o := l.orchestrate("cheapest", cheapest)
	for _, step := range []struct {
		name   string
		change func() (undo func())
		want   string
		writes int
	}{
		{"choose", func() func() { return nil }, "DefaultName Remote: In milan", 2},
		{"change", func() func() {
			l.present(ns, "milan")
			l.setPrice("milan", "0.05")
			l.pass(10 * time.Minute)
			return l.pod(ns, "milan")
		}, "DefaultName Remote: In milan+oslo; draining milan=2026-11-25T10:40:00Z", 2},
		// The status first says that no pod is waited for.
		{"drop", func() func() { l.present(ns, "milan", "oslo"); return nil }, "DefaultName Remote: In oslo", 2},
		{"leave", func() func() { kubetest.Remove(t, o); return nil }, "none", 1},
	} {
		end := step.change()
		if got := l.killedAfterEachWrite(ns, step.want); got < step.writes {
			t.Errorf("%s: %d writes, want at least %d", step.name, got, step.writes)
		}
		if end != nil {
			end()
		}
		if step.name == "leave" {
			continue
		}
		l.status("cheapest", func(s *v1alpha1.OrchestrationStatus) string {
			since := metav1.NewTime(time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC))
			if step.name != "choose" {
				since = metav1.NewTime(since.Add(10 * time.Minute))
			}
			if len(s.Choices) != 1 || len(s.Choices[0].Chosen) != 1 || !s.Choices[0].Chosen[0].Since.Equal(&since) {
				return step.name + ": the choice is not the one that was made"
			}
			return ""
		})
	}
}

// The first pass of an operator knows all ProviderChoices: without one, it would send pods to providers that the
// consumer has left out.
func TestAProviderChoiceOutlivesARestartAndEndsWithItsObject(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	l.orchestrate("open", "{consumersMay: Choose}")
	choice := &v1alpha1.ProviderChoice{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.named("liqo-tenant-rome"), Name: v1alpha1.ChoiceName},
		Spec:       v1alpha1.ProviderChoiceSpec{Providers: []v1alpha1.ClusterID{"oslo"}},
	}
	l.create(choice)
	_, stop := l.run()
	l.until(ns, "DefaultName Remote: In oslo")
	stop()
	before := l.offloading(ns).ResourceVersion
	w, _ := l.run()
	for range 2 { // The second status comes after all writes of the first pass.
		l.pass(statusInterval)
		w.Wake()
		test.Eventually(t, func() string {
			if err := l.admin.Get(t.Context(), client.ObjectKeyFromObject(choice), choice); err != nil {
				return err.Error()
			}
			if at := choice.Status.ObservedTime; at == nil || !at.Time.Equal(l.clock()) {
				return "no pass since the clock has moved"
			}
			return ""
		})
	}
	if after := l.offloading(ns).ResourceVersion; after != before {
		t.Errorf("the restart has changed the NamespaceOffloading: %s", l.summary(ns))
	}
	test.Must(t, l.admin.Delete(t.Context(), choice))
	l.until(ns, "DefaultName Remote: In milan+oslo")
}
