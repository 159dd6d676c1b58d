package broker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// TestPodsDoNotCircle has rome and milan be providers of each other, and rome the cheapest for milan.
func TestPodsDoNotCircle(t *testing.T) {
	settle(t, "oslo", 0)
	lab.Must(t, clusters.Milan.Peer(t.Context(), clusters.Rome))
	// Liqo itself answers slices of its class.
	lab.Must(t, requestSlice(t.Context(), clusters.Milan, clusters.Rome, "from-rome", "default", "10"))
	lab.Must(t, AwaitNode(t.Context(), clusters.Milan, "from-rome", true))
	t.Cleanup(func() {
		change(t, map[string]any{"providers": map[string]any{"clusterIDs": []string{"oslo", "paris"}}})
	})
	change(t, map[string]any{"providers": map[string]any{"clusterIDs": []string{"oslo", "paris", "rome"}}})
	price(t, map[string]string{"rome": "0.0001"})
	lab.Eventually(t, "rome is rejected for rome", func(ctx context.Context) error {
		text, err := choice(ctx)
		if err != nil || !strings.Contains(text, `{"because":"it is the consumer itself","by":"Orchestration","clusterID":"rome"}`) {
			return fmt.Errorf("the choices are %s: %w", text, err)
		}
		return nil
	})
	newDeployment(t, "web", 2)
	awaitRunOn(t, "web", 2, "oslo")
	awaitSelected(t, "oslo")

	t.Run("a namespace that was here before is not sent on", func(t *testing.T) {
		// Milan sends team-rome to rome, where rome offloads it to milan again.
		name := "back-milan"
		for _, object := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			&offloadingv1beta1.NamespaceOffloading{
				ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "offloading"},
				Spec: offloadingv1beta1.NamespaceOffloadingSpec{
					NamespaceMappingStrategy: offloadingv1beta1.DefaultNameMappingStrategyType,
					PodOffloadingStrategy:    offloadingv1beta1.RemotePodOffloadingStrategyType,
					ClusterSelector:          corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{}},
				},
			},
		} {
			lab.Must(t, clusters.Rome.Client.Create(t.Context(), object))
		}
		lab.Cleanup(t, func(ctx context.Context) error { return clusters.Rome.Do(ctx, "delete", "namespace", name) })
		lab.Eventually(t, "an Event says so", func(ctx context.Context) error {
			text, err := clusters.Milan.Kubectl(ctx, "", "get", "events", "-A", "--field-selector=reason=NotSentOn", "-o=jsonpath={.items[*].involvedObject.name} {.items[*].message}")
			if err != nil || !strings.Contains(text, name+"-rome") {
				return fmt.Errorf("the events are %q: %w", text, err)
			}
			return nil
		})
		var offloading offloadingv1beta1.NamespaceOffloading
		err := clusters.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: name + "-rome", Name: "offloading"}, &offloading)
		if client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("it has a NamespaceOffloading, or %v", err)
		}
	})
}
