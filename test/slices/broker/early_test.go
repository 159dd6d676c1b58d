package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// TestTheCallsOfTheEarlyBrokerWork types the commands of the page for who moves over from liqo-broker. Its Service is
// there without kube-proxy, so curl connects to the operator in its place.
func TestTheCallsOfTheEarlyBrokerWork(t *testing.T) {
	settle(t, "oslo", 0)
	lab.Cleanup(t, func(ctx context.Context) error {
		change(t, map[string]any{"defaultDisabled": nil, "enabled": nil})
		return errors.Join(
			clusters.Milan.Do(ctx, "-n", lab.OperatorNamespace, "delete", "serviceaccount", "broker-client"),
			clusters.Milan.Do(ctx, "delete", "clusterrolebinding", "broker-client", "broker-client-clusters"))
	})
	change(t, map[string]any{"defaultDisabled": true})
	lab.Eventually(t, "no provider is used until a client enables it", func(ctx context.Context) error {
		text, err := choice(ctx)
		if err == nil && !strings.Contains(text, "it is not enabled") {
			err = fmt.Errorf("the choices are %s", text)
		}
		return err
	})

	dir := t.TempDir()
	config := fmt.Sprintf("connect-to = \"liqo-broker.proffer-system:8000:%s\"\n", clusters.Milan.Address())
	lab.Must(t, os.WriteFile(filepath.Join(dir, ".curlrc"), []byte(config), 0o600))
	var token string
	answers := map[string]string{}
	for _, command := range commandsOf(t, "../../../docs/how-to/from-liqo-broker.md") {
		if strings.Contains(command, "DB_INFO") {
			continue // The books have tests of their own.
		}
		shell, err := clusters.Shell(t.Context(), t.TempDir(), "", "-eu", "-c", `kubectl() { milan "$@"; }; `+command)
		lab.Must(t, err)
		shell.Env = append(shell.Env, "CURL_HOME="+dir, "TOKEN="+token)
		var said bytes.Buffer
		shell.Stderr = &said
		out, err := shell.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, &said)
		}
		switch {
		case strings.Contains(command, "create token"):
			token = strings.TrimSpace(string(out))
		case strings.Contains(command, "curl"):
			_, request, _ := strings.Cut(command, "/api/")
			answers[request] = string(out)
		}
	}
	if len(answers) != 2 {
		t.Fatalf("the page has the requests %v", answers)
	}
	isForTheOperator(t, "liqo-broker", 8000)
	awaitSelected(t, "oslo")
	for request, answer := range answers {
		if !strings.HasPrefix(request, "clusters") {
			continue
		}
		var all []struct {
			Spec struct{ ForeignAuthURL string }
		}
		if err := json.Unmarshal([]byte(answer), &all); err != nil || len(all) < 2 || !strings.HasPrefix(all[0].Spec.ForeignAuthURL, "https://") {
			t.Errorf("%s: %s: %v", request, answer, err)
		}
	}
}

// commandsOf returns the commands of the numbered steps of a page.
func commandsOf(t *testing.T, page string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	lab.Must(t, err)
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
		if command, ok := strings.CutPrefix(line, "   $ "); ok {
			all = append(all, strings.TrimSpace(command))
		}
	}
	return all
}

// isForTheOperator reports a Service of milan that does not lead from a port to the HTTPS server of the operator.
func isForTheOperator(t *testing.T, name string, port int32) {
	t.Helper()
	service, operator := &corev1.Service{}, &appsv1.Deployment{}
	lab.Must(t, clusters.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: lab.OperatorNamespace, Name: name}, service))
	lab.Cleanup(t, func(ctx context.Context) error { return clusters.Milan.Client.Delete(ctx, service) })
	lab.Must(t, clusters.Milan.Client.Get(t.Context(), client.ObjectKey{Namespace: lab.OperatorNamespace, Name: "proffer"}, operator))
	pod := operator.Spec.Template
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) || len(service.Spec.Selector) == 0 {
		t.Errorf("the Service selects %v, and the operator has %v", service.Spec.Selector, pod.Labels)
	}
	at := map[intstr.IntOrString]int32{}
	for _, p := range pod.Spec.Containers[0].Ports {
		at[intstr.FromString(p.Name)] = p.ContainerPort
	}
	if p := service.Spec.Ports[0]; p.Port != port || at[p.TargetPort] != 8443 {
		t.Errorf("the Service has port %+v, and the operator %v", p, at)
	}
}
