package operator

import (
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// eventsOf returns the Events about a policy.
func eventsOf(t *testing.T, policy string) []eventsv1.Event {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(kubetest.Cluster(t).Config)
	test.Must(t, err)
	all, err := clientset.EventsV1().Events(metav1.NamespaceAll).List(t.Context(),
		metav1.ListOptions{FieldSelector: "regarding.name=" + policy})
	test.Must(t, err)
	return all.Items
}

// expectEvent waits for an Event about the object with this reason, whose note contains the words.
func expectEvent(t *testing.T, policy, reason, words string) {
	t.Helper()
	test.Eventually(t, func() string {
		var seen []string
		for _, e := range eventsOf(t, policy) {
			if e.Reason == reason && contains(e.Note, words) {
				return ""
			}
			seen = append(seen, e.Reason+": "+e.Note)
		}
		return "the only Events are " + strings.Join(seen, "\n")
	})
}
