package broker

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	start   = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	latency = Measure{KPI: Latency}
	uptime  = Measure{KPI: Uptime}
	cpuCost = Measure{Price, "cpu"}
	cpuLeft = Measure{Remaining, "cpu"}
	// carbon and green have the same value in a provider, of which less or more is better.
	carbon = Measure{MeasuredLower, "carbon"}
	green  = Measure{MeasuredHigher, "carbon"}
)

const (
	milliseconds = 1000
	cents        = 10_000_000
)

func provider(id string, values map[Measure]int64) Provider { return Provider{ID: id, Values: values} }

// milanAndOslo are the providers of the example in the package comment.
func milanAndOslo(milansPrice int64) []Provider {
	return []Provider{
		provider("milan", map[Measure]int64{cpuCost: milansPrice, latency: 40 * milliseconds}),
		provider("oslo", map[Measure]int64{cpuCost: 3 * cents, latency: 10 * milliseconds}),
	}
}

// cheapAndNear is the Orchestration of the example in the package comment.
func cheapAndNear() *Orchestration {
	return &Orchestration{
		Count: 1, Prefer: []Preference{{cpuCost, 3}, {latency, 1}}, Stay: Stay{For: 10 * time.Minute, GainPercent: 20},
	}
}

// after returns the choice as the previous one of a later choice.
func after(c Choice) Previous {
	p := Previous{Chosen: map[string]time.Time{}, Left: map[string]time.Time{}}
	for _, chosen := range c.Chosen {
		p.Chosen[chosen.ID] = chosen.Since
	}
	for _, r := range c.Rejected {
		if !r.Left.IsZero() {
			p.Left[r.ID] = r.Left
		}
	}
	return p
}

func TestTheExampleOfThePackageComment(t *testing.T) {
	o := cheapAndNear()
	first := Choose(o, "rome", Wish{}, milanAndOslo(2*cents), Previous{}, start)
	want := Choice{
		Chosen:   []Chosen{{ID: "milan", Score: 812, Since: start, Because: "Price cpu 0.02 (1000), Latency 40 ms (250)"}},
		Rejected: []Rejected{{ID: "oslo", By: ByRank, Because: "its score is 749, and count is 1: Price cpu 0.03 (666), Latency 10 ms (1000)"}},
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}

	// Milan raises its price, and is kept for ten minutes.
	early := Choose(o, "rome", Wish{}, milanAndOslo(4*cents), after(first), start.Add(10*time.Minute-time.Second))
	want = Choice{
		Chosen:   []Chosen{{ID: "milan", Score: 625, Since: start, Because: "Price cpu 0.04 (750), Latency 40 ms (250)"}},
		Rejected: []Rejected{{ID: "oslo", By: ByRank, Because: "its score is 1000, and milan with 625 keeps its place until 2026-11-25T10:10:00Z"}},
	}
	if diff := cmp.Diff(want, early); diff != "" {
		t.Errorf("within stay (-want +got):\n%s", diff)
	}

	late := start.Add(10 * time.Minute)
	want = Choice{
		Chosen: []Chosen{{ID: "oslo", Score: 1000, Since: late, Because: "Price cpu 0.03 (1000), Latency 10 ms (1000)"}},
		Rejected: []Rejected{{
			ID: "milan", By: ByRank, Because: "it lost its place, and stays out until 2026-11-25T10:20:00Z", Left: late,
		}},
	}
	if diff := cmp.Diff(want, Choose(o, "rome", Wish{}, milanAndOslo(4*cents), after(early), late)); diff != "" {
		t.Errorf("after stay (-want +got):\n%s", diff)
	}
}

func TestASmallGainReplacesNobody(t *testing.T) {
	o := cheapAndNear()
	first := Choose(o, "rome", Wish{}, milanAndOslo(2*cents), Previous{}, start)
	// At 0.025, Milan scores 812 and Oslo 874: 7 % more.
	later := Choose(o, "rome", Wish{}, milanAndOslo(25*cents/10), after(first), start.Add(time.Hour))
	if later.Chosen[0].ID != "milan" || later.Rejected[0].Because != "its score is 874, less than 20 % better than 812 of milan" {
		t.Errorf("got %+v", later)
	}
}

