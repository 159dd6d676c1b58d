package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// TestTheBrokerSeesWhatItsProvidersOffer: with the Roles that the plugin prints, the operator of milan shows what the
// Offers of oslo and paris have, and a change within a minute.
func TestTheBrokerSeesWhatItsProvidersOffer(t *testing.T) {
	lab.Cleanup(t, func(ctx context.Context) error { return Apply(ctx, clusters.Oslo, "provider") })
	token := readProviders(t, "catalog-reader")
	offer(t, clusters.Oslo, 3)
	changed := time.Now()
	lab.Eventually(t, "milan shows the change", func(ctx context.Context) error {
		o, err := own(ctx, clusters.Oslo)
		if err != nil {
			return err
		}
		if cpu, _, _ := unstructured.NestedString(o.Object, "status", "ceiling", "cpu"); cpu != "3" {
			return fmt.Errorf("the ceiling of oslo is still %s", cpu)
		}
		return shown(ctx, token, clusters.Oslo)
	})
	if took := time.Since(changed); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// readProviders waits until the operator of milan has read its providers, and returns the token of a new account of
// this name that may read the catalog.
func readProviders(t *testing.T, account string) (token string) {
	t.Helper()
	token = clusters.Milan.NewAccount(t, account, "proffer-catalog-reader")
	for _, provider := range clusters.Providers() {
		lab.Eventually(t, "milan shows what "+provider.ID+" offers", func(ctx context.Context) error { return shown(ctx, token, provider) })
	}
	return token
}

// own returns the Offer that a provider publishes to milan.
func own(ctx context.Context, provider *lab.Cluster) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("proffer.dev/v1alpha1")
	o.SetKind("Offer")
	at := client.ObjectKey{Namespace: lab.TenantNamespace("milan"), Name: providerClass}
	return o, provider.Client.Get(ctx, at, o)
}

// federation is what the test needs of the answer.
type federation struct {
	Providers []struct {
		ClusterID string
		Publishes bool
		Problems  []string
		Offers    []struct{ Available map[string]string }
		Liqo      struct {
			APIServer    string
			VirtualNodes []string
			Slices       []struct{ Accepted bool }
		}
	}
}

// shown returns nil if milan shows of a provider what its own Offer has, and what Liqo knows of it.
func shown(ctx context.Context, token string, provider *lab.Cluster) error {
	o, err := own(ctx, provider)
	if err != nil {
		return err
	}
	want, _, err := unstructured.NestedStringMap(o.Object, "status", "available")
	if err != nil {
		return err
	}
	text, err := clusters.Milan.Ask(ctx, token, http.MethodGet, "/api/catalog?scope=federation&class="+providerClass)
	if err != nil {
		return err
	}
	var all federation
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return err
	}
	for _, p := range all.Providers {
		if p.ClusterID != provider.ID {
			continue
		}
		if len(p.Offers) != 1 || !p.Publishes || len(p.Problems) > 0 || p.Liqo.APIServer == "" ||
			len(p.Liqo.VirtualNodes) != 1 || len(p.Liqo.Slices) != 1 || !p.Liqo.Slices[0].Accepted {
			return fmt.Errorf("it is shown as %+v", p)
		}
		if !maps.Equal(p.Offers[0].Available, want) {
			return fmt.Errorf("%s is shown with %v, and has %v", p.ClusterID, p.Offers[0].Available, want)
		}
		return nil
	}
	return fmt.Errorf("it is not shown: %s", text)
}

// TestAPriceThatAProviderPublishesMovesTheChoice: without annotations, milan compares what oslo and paris ask for a core
// in their own Offers, and follows an edit on oslo within 30 seconds.
func TestAPriceThatAProviderPublishesMovesTheChoice(t *testing.T) {
	settle(t, "paris", 0)
	t.Cleanup(func() {
		change(t, map[string]any{"currency": nil})
		for _, provider := range clusters.Providers() {
			describe(t, provider, nil)
		}
	})
	change(t, map[string]any{"currency": "EUR"})
	asks := func(provider *lab.Cluster, amount string) {
		describe(t, provider, map[string]any{"currency": "EUR", "prices": map[string]any{"cpu": amount}})
	}
	asks(clusters.Oslo, "0.02")
	asks(clusters.Paris, "0.05")
	for _, provider := range clusters.Providers() {
		merge(t, clusters.Milan, &liqov1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: provider.ID}}, map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"price.proffer.dev/cpu": nil}},
		})
	}
	awaitSelected(t, "oslo")
	lab.Eventually(t, "the status says where the price comes from", func(ctx context.Context) error {
		text, err := choice(ctx)
		if err == nil && !strings.Contains(text, "Price cpu 0.02 EUR of its Offer "+providerClass) {
			err = fmt.Errorf("the choice is %s", text)
		}
		return err
	})
	asks(clusters.Oslo, "0.09")
	edited := time.Now()
	awaitSelected(t, "paris")
	if took := time.Since(edited); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

// describe sets what a provider says of its class in its catalog.
func describe(t *testing.T, provider *lab.Cluster, words map[string]any) {
	t.Helper()
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "proffer.dev/v1alpha1", "kind": "ResourcePolicy", "metadata": map[string]any{"name": "gold"},
	}}
	merge(t, provider, policy, map[string]any{"spec": map[string]any{"catalog": words}})
}
