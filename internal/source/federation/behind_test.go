package federation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
)

func TestWhatIsShownOfAProviderIsBounded(t *testing.T) {
	offers, err := readFrom(t, object(t, "gold", func(map[string]any) {}))
	if err != nil {
		t.Fatal(err)
	}
	gold := offers.Offers[0]
	want := v1alpha1.OfferProvider{
		ClusterID: "oslo", Class: "gold", Title: "A100 nodes", Currency: "EUR", Period: v1alpha1.PeriodHour, ValidUntil: gold.ValidUntil,
		Labels: map[string]v1alpha1.ShownText{"region": "eu-south", "gpu-model": "a100-80gb"},
		Prices: map[corev1.ResourceName]v1alpha1.ShownText{"cpu": "0.021", "memory": "0.0029", "nvidia.com/gpu": "1.85"},
	}
	if diff := cmp.Diff(want, behindOf("oslo", &gold, noon)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		edit                  func(o *rest.FederationOffer)
		title, labels, prices bool
	}{
		"many labels": {func(o *rest.FederationOffer) {
			o.Labels["a"] = v1alpha1.LabelValue(strings.Repeat("a", maxText))
			o.Labels["b"] = v1alpha1.LabelValue(strings.Repeat("<", maxText))
		}, true, false, true},
		"many prices": {func(o *rest.FederationOffer) {
			for name := range numbered(maxItems, 1) {
				o.Prices[corev1.ResourceName(name)] = "0.000000001"
			}
		}, false, false, false},
		"a long title": {func(o *rest.FederationOffer) { o.Title = v1alpha1.Title(strings.Repeat("<", maxText)) }, false, false, false},
		"for ever":     {func(o *rest.FederationOffer) { o.ValidUntil.Time = noon.AddDate(9000, 0, 0) }, true, true, true},
	} {
		o := gold
		o.Labels, o.Prices = v1alpha1.Labels{"region": "eu"}, v1alpha1.Prices{"cpu": "1"}
		tc.edit(&o)
		got := behindOf("oslo", &o, noon)
		text, err := json.Marshal(got)
		if err != nil || len(text) > maxBehind || got.ValidUntil.After(noon.Add(24*time.Hour)) || (got.Title != "") != tc.title || (got.Labels != nil) != tc.labels || (got.Prices != nil) != tc.prices {
			t.Errorf("%s: %v, %d bytes: %s", name, err, len(text), text)
		}
	}
}

// known is a Source of a provider that has been read, where this cluster has an identity.
func known(id string, offers ...rest.FederationOffer) *Source {
	s := New(nil, nil, logr.Discard())
	s.peerings.ids.Put("liqo-tenant-"+id+"/controlplane", "", "1", identity{Identity{Provider: id, Namespace: "liqo-tenant-" + id}, true})
	s.providers[id] = &provider{offers: offers, read: noon}
	return s
}

// forge adds ResourceSlices that the cluster of a tenant namespace has written there, and accepted by itself.
func forge(s *Source, namespace, provider string, n int) {
	for i := range n {
		class := fmt.Sprintf("class-%03d", i)
		s.peerings.slices.Put(namespace+"/"+class, "", "1", slice{provider, rest.FederationSlice{Name: class, Class: class, Accepted: true}})
	}
}

// Liqo lets one that is a consumer too write ResourceSlices, with their status, into the namespace of the peering.
func TestAProviderThatGrantsItselfClassesHidesNoOther(t *testing.T) {
	var offers []rest.FederationOffer
	for i := range maxOffers {
		o := rest.FederationOffer{OfferStatus: v1alpha1.OfferStatus{Class: fmt.Sprintf("class-%03d", i), ValidUntil: metav1.NewTime(noon.Add(time.Hour))}}
		if i == 1 {
			o.ValidUntil = metav1.NewTime(noon)
		}
		offers = append(offers, o)
	}
	s := known("oslo", offers...)
	forge(s, "liqo-tenant-oslo", "oslo", maxOffers)
	var got []string
	for _, p := range s.Behind(noon)["oslo"] {
		got = append(got, p.Class)
	}
	if want := []string{"class-000", "class-002", "class-003", "class-004"}; !slices.Equal(got, want) {
		t.Errorf("%d classes are shown: %s, want %s", len(got), got, want)
	}
}

func TestAConsumerCannotInventProviders(t *testing.T) {
	s := known("oslo")
	forge(s, "liqo-tenant-rome", "oslo", 1)
	forge(s, "liqo-tenant-rome", "atlantis", 1)
	s.peerings.slices.Put("liqo-tenant-oslo/ours", "", "1", slice{"oslo", rest.FederationSlice{Name: "ours", Class: "gold"}})
	f := s.Federation(noon)
	if len(f.Providers) != 1 || f.Providers[0].ClusterID != "oslo" || len(f.Providers[0].Liqo.Slices) != 1 || f.Providers[0].Liqo.Slices[0].Name != "ours" {
		t.Errorf("%+v", f.Providers)
	}
}

func TestProvidersBehindAnOfferAreThoseOfAStranger(t *testing.T) {
	provider := func(edit func(p map[string]any)) map[string]any {
		p := map[string]any{
			"clusterID": "oslo", "class": "gold", "title": "near", "currency": "EUR", "period": "Hour", "validUntil": "2026-11-25T12:10:00Z",
			"labels": map[string]any{"region": "eu"}, "prices": map[string]any{"cpu": "0.01"},
		}
		edit(p)
		return p
	}
	read, err := readFrom(t, object(t, "gold", func(s map[string]any) {
		s["providers"] = []any{
			provider(func(map[string]any) {}),
			provider(func(p map[string]any) { p["clusterID"] = hostile }),
			provider(func(p map[string]any) { p["class"] = "a b" }),
			provider(func(p map[string]any) { p["labels"] = numbered(maxItems+1, "x") }),
			provider(func(p map[string]any) {
				p["clusterID"], p["title"], p["labels"], p["prices"], p["currency"] = "lima", hostile, map[string]any{hostile: hostile}, map[string]any{"cpu": "1e9", hostile: "1"}, "euros"
			}),
		}
	}), object(t, "silver", func(s map[string]any) {
		var all []any
		for range maxItems + 1 {
			all = append(all, provider(func(map[string]any) {}))
		}
		s["providers"] = all
	}))
	if err != nil || len(read.Offers) != 1 || len(read.Offers[0].Providers) != 2 {
		t.Fatalf("%v: %+v", err, read.Offers)
	}
	text, err := json.Marshal(read.Offers[0].Providers)
	if err != nil || strings.ContainsFunc(string(text), dangerous) {
		t.Errorf("%v: %s", err, text)
	}
	oslo, lima := read.Offers[0].Providers[0], read.Offers[0].Providers[1]
	if oslo.Title != "near" || oslo.Labels["region"] != "eu" || oslo.Prices["cpu"] != "0.01" || oslo.Currency != "EUR" || lima.Currency != "" || len(lima.Prices) > 0 {
		t.Errorf("%+v, %+v", oslo, lima)
	}
}
