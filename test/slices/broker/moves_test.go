package broker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

func TestAPodRunsOnTheChosenProvider(t *testing.T) {
	settle(t, "oslo", 0)
	newDeployment(t, "web", 2)
	awaitRunOn(t, "web", 2, "oslo")
	t.Run("and its status comes back", func(t *testing.T) {
		want := addresses(t, clusters.Oslo, "team-rome-milan")
		for namespace, c := range map[string]*lab.Cluster{"team-rome": clusters.Milan, "team": clusters.Rome} {
			if diff := cmp.Diff(want, addresses(t, c, namespace)); diff != "" {
				t.Errorf("%s: addresses of pods -want +got:\n%s", c.ID, diff)
			}
		}
	})
}

// At each hop a virtual kubelet asks the API server of the next cluster.
func TestLogsComeThroughBothHops(t *testing.T) {
	settle(t, "oslo", 0)
	newDeployment(t, "web", 1)
	awaitRunOn(t, "web", 1, "oslo")
	out, err := clusters.Rome.Kubectl(t.Context(), "", "-n", "team", "logs", "deployment/web")
	if want := lab.LogLine + "oslo\n"; err != nil || out != want {
		t.Errorf("the log is %q, want %q: %v", out, want, err)
	}
}

// addresses returns the addresses of the pods in a namespace, by name.
func addresses(t *testing.T, c *lab.Cluster, namespace string) map[string]string {
	t.Helper()
	var list corev1.PodList
	lab.Must(t, c.Client.List(t.Context(), &list, client.InNamespace(namespace)))
	found := map[string]string{}
	for _, pod := range list.Items {
		if pod.Status.PodIP == "" {
			t.Errorf("%s: pod %s has no address", c.ID, pod.Name)
		}
		found[pod.Name] = pod.Status.PodIP
	}
	return found
}

func TestPodsMoveToABetterProviderAfterTheDrain(t *testing.T) {
	settle(t, "oslo", 1)
	newDeployment(t, "web", 2)
	awaitRunOn(t, "web", 2, "oslo")
	price(t, map[string]string{"paris": "0.001"})
	awaitSelected(t, "oslo", "paris")
	lab.Eventually(t, "the status says what is waited for", func(ctx context.Context) error {
		text, err := choice(ctx)
		if err != nil || !strings.Contains(text, `"because":"2 pods run there","namespace":"team-rome","provider":"oslo"`) {
			return fmt.Errorf("it is %s: %w", text, err)
		}
		return nil
	})
	if err := runOn(t.Context(), "web", 2, "oslo"); err != nil {
		t.Errorf("pods moved before the drain was over: %v", err)
	}
	awaitSelected(t, "paris")
	awaitRunOn(t, "web", 2, "paris")
}

func TestPodsLeaveAProviderThatIsDisabled(t *testing.T) {
	settle(t, "oslo", 0)
	newDeployment(t, "web", 2)
	awaitRunOn(t, "web", 2, "oslo")
	token := clusters.Milan.NewToggler(t)
	clusters.Milan.Toggle(t, token, "oslo", false)
	awaitRunOn(t, "web", 2, "paris")
	clusters.Milan.Toggle(t, token, "oslo", true)
	awaitRunOn(t, "web", 2, "oslo") // It is cheaper.
}

func TestPodsLeaveAProviderThatGrantsNothingAnyMore(t *testing.T) {
	settle(t, "oslo", 0)
	newDeployment(t, "web", 2)
	awaitRunOn(t, "web", 2, "oslo")
	lab.Cleanup(t, func(ctx context.Context) error {
		lab.Check(t, Apply(ctx, clusters.Oslo, "provider"))
		return AwaitNode(ctx, clusters.Milan, "from-oslo", true)
	})
	offer(t, clusters.Oslo, 0)
	awaitSelected(t, "paris")
	awaitRunOn(t, "web", 2, "paris")
}

// A provider that does not answer cannot confirm that it has deleted a pod, so Kubernetes keeps the pod.
// The taint for nodes that are out of service says that it may go.
func TestPodsLeaveAProviderThatDoesNotAnswer(t *testing.T) {
	settle(t, "oslo", 0)
	newDeployment(t, "web", 2)
	awaitRunOn(t, "web", 2, "oslo")
	clusters.Oslo.Silence()
	answer := sync.OnceFunc(clusters.Oslo.Answer)
	t.Cleanup(answer)
	awaitSelected(t, "paris")
	newDeployment(t, "new", 1)
	lab.Eventually(t, "a new pod runs on paris", func(ctx context.Context) error {
		return count(ctx, 1, "new", map[string]*lab.Cluster{"team-rome-milan": clusters.Paris, "team-rome": clusters.Milan, "team": clusters.Rome})
	})

	const taint = "node.kubernetes.io/out-of-service"
	kubectl(t, "taint", "node", "from-oslo", taint+"=nodeshutdown:NoExecute")
	lab.Eventually(t, "the others run on paris too", func(ctx context.Context) error {
		return count(ctx, 2, "web", map[string]*lab.Cluster{"team-rome-milan": clusters.Paris, "team-rome": clusters.Milan, "team": clusters.Rome})
	})
	lab.Eventually(t, "the status says that oslo still has the namespace", func(ctx context.Context) error {
		text, err := choice(ctx)
		if err != nil || !strings.Contains(text, "the provider has not deleted it") {
			return fmt.Errorf("it is %s: %w", text, err)
		}
		return nil
	})
	answer()
	lab.Eventually(t, "it no longer says so", func(ctx context.Context) error {
		text, err := choice(ctx)
		if err != nil || strings.Contains(text, "the provider has not deleted it") {
			return fmt.Errorf("it is %s: %w", text, err)
		}
		return nil
	})
	kubectl(t, "taint", "node", "from-oslo", taint+"-")
	lab.Must(t, AwaitNode(t.Context(), clusters.Milan, "from-oslo", true))
	awaitRunOn(t, "web", 2, "paris")
}
