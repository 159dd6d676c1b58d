package slices

import (
	"context"
	"errors"
	"fmt"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// TestConsumersSeeWhatTheyCouldHave reads with the kubeconfigs that Liqo gives consumers.
func TestConsumersSeeWhatTheyCouldHave(t *testing.T) {
	withCatalog(t)
	newNode(t, "shown", amounts{"cpu": "10", "memory": "16Gi", "pods": "20"})
	newPolicy(t, "shown", "{class: gold, offer: {nodes: {selector: {matchLabels: {pool: shown}}}}}")
	awaitAvailable(t, rome, amounts{"cpu": "10", "memory": "16Gi", "pods": "20"})
	requireOnlyOwnOffers(t, rome, oslo)

	other := newSlice(t, oslo, "taken", "gold", amounts{"cpu": "6", "memory": "4Gi", "pods": "5"})
	other.awaitGrant(t, granted("shown", amounts{"cpu": "6", "memory": "4Gi", "pods": "5"}))
	left := amounts{"cpu": "4", "memory": "12Gi", "pods": "15"}
	awaitAvailable(t, rome, left)
	exact := newSlice(t, rome, "exact", "gold", left)
	exact.awaitGrant(t, granted("shown", left))
	awaitAvailable(t, rome, amounts{"cpu": "0", "memory": "0", "pods": "0"})
	exact.remove(t)
	awaitAvailable(t, rome, left)

	t.Run("a drained consumer sees nothing until it is active again", func(t *testing.T) {
		setCondition(t, rome, authv1beta1.TenantConditionDrained)
		lab.Eventually(t, "the provider deletes rome's Offers", func(ctx context.Context) error {
			return differ("the number of Offers", 0, countOffers(ctx, provider.Client, rome))
		})
		setCondition(t, rome, authv1beta1.TenantConditionActive)
		awaitRights(t, rome)
		awaitAvailable(t, rome, left)
	})
	t.Run("a consumer that peers again sees its offers again", func(t *testing.T) {
		lab.Must(t, rome.Unpeer(t.Context(), provider))
		lab.Eventually(t, "rome's Offers are deleted", func(ctx context.Context) error {
			return differ("the number of Offers", 0, countOffers(ctx, provider.Client, rome))
		})
		lab.Must(t, rome.Peer(t.Context(), provider))
		awaitAvailable(t, rome, left)
		again := newSlice(t, rome, "again", "gold", left)
		again.awaitGrant(t, granted("shown", left))
		again.remove(t)
	})
	other.remove(t)
	awaitAvailable(t, rome, amounts{"cpu": "10", "memory": "16Gi", "pods": "20"})
}

// withCatalog installs the component catalog, with an operator that publishes Offers, until the end
// of the test. Then it removes the component as docs/how-to/publish-a-catalog.md says, and waits until Kubernetes has
// deleted what belongs to it.
func withCatalog(t *testing.T) {
	t.Helper()
	lab.Cleanup(t, func(ctx context.Context) error {
		err := errors.Join(provider.StopOperator(ctx), provider.Install(ctx), provider.StartOperator(ctx))
		for _, args := range [][]string{
			{"customresourcedefinition", "offers.proffer.dev"},
			{"clusterrolebinding", "proffer-catalog"},
			{"clusterrole", "proffer-catalog", "proffer-offer-viewer"},
		} {
			err = errors.Join(err, provider.Do(ctx, append([]string{"delete"}, args...)...))
		}
		gone := lab.Await(ctx, "Kubernetes deletes the RoleBindings", func(ctx context.Context) error {
			left, err := provider.Kubectl(ctx, "", "get", "rolebindings", "--all-namespaces", "--output=name",
				"--field-selector=metadata.name=proffer-offers")
			if err == nil && left != "" {
				err = fmt.Errorf("they exist: %s", left)
			}
			return err
		})
		return errors.Join(err, gone)
	})
	lab.Must(t, provider.Install(t.Context(), "catalog"))
	lab.Must(t, provider.RestartOperator(t.Context()))
}

var offersKind = schema.GroupVersionKind{Group: "proffer.dev", Version: "v1alpha1", Kind: "OfferList"}

// offersOf lists the Offers to a consumer.
func offersOf(ctx context.Context, api client.Client, consumer *lab.Cluster) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(offersKind)
	return list, api.List(ctx, list, client.InNamespace(lab.TenantNamespace(consumer.ID)))
}

// countOffers returns the number of Offers to a consumer, -1 if it is not known.
func countOffers(ctx context.Context, api client.Client, consumer *lab.Cluster) int {
	list, err := offersOf(ctx, api, consumer)
	if err != nil {
		return -1
	}
	return len(list.Items)
}

// awaitAvailable waits until the consumer reads that this is available in class gold, and in no other
// class anything.
func awaitAvailable(t *testing.T, consumer *lab.Cluster, want amounts) {
	t.Helper()
	lab.Eventually(t, consumer.ID+" sees what is available", func(ctx context.Context) error {
		api, err := consumer.At(ctx, provider)
		if err != nil {
			return err
		}
		list, err := offersOf(ctx, api, consumer)
		if err != nil {
			return err
		}
		found := map[string]amounts{}
		for _, o := range list.Items {
			available, _, err := unstructured.NestedStringMap(o.Object, "status", "available")
			if err != nil {
				return err
			}
			found[o.GetName()] = available
		}
		return differ("what is available", map[string]amounts{"gold": want}, found)
	})
}

// requireOnlyOwnOffers requires that a consumer can read no Offers of another one, and write none.
func requireOnlyOwnOffers(t *testing.T, consumer, other *lab.Cluster) {
	t.Helper()
	api, err := consumer.At(t.Context(), provider)
	lab.Must(t, err)
	list, err := offersOf(t.Context(), api, consumer)
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d Offers, %v, want 1", len(list.Items), err)
	}
	own := &list.Items[0]
	added := own.DeepCopy()
	added.SetName("silver")
	added.SetResourceVersion("")
	added.SetUID("")
	_, others := offersOf(t.Context(), api, other)
	everywhere := &unstructured.UnstructuredList{}
	everywhere.SetGroupVersionKind(offersKind)
	merge := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"title":"mine"}}`))
	for what, err := range map[string]error{
		"read the other's": others,
		"read all":         api.List(t.Context(), everywhere),
		"create":           api.Create(t.Context(), added),
		"update":           api.Update(t.Context(), own.DeepCopy()),
		"patch":            api.Patch(t.Context(), own.DeepCopy(), merge),
		"delete":           api.Delete(t.Context(), own.DeepCopy()),
	} {
		if apierrors.ReasonForError(err) != metav1.StatusReasonForbidden {
			t.Errorf("%s may %s: %v", consumer.ID, what, err)
		}
	}
}
