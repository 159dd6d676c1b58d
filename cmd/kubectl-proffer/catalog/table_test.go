package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// names returns a liqoctl that names slices one after the other.
func names() liqoctl {
	n := 0
	return liqoctl{suffix: func() string { n++; return fmt.Sprintf("x%d", n) }}
}

// readFrom returns what is read of a list with these items at noon.
func readFrom(t *testing.T, provider string, items ...any) (Provider, error) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"kind": "OfferList", "items": items})
	test.Must(t, err)
	p := Provider{ClusterID: provider}
	err = p.read(strings.NewReader(string(text)), func() time.Time { return noon })
	return p, err
}

// two returns the catalogs of two providers. That of turin is no longer kept up to date.
func two(t *testing.T) *Catalog {
	t.Helper()
	c := &Catalog{}
	for provider, now := range map[string]time.Time{"milan": noon, "turin": noon.Add(-time.Hour)} {
		var items []any
		for _, o := range operatortest.ProviderOffers(now) {
			items = append(items, o)
		}
		if provider == "turin" {
			items = items[1:2]
		}
		p, err := readFrom(t, provider, items...)
		test.Must(t, err)
		c.Providers = append(c.Providers, p)
	}
	slices.SortFunc(c.Providers, func(a, b Provider) int { return strings.Compare(a.ClusterID, b.ClusterID) })
	return c
}

// shown returns the lines that the command prints.
func shown(t *testing.T, c *Catalog, fits, format string, width int) []string {
	t.Helper()
	amounts, err := parseAmounts(fits)
	test.Must(t, err)
	c.ask(amounts, names().command)
	lines := c.table(format, noon).Lines(width, false)
	operatortest.Fits(t, width, lines)
	return append(lines, c.commands(amounts)...)
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
	rows := c.table("", noon).Rows
	last := rows[len(rows)-1]
	if !last.Red || last.Cells[6] != "expired" || last.Cells[7] != "61m" || rows[0].Red {
		t.Errorf("got %+v", last)
	}
	want := []string{"its Offer silver is not kept up to date: it was valid until 2026-11-23T11:14:00Z"}
	if diff := cmp.Diff(want, c.Providers[1].Problems); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	c.ask(nil, names().command)
	if command := c.Providers[1].Offers[0].Command; command != "" {
		t.Errorf("it is asked for with %s", command)
	}
}

func TestAProviderWhoseClockIsAheadHasAnOfferOfNow(t *testing.T) {
	p, err := readFrom(t, "milan", operatortest.ProviderOffers(noon.Add(time.Hour))[0])
	test.Must(t, err)
	c := &Catalog{Providers: []Provider{p}}
	if got := c.table("", noon).Rows[0].Cells[7]; got != "0s" {
		t.Errorf("its age is %s", got)
	}
}

func TestTheJSONIsTheOffersWithTheirCommands(t *testing.T) {
	c := two(t)
	c.ask(nil, names().command)
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
		!strings.HasPrefix(gold.Command, "liqoctl create resourceslice milan-gold-x1 ") {
		t.Errorf("got %+v\n%s", gold, diff)
	}
	if turin := got.Providers[1]; len(turin.Problems) != 1 || !turin.Offers[0].Expired || turin.Offers[0].Command != "" {
		t.Errorf("got %+v", turin)
	}
}
