package orchestration

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/broker"
	"proffer.dev/proffer/test/kubetest"
)

// priced returns an Offer with a price of cpu.
func priced(class string, price v1alpha1.Price, currency v1alpha1.Currency) rest.FederationOffer {
	o := rest.FederationOffer{OfferStatus: v1alpha1.OfferStatus{Class: class}}
	o.Prices, o.Currency, o.Period = v1alpha1.Prices{"cpu": price}, currency, v1alpha1.PeriodHour
	return o
}

func expired(o rest.FederationOffer) rest.FederationOffer {
	o.Expired = true
	return o
}

func TestThePriceOfSeveralOffersIsTheHighestInTheCurrency(t *testing.T) {
	month := priced("gold", "7.3", "EUR")
	month.Period = v1alpha1.PeriodMonth
	uneven := priced("gold", "0.000000001", "EUR")
	uneven.Period = v1alpha1.PeriodMonth
	free := priced("free", "1", "EUR")
	free.Prices = v1alpha1.Prices{"memory": "1"}
	largest := v1alpha1.Price("999999999.999999999")
	for _, tc := range []struct {
		name     string
		currency v1alpha1.Currency
		offers   []rest.FederationOffer
		want     string
	}{
		{"one", "EUR", []rest.FederationOffer{priced("gold", "0.03", "EUR")}, "0.03 EUR of its Offer gold"},
		{"the highest", "EUR", []rest.FederationOffer{priced("a", "0.02", "EUR"), priced("b", "0.03", "EUR"), priced("c", "0.01", "EUR"), free}, "0.03 EUR of its Offer b"},
		{"a month", "EUR", []rest.FederationOffer{month}, "0.01 EUR of its Offer gold"},
		{"more than nothing", "EUR", []rest.FederationOffer{uneven}, "0.000000001 EUR of its Offer gold"},
		{"the largest", "EUR", []rest.FederationOffer{priced("gold", largest, "EUR")}, string(largest) + " EUR of its Offer gold"},
		{"one in another currency hides none", "EUR", []rest.FederationOffer{priced("a", "0.01", "EUR"), priced("b", "9", "USD")}, "not measured: its price is in USD: write one in EUR as an annotation"},
		{"the currency is not set", "", []rest.FederationOffer{priced("gold", "0.03", "USD")}, "not measured: its price is in USD: write currency: USD"},
		{"expired", "EUR", []rest.FederationOffer{expired(priced("gold", "0.03", "EUR"))}, "not measured: its Offer gold has expired"},
		{"one expired", "EUR", []rest.FederationOffer{priced("a", "0.02", "EUR"), expired(priced("b", "0.03", "EUR"))}, "0.02 EUR of its Offer a"},
		{"the first expired", "EUR", []rest.FederationOffer{expired(priced("a", "0.03", "EUR")), priced("b", "0.02", "EUR")}, "0.02 EUR of its Offer b"},
		{"none", "EUR", []rest.FederationOffer{free}, "not measured"},
		{"no price", "EUR", []rest.FederationOffer{priced("gold", "1e9", "EUR")}, "not measured"},
	} {
		values, notes := map[broker.Measure]int64{}, map[broker.Measure]string{}
		addPrices(values, notes, tc.offers, tc.currency)
		m := broker.Measure{KPI: broker.Price, Of: "cpu"}
		got := strings.TrimSuffix("not measured: "+notes[m], ": ")
		if v, known := values[m]; known {
			got = m.Text(v) + " " + notes[m]
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// One that cannot be read is not replaced either: it was to replace the price of the provider.
func TestAnAnnotatedPriceIsNotReplaced(t *testing.T) {
	p := provider{Provider: broker.Provider{Values: map[broker.Measure]int64{}, Notes: map[broker.Measure]string{}}}
	u := kubetest.ForeignCluster(t, "milan", "milan", nil)
	u.SetAnnotations(map[string]string{PriceAnnotation + "cpu": "7", PriceAnnotation + "memory": "cheap"})
	p.addAnnotations(parseForeignCluster(u), noon)
	o := priced("gold", "0.03", "EUR")
	o.Prices["memory"] = "0.01"
	addPrices(p.Values, p.Notes, []rest.FederationOffer{o}, "EUR")
	cpu, memory := broker.Measure{KPI: broker.Price, Of: "cpu"}, broker.Measure{KPI: broker.Price, Of: "memory"}
	if diff := cmp.Diff(map[broker.Measure]int64{cpu: 7e9}, p.Values); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[broker.Measure]string{cpu: "of its annotation", memory: "its annotation is not a price such as 0.021"}, p.Notes); diff != "" {
		t.Error(diff)
	}
}

func TestMeasuredValuesAreReadFromAnnotations(t *testing.T) {
	p := provider{Provider: broker.Provider{Values: map[broker.Measure]int64{}, Notes: map[broker.Measure]string{}}}
	u := kubetest.ForeignCluster(t, "milan", "milan", nil)
	u.SetAnnotations(map[string]string{
		MeasuredAnnotation + "carbon": "210.5@2026-11-26T15:00Z", MeasuredAnnotation + "water": "7@2026-11-26T16:00:30+01:00",
		MeasuredAnnotation + "old": "1@" + noon.Format(time.RFC3339), MeasuredAnnotation + "untimed": "210",
		MeasuredAnnotation + "never": "210@tomorrow", MeasuredAnnotation + "text": "low@2026-11-26T15:00Z",
		MeasuredAnnotation + "negative": "-1@2026-11-26T15:00Z", MeasuredAnnotation + "long": strings.Repeat("1", 1<<10),
	})
	p.addAnnotations(parseForeignCluster(u), noon)
	got := map[string]string{}
	for _, kpi := range []broker.KPI{broker.MeasuredLower, broker.MeasuredHigher} {
		for _, name := range []string{"carbon", "water", "old", "untimed", "never", "text", "negative", "long", "absent"} {
			m := broker.Measure{KPI: kpi, Of: name}
			text := p.Notes[m]
			if v, known := p.Values[m]; known {
				text = m.Text(v) + text
			}
			if was, seen := got[name]; seen && was != text {
				t.Errorf("%s is %q and %q", name, was, text)
			}
			got[name] = text
		}
	}
	want := map[string]string{
		"carbon": "210.5", "water": "7", "absent": "", "old": "its annotation has expired at " + noon.Format(time.RFC3339),
		"untimed": "its annotation has no time: write 210@2026-11-26T15:00Z", "never": "the time of its annotation is not one such as 2026-11-26T15:00Z",
		"text": "its annotation has no decimal number", "negative": "its annotation has no decimal number", "long": "its annotation has no decimal number",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if first := time.Date(2026, 11, 26, 15, 0, 0, 0, time.UTC); !p.expires.Equal(first) {
		t.Errorf("the first expires at %v", p.expires)
	}
}

func TestTheNextPassIsMadeWhenAValueExpires(t *testing.T) {
	w := worldOf(t, named("all"))
	w.providers[1].expires = noon.Add(7 * time.Second)
	if got := w.work(noon).wait(noon); got != 7*time.Second {
		t.Errorf("the next pass is after %v", got)
	}
}

func TestARequirementOfAMeasuredValueHasADirection(t *testing.T) {
	o := named("o")
	o.Spec.Require = []v1alpha1.Requirement{{KPI: v1alpha1.KPIMeasured, Name: "carbon", Max: "210"}, {KPI: v1alpha1.KPIMeasured, Name: "carbon", Min: "1.5"}}
	o.Spec.Prefer = []v1alpha1.Preference{
		{KPI: v1alpha1.KPIMeasured, Name: "carbon"}, {KPI: v1alpha1.KPIMeasured, Name: "carbon", Better: v1alpha1.BetterLower},
		{KPI: v1alpha1.KPIMeasured, Name: "carbon", Better: v1alpha1.BetterHigher},
	}
	got, err := parse(o)
	if err != nil {
		t.Fatal(err)
	}
	lower, higher := broker.Measure{KPI: broker.MeasuredLower, Of: "carbon"}, broker.Measure{KPI: broker.MeasuredHigher, Of: "carbon"}
	if diff := cmp.Diff([]broker.Requirement{{Measure: lower, Bound: 210e9}, {Measure: higher, Bound: 15e8}}, got.Require); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]broker.Preference{{Measure: lower, Weight: 1}, {Measure: lower, Weight: 1}, {Measure: higher, Weight: 1}}, got.Prefer); diff != "" {
		t.Error(diff)
	}
}

// federated stands for a source of Offers.
type federated struct {
	mu sync.Mutex
	// unread counts down to the end of the first readings.
	unread int
	offers map[string][]rest.FederationOffer
}

func (f *federated) Complete(time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unread--
	return f.unread < 0
}

func (f *federated) Ours(time.Time) map[string][]rest.FederationOffer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unread >= 0 {
		return nil
	}
	all := map[string][]rest.FederationOffer{}
	for id, offers := range f.offers {
		all[id] = slices.Clone(offers)
	}
	return all
}