func TestEachReasonForARejection(t *testing.T) {
	good := map[Measure]int64{uptime: 99_900, latency: 10 * milliseconds, cpuCost: cents, cpuLeft: 8000, carbon: 2e9, green: 2e9}
	unmeasured := func(m Measure, note string) func(*Provider, *Orchestration, *Wish) {
		return func(p *Provider, _ *Orchestration, _ *Wish) {
			delete(p.Values, m)
			p.Notes = map[Measure]string{m: note}
		}
	}
	milanIn := func(consumer string) map[Pair]struct{} { return map[Pair]struct{}{{"milan", consumer}: {}} }
	for _, tc := range []struct {
		name   string
		change func(*Provider, *Orchestration, *Wish)
		by     Layer
		want   string
	}{
		{"disabled for all", func(_ *Provider, o *Orchestration, _ *Wish) { o.Disabled = milanIn("") }, Admin, "it is disabled"},
		{"disabled for one", func(_ *Provider, o *Orchestration, _ *Wish) { o.Disabled = milanIn("rome") }, Admin, "it is disabled"},
		{"not enabled", func(_ *Provider, o *Orchestration, _ *Wish) { o.DisabledByDefault, o.Enabled = true, milanIn("lima") }, Admin, "it is not enabled"},
		{"the consumer itself", func(p *Provider, _ *Orchestration, _ *Wish) { p.ID = "rome" }, ByOrchestration, "it is the consumer itself"},
		{"unusable", func(p *Provider, _ *Orchestration, _ *Wish) { p.Unusable = "its virtual node is not Ready" }, ByOrchestration, "its virtual node is not Ready"},
		{"not measured", func(p *Provider, _ *Orchestration, _ *Wish) { delete(p.Values, latency) }, ByOrchestration, "Latency is required, and is not measured"},
		{"not up enough", func(p *Provider, _ *Orchestration, _ *Wish) { p.Values[uptime] = 99_499 }, ByOrchestration, "Uptime is 99.499 %, and at least 99.5 % is required"},
		{"too far", func(p *Provider, _ *Orchestration, _ *Wish) { p.Values[latency] = 50_001 }, ByOrchestration, "Latency is 50.001 ms, and at most 50 ms is required"},
		{"too dear", func(p *Provider, _ *Orchestration, _ *Wish) { p.Values[cpuCost] = 3*cents + 1 }, ByOrchestration, "Price cpu is 0.030000001, and at most 0.03 is required"},
		{
			"a price in another currency", unmeasured(cpuCost, "its price is in USD: write currency: USD"), ByOrchestration,
			"Price cpu is required, and is not measured: its price is in USD: write currency: USD",
		},
		{"too dear by its Offer", func(p *Provider, _ *Orchestration, _ *Wish) {
			p.Values[cpuCost], p.Notes = 4*cents, map[Measure]string{cpuCost: "EUR of its Offer gold"}
		}, ByOrchestration, "Price cpu is 0.04 EUR of its Offer gold, and at most 0.03 is required"},
		{"too much carbon", func(p *Provider, _ *Orchestration, _ *Wish) { p.Values[carbon] = 3e9 + 1 }, ByOrchestration, "Measured carbon is 3.000000001, and at most 3 is required"},
		{"too little", func(p *Provider, _ *Orchestration, _ *Wish) { p.Values[green] = 1e9 - 1 }, ByOrchestration, "Measured carbon is 0.999999999, and at least 1 is required"},
		{
			"expired", unmeasured(carbon, "its annotation has expired at noon"), ByOrchestration,
			"Measured carbon is required, and is not measured: its annotation has expired at noon",
		},
		{"too full", func(p *Provider, _ *Orchestration, _ *Wish) { p.Values[cpuLeft] = 3999 }, ByOrchestration, "Remaining cpu is 3.999, and at least 4 is required"},
		{"not wished for", func(_ *Provider, _ *Orchestration, w *Wish) { w.Providers = map[string]struct{}{"oslo": {}} }, ByConsumer, "the consumer has chosen others"},
		{"too far for the consumer", func(_ *Provider, _ *Orchestration, w *Wish) { w.Require = []Requirement{{latency, 9 * milliseconds}} }, ByConsumer, "Latency is 10 ms, and at most 9 ms is required by the consumer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := provider("milan", map[Measure]int64{})
			maps.Copy(p.Values, good)
			o := &Orchestration{
				Require:         []Requirement{{uptime, 99_500}, {latency, 50 * milliseconds}, {cpuCost, 3 * cents}, {cpuLeft, 4000}, {carbon, 3e9}, {green, 1e9}},
				ConsumersChoose: true,
			}
			if c := Choose(o, "rome", Wish{}, []Provider{p}, Previous{}, start); len(c.Chosen) != 1 {
				t.Fatalf("not chosen without the change: %+v", c)
			}
			wish := Wish{}
			tc.change(&p, o, &wish)
			want := Choice{Rejected: []Rejected{{ID: p.ID, By: tc.by, Because: tc.want}}}
			if diff := cmp.Diff(want, Choose(o, "rome", wish, []Provider{p}, Previous{}, start)); diff != "" {
				t.Error(diff)
			}
			if o.ConsumersChoose = false; tc.by == ByConsumer {
				if c := Choose(o, "rome", wish, []Provider{p}, Previous{}, start); len(c.Chosen) != 1 {
					t.Errorf("the wish counts though consumers may not choose: %+v", c)
				}
			}
		})
	}
}

