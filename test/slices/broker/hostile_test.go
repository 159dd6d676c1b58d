package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// hostileOffers are as many as oslo publishes.
const hostileOffers = 10_000

// TestAHostileProviderIsShownAsWhatItIs: oslo, with all rights in its own cluster, publishes as paris, with texts for a
// terminal and a browser, and 10,000 Offers. Milan shows the first ones as oslo's, and paris as before.
func TestAHostileProviderIsShownAsWhatItIs(t *testing.T) {
	token := readProviders(t, "hostile-reader")
	lab.Must(t, clusters.Oslo.StopOperator(t.Context()))
	offers := &unstructured.Unstructured{}
	offers.SetAPIVersion("proffer.dev/v1alpha1")
	offers.SetKind("Offer")
	lab.Cleanup(t, func(ctx context.Context) error {
		// On a busy machine the API server needs longer than the minute that it gives a request.
		lab.Check(t, lab.Await(ctx, "the Offers are deleted", func(ctx context.Context) error {
			return clusters.Oslo.Client.DeleteAllOf(ctx, offers, client.InNamespace(lab.TenantNamespace("milan")))
		}))
		return errors.Join(clusters.Oslo.RunOperator(ctx, "catalog"), Apply(ctx, clusters.Oslo, "provider"))
	})
	anything := `[{"op":"replace","path":"/spec/versions/0/schema","value":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]`
	lab.Must(t, clusters.Oslo.Do(t.Context(), "patch", "crd", "offers.proffer.dev", "--type=json", "-p", anything))
	gold, err := own(t.Context(), clusters.Oslo)
	lab.Must(t, err)
	lies := map[string]any{
		"clusterID": "paris", "title": "\x1b[2Jnothing\u202e", "url": "javascript:alert(1)", "message": "a\nb",
		"labels": map[string]any{"liqo.io/remote-cluster-id": "paris"},
	}
	lab.Eventually(t, "the API server takes what the schema refused", func(context.Context) error {
		merge(t, clusters.Oslo, gold, map[string]any{"status": lies})
		if title, _, _ := unstructured.NestedString(gold.Object, "status", "title"); title != lies["title"] {
			return fmt.Errorf("the title is %q", title)
		}
		return nil
	})
	publish(t, gold)

	var text string
	lab.Eventually(t, "milan shows the first Offers of oslo", func(ctx context.Context) (err error) {
		text, err = clusters.Milan.Ask(ctx, token, http.MethodGet, "/api/catalog?scope=federation")
		if err == nil && !strings.Contains(text, "it has more than 200 Offers, and the others are left out") {
			err = fmt.Errorf("it shows %.2000s", text)
		}
		return err
	})
	var all any
	lab.Must(t, json.Unmarshal([]byte(text), &all))
	dangerous := func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
	if plain := fmt.Sprint(all); strings.ContainsFunc(plain, dangerous) || strings.Contains(plain, "javascript") ||
		strings.Count(plain, "clusterID:oslo") != 1 || strings.Count(plain, "nothing") == 0 {
		t.Errorf("the answer is %.2000q", plain)
	}
	lab.Must(t, shown(t.Context(), token, clusters.Paris))
}

// publish creates copies of an Offer under other names.
func publish(t *testing.T, of *unstructured.Unstructured) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for i := range hostileOffers {
		group.Go(func() error {
			o := of.DeepCopy()
			o.SetName(fmt.Sprintf("more-%05d", i))
			o.SetResourceVersion("")
			o.SetUID("")
			return errors.Join(
				unstructured.SetNestedField(o.Object, o.GetName(), "status", "class"), clusters.Oslo.Client.Create(ctx, o))
		})
	}
	lab.Must(t, group.Wait())
}