func (f *federated) publish(id string, offers ...rest.FederationOffer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offers[id] = offers
}

// annotate replaces the annotations of a provider.
func (l *lab) annotate(id string, annotations map[string]string) {
	l.t.Helper()
	kubetest.Edit(l.t, kubetest.ForeignCluster(l.t, id, id, nil), func(o client.Object) { o.SetAnnotations(annotations) }, kubetest.WriteSpec)
}

// reasons waits for the reasons of all providers, for the only consumer.
func (l *lab) reasons(name string, want map[string]string) {
	l.t.Helper()
	l.status(name, func(s *v1alpha1.OrchestrationStatus) string {
		got := map[string]string{}
		for i := range s.Choices {
			for _, c := range s.Choices[i].Chosen {
				got["chosen "+string(c.ClusterID)] = c.Because
			}
			for _, r := range s.Choices[i].Rejected {
				got[string(r.ClusterID)] = r.Because
			}
		}
		return cmp.Diff(want, got)
	})
}

const cheapestInEUR = "{prefer: [{kpi: Price, resource: cpu}], count: 1, currency: EUR, stay: {minutes: 0, gainPercent: 0}, drainMinutes: 0}"

func TestThePriceOfAnOfferDecidesUnlessThereIsAnAnnotation(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	f := &federated{offers: map[string][]rest.FederationOffer{"milan": {priced("gold", "0.02", "EUR")}, "oslo": {priced("gold", "0.04", "EUR")}}}
	l.federation = f
	l.annotate("milan", nil)
	l.annotate("oslo", nil)
	l.orchestrate("eur", cheapestInEUR)
	w, _ := l.run()
	// step lets a minute pass, after which the reasons are written.
	step := func(chosen string, want map[string]string) {
		t.Helper()
		l.pass(statusInterval)
		w.Wake()
		l.reasons("eur", want)
		l.until(ns, "DefaultName Remote: In "+chosen)
	}
	step("milan", map[string]string{
		"chosen milan": "Price cpu 0.02 EUR of its Offer gold (1000)",
		"oslo":         "its score is 500, and count is 1: Price cpu 0.04 EUR of its Offer gold (500)",
	})
	f.publish("milan", priced("gold", "0.08", "EUR"))
	step("oslo", map[string]string{
		"chosen oslo": "Price cpu 0.04 EUR of its Offer gold (1000)",
		"milan":       "its score is 500, and count is 1: Price cpu 0.08 EUR of its Offer gold (500)",
	})
	l.annotate("milan", map[string]string{PriceAnnotation + "cpu": "0.01"})
	step("milan", map[string]string{
		"chosen milan": "Price cpu 0.01 of its annotation (1000)",
		"oslo":         "its score is 250, and count is 1: Price cpu 0.04 EUR of its Offer gold (250)",
	})
	f.publish("oslo", priced("gold", "0.001", "USD"))
	step("milan", map[string]string{
		"chosen milan": "Price cpu 0.01 of its annotation (1000)",
		"oslo":         "its score is 0, and count is 1: Price cpu not measured: its price is in USD: write one in EUR as an annotation (0)",
	})
	l.annotate("milan", nil)
	f.publish("milan", expired(priced("gold", "0.001", "EUR")))
	f.publish("oslo", priced("gold", "5", "EUR"))
	step("oslo", map[string]string{
		"chosen oslo": "Price cpu 5 EUR of its Offer gold (1000)",
		"milan":       "its score is 0, and count is 1: Price cpu not measured: its Offer gold has expired (0)",
	})
}

