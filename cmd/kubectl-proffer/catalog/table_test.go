package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/internal/source/federation"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// readFrom returns what is read of a list with these Offers at noon.
func readFrom(t *testing.T, provider string, offers ...v1alpha1.Offer) rest.FederationProvider {
	t.Helper()
	text, err := json.Marshal(v1alpha1.OfferList{Items: offers})
	test.Must(t, err)
	var r federation.Reading
	test.Must(t, r.Read(strings.NewReader(string(text)), func() time.Time { return noon }))
	return rest.FederationProvider{ClusterID: provider, Offers: r.Offers, Problems: r.Problems}
}

// two returns the catalogs of two providers. That of turin is no longer kept up to date.
func two(t *testing.T) *rest.Federation {
	t.Helper()
	c := &rest.Federation{}
	for provider, now := range map[string]time.Time{"milan": noon, "turin": noon.Add(-time.Hour)} {
		offers := operatortest.ProviderOffers(now)
		if provider == "turin" {
			offers = offers[1:2]
		}
		c.Providers = append(c.Providers, readFrom(t, provider, offers...))
	}
	slices.SortFunc(c.Providers, func(a, b rest.FederationProvider) int { return strings.Compare(a.ClusterID, b.ClusterID) })
	return c
}

// shown returns the lines that the command prints.
func shown(t *testing.T, c *rest.Federation, fits, format string, width int) []string {
	t.Helper()
	amounts, err := federation.ParseAmounts(fits)
	test.Must(t, err)
	federation.Fit(c.Providers, amounts, 0, federation.Liqoctl{})
	lines := table(c, format, fits != "", noon).Lines(width, false)
	operatortest.Fits(t, width, lines)
	return append(lines, commands(c, amounts)...)
}

func TestTheCatalogIsAlignedAtAnyWidth(t *testing.T) {
	for _, width := range []int{80, 160} {
		for name, format := range map[string]string{"catalog": "", "wide": output.Wide} {
			t.Run(fmt.Sprintf("%s at %d", name, width), func(t *testing.T) {
				operatortest.Golden(t, fmt.Sprintf("%s-%d.txt", name, width), shown(t, two(t), "", format, width))
			})
		}
		t.Run(fmt.Sprintf("what fits at %d", width), func(t *testing.T) {
			operatortest.Golden(t, fmt.Sprintf("fits-%d.txt", width), shown(t, two(t), "cpu=2,memory=8Gi", "", width))
		})
	}
}

func TestAnExpiredOfferIsRedAndReported(t *testing.T) {
	c := two(t)
	rows := table(c, "", false, noon).Rows
	last := rows[len(rows)-1]
	if !last.Red || last.Cells[6] != "expired" || last.Cells[7] != "61m" || rows[0].Red {
		t.Errorf("got %+v", last)
	}
	want := []string{"its Offer silver is not kept up to date: it was valid until 2026-11-23T11:14:00Z"}
	if diff := cmp.Diff(want, c.Providers[1].Problems); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	federation.Fit(c.Providers, nil, 0, federation.Liqoctl{})
	if command := c.Providers[1].Offers[0].Command; command != "" {
		t.Errorf("it is asked for with %s", command)
	}
}

func TestTheDetailsNameWhoStandsBehindAClass(t *testing.T) {
	o := rest.FederationOffer{OfferStatus: v1alpha1.OfferStatus{Providers: []v1alpha1.OfferProvider{
		{ClusterID: "oslo", Prices: map[corev1.ResourceName]v1alpha1.ShownText{"cpu": "0.01"}, Currency: "EUR"}, {ClusterID: "paris"},
	}}}
	if got := details(&o); got != "providers: oslo (cpu 0.01 EUR), paris" {
		t.Error(got)
	}
}

func TestAProviderWhoseClockIsAheadHasAnOfferOfNow(t *testing.T) {
	p := readFrom(t, "milan", operatortest.ProviderOffers(noon.Add(time.Hour))[0])
	c := &rest.Federation{Providers: []rest.FederationProvider{p}}
	if got := table(c, "", false, noon).Rows[0].Cells[7]; got != "0s" {
		t.Errorf("its age is %s", got)
	}
}

func TestTheJSONIsTheOffersWithTheirCommands(t *testing.T) {
	c := two(t)
	federation.Fit(c.Providers, nil, 0, federation.Liqoctl{})
	var out strings.Builder
	test.Must(t, (output.Printer{Out: &out}).Value(output.JSON, c))
	var got struct {
		Providers []struct {
			ClusterID string
			Problems  []string
			Offers    []struct {
				v1alpha1.OfferStatus
				Expired bool
				Command string
			}
		}
	}
	test.Must(t, json.Unmarshal([]byte(out.String()), &got))
	gold := got.Providers[0].Offers[0]
	want := operatortest.ProviderOffers(noon)[0].Status
	if diff := cmp.Diff(want.Available, gold.Available); diff != "" || gold.Title != want.Title || gold.Expired ||
		!strings.HasPrefix(gold.Command, "liqoctl create resourceslice milan-gold-") {
		t.Errorf("got %+v\n%s", gold, diff)
	}
	if turin := got.Providers[1]; len(turin.Problems) != 1 || !turin.Offers[0].Expired || turin.Offers[0].Command != "" {
		t.Errorf("got %+v", turin)
	}
}

// hostile is a text that a terminal would obey.
const hostile = "\x1b]0;title\a\u009b2J\r\u202e\nliqoctl"

func dangerous(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// Every text of an Offer is hostile here, and nothing of it may reach a terminal as it is.
func TestNoTextOfAProviderIsObeyed(t *testing.T) {
	offer := operatortest.ProviderOffers(noon)[0]
	s := &offer.Status
	s.ClusterID, s.Title, s.Currency, s.Period, s.URL = hostile, hostile, hostile, hostile, hostile
	s.Price, s.OnExcess, s.Message = hostile, hostile, hostile
	s.StorageClasses, s.IngressClasses, s.LoadBalancerClasses = []string{hostile}, []string{hostile}, []string{hostile}
	s.Labels = map[string]v1alpha1.LabelValue{hostile: hostile}
	p := readFrom(t, "milan", offer)
	c := &rest.Federation{Providers: []rest.FederationProvider{p}}
	if !federation.Fit(c.Providers, nil, 0, federation.Liqoctl{}) {
		t.Fatal("nothing can be asked for")
	}
	var out strings.Builder
	printer := output.Printer{Out: &out, Width: 120}
	for name, show := range map[string]func() error{
		"table": func() error { return printer.Table(table(c, output.Wide, false, noon)) },
		"JSON":  func() error { return printer.Value(output.JSON, c) },
		"YAML":  func() error { return printer.Value(output.YAML, c) },
	} {
		out.Reset()
		test.Must(t, show())
		text := strings.ReplaceAll(out.String(), "\n", " ")
		if strings.ContainsFunc(text, dangerous) || !strings.Contains(text, `x1b]0;title`) {
			t.Errorf("%s: %q", name, out.String())
		}
		if strings.Contains(out.String(), "\nliqoctl") {
			t.Errorf("%s: a text looks like a command: %s", name, out.String())
		}
	}
}