// The consumer ranks what it is left with, and takes fewer, never more.
func TestAWishRanksAndCounts(t *testing.T) {
	o := cheapAndNear()
	o.Count, o.ConsumersChoose = 2, true
	providers := append(milanAndOslo(2*cents), provider("paris", map[Measure]int64{cpuCost: 9 * cents, latency: milliseconds}))
	choose := func(wish Wish) []string {
		c := Choose(o, "rome", wish, providers, Previous{}, start)
		return c.IDs()
	}
	for _, tc := range []struct {
		name string
		wish Wish
		want []string
	}{
		{"none", Wish{}, []string{"milan", "oslo"}},
		{"the nearest", Wish{Prefer: []Preference{{latency, 1}}}, []string{"oslo", "paris"}},
		{"one", Wish{Count: 1}, []string{"milan"}},
		{"more than allowed", Wish{Count: 3}, []string{"milan", "oslo"}},
		{"one that the Orchestration does not know", Wish{Providers: map[string]struct{}{"lima": {}}}, []string{}},
	} {
		if diff := cmp.Diff(tc.want, choose(tc.wish)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

// A consumer that goes back on its choice is not held to the time that a provider stays out.
func TestAProviderThatTheConsumerLeftComesBackAtOnce(t *testing.T) {
	o := cheapAndNear()
	o.ConsumersChoose = true
	only := func(id string) Wish { return Wish{Providers: map[string]struct{}{id: {}}} }
	was := Choose(o, "rome", Wish{}, milanAndOslo(2*cents), Previous{}, start)
	for i, id := range []string{"oslo", "milan", "oslo"} {
		now := start.Add(time.Duration(i) * time.Second)
		if was = Choose(o, "rome", only(id), milanAndOslo(2*cents), after(was), now); was.IDs()[0] != id {
			t.Fatalf("chose %v, want %s", was.IDs(), id)
		}
	}
}

func TestADisabledProviderIsDisabledForItsConsumerOnly(t *testing.T) {
	o := &Orchestration{Disabled: map[Pair]struct{}{{"milan", "rome"}: {}}}
	if c := Choose(o, "oslo", Wish{}, []Provider{provider("milan", nil)}, Previous{}, start); len(c.Chosen) != 1 {
		t.Errorf("got %+v", c)
	}
}

// Enabling a provider again is the act of an admin, and no flapping.
func TestAProviderThatIsEnabledAgainReturnsAtOnce(t *testing.T) {
	o, all := cheapAndNear(), []Provider{provider("milan", nil), provider("oslo", nil)}
	o.Count = 0
	first := Choose(o, "rome", Wish{}, all, Previous{}, start)
	o.Disabled = map[Pair]struct{}{{"milan", ""}: {}}
	second := Choose(o, "rome", Wish{}, all, after(first), start.Add(time.Second))
	o.Disabled = nil
	third := Choose(o, "rome", Wish{}, all, after(second), start.Add(2*time.Second))
	if len(second.Chosen) != 1 || len(third.Chosen) != 2 {
		t.Errorf("chosen %v, then %v", second.IDs(), third.IDs())
	}
}

func TestAProviderThatFailedReturnsAtOnceOnlyIfNobodyElseIsLeft(t *testing.T) {
	o := &Orchestration{Stay: Stay{For: 10 * time.Minute}}
	down := func(id string, is bool) Provider {
		p := provider(id, nil)
		if is {
			p.Unusable = "its virtual node is not Ready"
		}
		return p
	}
	was := Choose(o, "rome", Wish{}, []Provider{down("milan", false), down("oslo", false)}, Previous{}, start)
	var got []string
	for i, state := range []struct{ milan, oslo bool }{{true, false}, {false, false}, {false, true}, {false, false}} {
		was = Choose(o, "rome", Wish{}, []Provider{down("milan", state.milan), down("oslo", state.oslo)}, after(was), start.Add(time.Duration(i+1)*time.Minute))
		got = append(got, strings.Join(was.IDs(), "+"))
	}
	// Milan fails and waits; it returns when Oslo fails; then Oslo waits.
	if diff := cmp.Diff([]string{"oslo", "oslo", "milan", "milan"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheOldestOrchestrationInForceDecides(t *testing.T) {
	all := []*Orchestration{
		{Name: "b", Created: start}, {Name: "a", Created: start.Add(time.Millisecond)}, {Name: "old", Created: start.Add(-time.Hour), DryRun: true},
		{Name: "other", Created: start.Add(-time.Hour), Consumers: Scope{IDs: map[string]struct{}{"oslo": {}}}},
	}
	for consumer, want := range map[string]string{"rome": "a", "oslo": "other"} {
		if got := Decider(all, Consumer{ID: consumer}); got == nil || got.Name != want {
			t.Errorf("%s: got %+v, want %s", consumer, got, want)
		}
	}
	if got := Decider(all[2:3], Consumer{ID: "rome"}); got != nil {
		t.Errorf("a dry run decides: %+v", got)
	}
}

func TestANamespaceThatHasBeenHereIsRecognised(t *testing.T) {
	for name, want := range map[string]bool{
		"team": false, "team-rome": false, "team-milan": true, "team-milan-oslo": true, "milan": false, "milan-rome": false,
		"team-milano": false, "": false,
	} {
		if got := BeenHere(name, "milan"); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

func TestDecimals(t *testing.T) {
	for _, tc := range []struct {
		text     string
		decimals int
		want     int64
		ok       bool
		shown    string
	}{
		{"99.5", 3, 99_500, true, "99.5"}, {"100", 3, 100_000, true, "100"}, {"0.03", 9, 30_000_000, true, "0.03"},
		{"0", 9, 0, true, "0"}, {"1.", 3, 1000, true, "1"}, {"1.23456", 3, 1234, true, "1.234"}, {"16", 0, 16, true, "16"},
		{"", 3, 0, false, ""}, {".5", 3, 0, false, ""}, {"-1", 3, 0, false, ""}, {"1e9", 3, 0, false, ""}, {"99999999999", 9, 0, false, ""},
	} {
		got, ok := parseDecimal(tc.text, tc.decimals)
		if ok != tc.ok || ok && (got != tc.want || decimal(got, tc.decimals) != tc.shown) {
			t.Errorf("%q: %d, %v, shown as %q", tc.text, got, ok, decimal(got, tc.decimals))
		}
	}
}

// What the consumers' pods use of a provider does not drive them from it.
func TestAProviderIsKeptWhenItsRoomIsUsed(t *testing.T) {
	room := Measure{KPI: Remaining, Of: "cpu"}
	o := &Orchestration{Require: []Requirement{{Measure: room, Bound: 4000}}}
	with := func(left int64) []Provider { return []Provider{{ID: "oslo", Values: map[Measure]int64{room: left}}} }
	first := Choose(o, "rome", Wish{}, with(16_000), Previous{}, start)
	if got := first.IDs(); len(got) != 1 {
		t.Fatalf("chosen: %v", got)
	}
	if got := Choose(o, "rome", Wish{}, with(0), after(first), start); len(got.Chosen) != 1 {
		t.Errorf("once its room is used, %v are chosen", got.Chosen)
	}
	if got := Choose(o, "lima", Wish{}, with(0), Previous{}, start); len(got.Chosen) != 0 {
		t.Errorf("without room, %v are chosen for another consumer", got.Chosen)
	}
}

func TestTheScoreSaysWhereItsValuesComeFrom(t *testing.T) {
	o := &Orchestration{Prefer: []Preference{{cpuCost, 1}, {green, 1}, {carbon, 2}}}
	all := []Provider{
		{ID: "milan", Values: map[Measure]int64{cpuCost: 2 * cents, green: 2e9, carbon: 2e9}, Notes: map[Measure]string{cpuCost: "EUR of its Offer gold"}},
		{ID: "oslo", Values: map[Measure]int64{green: 4e9, carbon: 4e9}, Notes: map[Measure]string{cpuCost: "its Offer gold has expired"}},
	}
	want := []Chosen{
		{ID: "milan", Score: 875, Since: start, Because: "Price cpu 0.02 EUR of its Offer gold (1000), Measured carbon 2 (500), Measured carbon 2 (1000)"},
		{ID: "oslo", Score: 500, Since: start, Because: "Price cpu not measured: its Offer gold has expired (0), Measured carbon 4 (1000), Measured carbon 4 (500)"},
	}
	if diff := cmp.Diff(want, Choose(o, "rome", Wish{}, all, Previous{}, start).Chosen); diff != "" {
		t.Error(diff)
	}
}