// Otherwise a restart would move consumers from providers that have not been read yet.
func TestNothingIsChosenBeforeTheFirstReadings(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	l.federation = &federated{unread: 2, offers: map[string][]rest.FederationOffer{"milan": {priced("gold", "0.02", "EUR")}, "oslo": {priced("gold", "0.01", "EUR")}}}
	l.annotate("milan", nil)
	l.annotate("oslo", nil)
	l.orchestrate("eur", strings.Replace(cheapestInEUR, "minutes: 0", "minutes: 10", 1))
	l.run()
	l.until(ns, "DefaultName Remote: In oslo")
}

func TestWithoutACurrencyNoReadingIsAwaited(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	l.federation = &federated{unread: math.MaxInt}
	l.orchestrate("any", "{count: 1}")
	l.run()
	l.until(ns, "DefaultName Remote: In milan")
}

func TestAMeasuredValueCountsUntilItsTime(t *testing.T) {
	l := newLab(t)
	ns := l.sent("team-rome", "team")
	carbon := func(text string) map[string]string { return map[string]string{MeasuredAnnotation + "carbon": text} }
	l.annotate("milan", carbon("210@2026-11-25T11:00Z"))
	l.annotate("oslo", carbon("280@2026-11-25T13:00Z"))
	l.orchestrate("green", `{require: [{kpi: Measured, name: carbon, max: "300"}], prefer: [{kpi: Measured, name: carbon}], count: 1, drainMinutes: 0}`)
	w, _ := l.run()
	l.reasons("green", map[string]string{
		"chosen milan": "Measured carbon 210 (1000)", "oslo": "its score is 750, and count is 1: Measured carbon 280 (750)",
	})
	l.until(ns, "DefaultName Remote: In milan")
	l.pass(time.Hour - time.Second)
	w.Wake()
	l.status("green", func(s *v1alpha1.OrchestrationStatus) string {
		if len(s.Providers) == 0 || !s.Providers[0].LastObservedTime.Time.Equal(l.clock()) {
			return "a pass is awaited"
		}
		return ""
	})
	if !l.is(ns, "DefaultName Remote: In milan") {
		t.Errorf("a second before: %s", l.summary(ns))
	}
	l.pass(time.Second)
	w.Wake()
	l.until(ns, "DefaultName Remote: In oslo")
	l.reasons("green", map[string]string{
		"chosen oslo": "Measured carbon 280 (1000)",
		"milan":       "Measured carbon is required, and is not measured: its annotation has expired at 2026-11-25T11:00:00Z",
	})
}
