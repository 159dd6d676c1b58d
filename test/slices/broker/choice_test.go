package broker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"proffer.dev/proffer/test/slices/lab"
)

// TestAConsumerChoosesItsProvider: rome, with nothing but its own kubeconfig, sees the providers of milan with their
// figures and chooses paris. Its pods move there after the drain.
func TestAConsumerChoosesItsProvider(t *testing.T) {
	settle(t, "oslo", 1)
	newDeployment(t, "web", 2)
	awaitRunOn(t, "web", 2, "oslo")
	if _, stderr, status := proffer(t, "providers", "choose", "paris"); status == 0 {
		t.Errorf("rome chooses before milan lets consumers choose: %s", stderr)
	}
	t.Cleanup(func() { change(t, map[string]any{"consumersMay": "None"}) })
	change(t, map[string]any{"consumersMay": "Choose"})
	must(t, "providers", "reset") // What milan did not let it choose is there.

	must(t, "providers", "choose", "oslo", "paris")
	lab.Eventually(t, "rome sees what milan measures", func(context.Context) error {
		text := must(t, "providers")
		for _, want := range []string{"oslo", "paris", "0.01", "0.09"} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("no %s in %s", want, text)
			}
		}
		return nil
	})
	must(t, "providers", "choose", "paris", "--broker=milan")
	awaitSelected(t, "oslo", "paris")
	lab.Eventually(t, "rome sees what is drained", func(context.Context) error {
		if text := must(t, "providers"); !strings.Contains(text, "2 pods run there") {
			return fmt.Errorf("it sees %s", text)
		}
		return nil
	})
	if err := runOn(t.Context(), "web", 2, "oslo"); err != nil {
		t.Errorf("pods moved before the drain was over: %v", err)
	}
	awaitSelected(t, "paris")
	awaitRunOn(t, "web", 2, "paris")

	change(t, map[string]any{"drainMinutes": 0})
	must(t, "providers", "require", "price.cpu=0.1")
	if text := must(t, "providers"); !strings.Contains(text, "oslo") || !strings.Contains(text, "the consumer has chosen others") {
		t.Errorf("rome sees %s", text)
	}
	must(t, "providers", "reset")
	awaitRunOn(t, "web", 2, "oslo") // It is cheaper.
}

// proffer runs the plugin with the kubeconfig of rome.
func proffer(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	stdout, stderr, status, err := clusters.Rome.Proffer(context.WithoutCancel(t.Context()), args...)
	lab.Must(t, err)
	return stdout, stderr, status
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, status := proffer(t, args...)
	if status != 0 {
		t.Fatalf("kubectl proffer %s: status %d: %s", strings.Join(args, " "), status, stderr)
	}
	return stdout
}
