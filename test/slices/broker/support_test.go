package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// newDeployment creates a Deployment in the namespace team of rome until the end of the test.
func newDeployment(t *testing.T, name string, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause"}},
			}},
		},
	}
	lab.Must(t, clusters.Rome.Client.Create(t.Context(), d))
	deleteAfter(t, name)
}

// deleteAfter deletes a Deployment of rome after the test.
func deleteAfter(t *testing.T, name string) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	lab.Cleanup(t, func(ctx context.Context) error {
		lab.Check(t, clusters.Rome.Client.Delete(ctx, d, client.PropagationPolicy(metav1.DeletePropagationForeground)))
		err := lab.Await(ctx, "the Deployment and its pods are gone", func(ctx context.Context) error {
			if err := clusters.Rome.Client.Get(ctx, client.ObjectKeyFromObject(d), d); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("there is the Deployment, or %w", err)
			}
			return runOn(ctx, name, 0)
		})
		return err
	})
}

// runOn returns an error unless so many pods of rome's Deployment run on these providers, none on others,
// and each is Running in all three clusters.
func runOn(ctx context.Context, app string, count int, providers ...string) error {
	var found []string
	for _, c := range clusters.Providers() {
		names, err := running(ctx, c, "team-rome-milan", app)
		if err != nil {
			return err
		}
		if len(names) > 0 && !slices.Contains(providers, c.ID) {
			return fmt.Errorf("%s runs %v", c.ID, names)
		}
		found = append(found, names...)
	}
	slices.Sort(found)
	if len(found) != count {
		return fmt.Errorf("the providers run %v", found)
	}
	for namespace, c := range map[string]*lab.Cluster{"team": clusters.Rome, "team-rome": clusters.Milan} {
		if names, err := running(ctx, c, namespace, app); err != nil || !slices.Equal(names, found) {
			return fmt.Errorf("%s shows %v as running, and the providers run %v: %w", c.ID, names, found, err)
		}
	}
	return nil
}

// running returns the names of the pods of a Deployment that run in a namespace.
func running(ctx context.Context, c *lab.Cluster, namespace, app string) (names []string, err error) {
	var list corev1.PodList
	if err := c.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
		return nil, err
	}
	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// orchestration returns the Orchestration of the lab.
func orchestration(ctx context.Context) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "proffer.dev/v1alpha1", "kind": "Orchestration"}}
	return o, clusters.Milan.Client.Get(ctx, client.ObjectKey{Name: "cheapest"}, o)
}

// change merges a part into the spec of the Orchestration.
func change(t *testing.T, spec map[string]any) {
	t.Helper()
	o, err := orchestration(context.WithoutCancel(t.Context()))
	lab.Must(t, err)
	merge(t, clusters.Milan, o, map[string]any{"spec": spec})
}

func merge(t *testing.T, c *lab.Cluster, object client.Object, part map[string]any) {
	t.Helper()
	data, err := json.Marshal(part)
	lab.Must(t, err)
	lab.Must(t, c.Client.Patch(context.WithoutCancel(t.Context()), object, client.RawPatch("application/merge-patch+json", data)))
}

// price sets what a CPU of each provider costs.
func price(t *testing.T, prices map[string]string) {
	t.Helper()
	for id, amount := range prices {
		merge(t, clusters.Milan, &liqov1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: id}}, map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"price.proffer.dev/cpu": amount}},
		})
	}
}

// offer has a provider offer milan so many CPUs.
func offer(t *testing.T, provider *lab.Cluster, cpus int64) {
	t.Helper()
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "proffer.dev/v1alpha1", "kind": "ResourcePolicy", "metadata": map[string]any{"name": "gold"},
	}}
	amounts := map[string]any{"cpu": strconv.FormatInt(cpus, 10)}
	merge(t, provider, policy, map[string]any{"spec": map[string]any{"offer": map[string]any{"fixed": amounts}}})
}

// selected returns the clusters that the NamespaceOffloading of rome's namespace selects.
func selected(ctx context.Context) ([]string, error) {
	var o offloadingv1beta1.NamespaceOffloading
	if err := clusters.Milan.Client.Get(ctx, client.ObjectKey{Namespace: "team-rome", Name: "offloading"}, &o); err != nil {
		return nil, err
	}
	return o.Spec.ClusterSelector.NodeSelectorTerms[0].MatchExpressions[0].Values, nil
}

func awaitSelected(t *testing.T, want ...string) {
	t.Helper()
	lab.Eventually(t, "milan selects "+strings.Join(want, " and "), func(ctx context.Context) error { return selects(ctx, want...) })
}

// isChosen returns an error unless a provider is the only one that is chosen for rome.
func isChosen(ctx context.Context, id string) error {
	text, err := choice(ctx)
	if err == nil && !strings.Contains(text, `"clusterID":"`+id+`","score":`) {
		err = fmt.Errorf("the choices are %s", text)
	}
	return err
}

// choice returns the choices of the Orchestration's status as text.
func choice(ctx context.Context) (string, error) {
	o, err := orchestration(ctx)
	if err != nil {
		return "", err
	}
	choices, _, err := unstructured.NestedSlice(o.Object, "status", "choices")
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(choices)
	return string(text), err
}

// settle makes the one provider cheaper than the other, with or without a drain, and waits until it is
// the only one that is chosen.
func settle(t *testing.T, on string, drainMinutes int) {
	t.Helper()
	change(t, map[string]any{"drainMinutes": 0, "disabled": nil})
	prices := map[string]string{"oslo": "0.09", "paris": "0.09"}
	prices[on] = "0.01"
	price(t, prices)
	awaitSelected(t, on)
	change(t, map[string]any{"drainMinutes": drainMinutes})
}

func awaitRunOn(t *testing.T, app string, count int, provider string) {
	t.Helper()
	lab.Eventually(t, fmt.Sprintf("%d pods of %s run on %s", count, app, provider),
		func(ctx context.Context) error { return runOn(ctx, app, count, provider) })
}

// count returns an error unless so many pods run in each of these namespaces.
func count(ctx context.Context, want int, app string, places map[string]*lab.Cluster) error {
	for namespace, c := range places {
		if names, err := running(ctx, c, namespace, app); err != nil || len(names) != want {
			return fmt.Errorf("%s runs %v: %w", c.ID, names, err)
		}
	}
	return nil
}

// kubectl runs kubectl on milan.
func kubectl(t *testing.T, args ...string) {
	t.Helper()
	lab.Must(t, clusters.Milan.Do(t.Context(), args...))
}

// selects returns an error unless the NamespaceOffloading of rome's namespace selects these clusters.
func selects(ctx context.Context, want ...string) error {
	got, err := selected(ctx)
	if err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("it selects %v, not %v", got, want)
	}
	return err
}

// granted returns an error unless milan grants rome so much.
func granted(ctx context.Context, want int64) error {
	now, err := look(ctx)
	if err == nil && now.granted != want {
		err = fmt.Errorf("it is granted %dm of %dm", now.granted, now.given)
	}
	return err
}
