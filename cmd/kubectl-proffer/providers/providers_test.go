package providers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/source/federation"
	"proffer.dev/proffer/test/operatortest"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// milan is a broker that has answered, with an edit.
func milan(edit func(*federation.Choice)) broker {
	c := operatortest.Choice(v1alpha1.ProviderChoiceSpec{
		Providers: []v1alpha1.ClusterID{"oslo", "lima"}, Count: new(int32(2)),
		Require: []v1alpha1.Requirement{{KPI: v1alpha1.KPIUptime, Min: "99.5"}, {KPI: v1alpha1.KPIPrice, Resource: "cpu", Max: "0.03"}},
		Prefer:  []v1alpha1.Preference{{KPI: v1alpha1.KPIPrice, Resource: "cpu", Weight: 2}, {KPI: v1alpha1.KPIUptime, Weight: 1}},
	}, 3, noon)
	b := broker{ClusterID: "milan", Choice: &federation.Choice{Generation: 3, Spec: c.Spec, Status: c.Status}}
	edit(b.Choice)
	return b
}

func same(*federation.Choice) {}

func TestTheProvidersAreAlignedAtAnyWidth(t *testing.T) {
	all := []broker{milan(same), {ClusterID: "turin"}}
	for _, width := range []int{80, 160} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			lines := table(all).Lines(width, false)
			operatortest.Fits(t, width, lines)
			lines = append(lines, "")
			for i := range all {
				lines = append(lines, state(&all[i])...)
			}
			operatortest.Golden(t, fmt.Sprintf("providers-%d.txt", width), lines)
		})
	}
}

func TestAnOldAnswerIsShownAsOne(t *testing.T) {
	for want, edit := range map[string]func(*federation.Choice){
		"milan: InForce: The choice follows this ProviderChoice (before the latest change)": func(c *federation.Choice) { c.Generation = 4 },
		"milan: not answered yet": func(c *federation.Choice) { c.Status = v1alpha1.ProviderChoiceStatus{} },
	} {
		b := milan(edit)
		if got := state(&b)[0]; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestOnlyWhatChangesIsShownAgain(t *testing.T) {
	row := func(c *federation.Choice, i int) *v1alpha1.ChoiceOfProvider { return &c.Status.Providers[i] }
	for name, tc := range map[string]struct {
		edit func(*federation.Choice)
		want []string
	}{
		"nothing":  {same, nil},
		"a reason": {func(c *federation.Choice) { row(c, 0).Because = "other"; c.Status.ObservedTime = nil }, nil},
		"a price": {func(c *federation.Choice) { row(c, 0).Resources[0].Price = "0.04" },
			[]string{"milan oslo yes 99.982% 10.4ms cpu 0.03 EUR -> cpu 0.04 EUR cpu 12, memory 48Gi Price cpu 0.03 (666), Uptime 99.982 % (1000)"}},
		"a provider": {func(c *federation.Choice) {
			c.Status.Providers = append(c.Status.Providers[:1:1], v1alpha1.ChoiceOfProvider{ClusterID: "turin"})
		}, []string{"milan turin - -> no - - - - -", "milan paris no -> - 100% -> - - cpu 0.02 EUR -> - cpu 3500m -> - -"}},
		"the state": {func(c *federation.Choice) {
			c.Status.Conditions[0].Reason = v1alpha1.ProviderChoiceNotAllowed
			c.Status.Draining, c.Status.Unknown = nil, nil
		},
			[]string{"milan: NotAllowed: The choice follows this ProviderChoice", "set: choose oslo lima; require uptime=99.5,price.cpu=0.03; prefer price.cpu=2,uptime=1; count 2"}},
	} {
		var got []string
		for _, line := range changes([]broker{milan(same)}, []broker{milan(tc.edit)}, 0, false) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	lost := milan(same)
	lost.err = errors.New("it does not answer")
	if got := changes([]broker{milan(same)}, []broker{lost}, 0, false); len(got) > 0 {
		t.Errorf("a broker that does not answer changes %s", got)
	}
}

func TestTermsAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]string{
		"uptime=99.5,latency=50,price.cpu=0.03,remaining.cpu=4": "",
		"uptime>=99.5,latency<=50":                              "uptime=99.5,latency=50",
		"price.nvidia.com/gpu=1.85":                             "",
		"measured.carbon<=210,measured.score>=0.5":              "",
		"measured.carbon=210":                                   `"measured.carbon=210" is no requirement: write measured.carbon<=BOUND or measured.carbon>=BOUND`,
		"measured<=210":                                         `"measured" is not a KPI`,
		"uptime":                                                `"uptime" has no bound: write KPI=BOUND`,
		"uptime=":                                               `write uptime=BOUND, which means uptime >= BOUND`,
		"uptime<=99":                                            `write uptime=BOUND, which means uptime >= BOUND`,
		"latency>=9":                                            `write latency=BOUND, which means latency <= BOUND`,
		"price=1":                                               `"price" is not a KPI: write uptime, latency, price.RESOURCE`,
		"uptime.cpu=1":                                          `"uptime.cpu" is not a KPI`,
		"price.=1":                                              `"price." is not a KPI`,
		"speed=1":                                               `"speed" is not a KPI`,
		"uptime=1,":                                             `"" has no bound`,
		"remaining.memory=16Gi,remaining.requests.nvidia.com/gpu>==1x": `write remaining.requests.nvidia.com/gpu=BOUND`,
	} {
		got, err := parseRequire([]string{text})
		if err != nil {
			if want == "" || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", text, err, want)
			}
			continue
		}
		if want == "" {
			want = text
		}
		if again := requireText(got.([]v1alpha1.Requirement)); again != want {
			t.Errorf("%s: got %s, want %s", text, again, want)
		}
	}
	for text, want := range map[string]string{
		"price.cpu=2,uptime":                      "price.cpu=2,uptime=1",
		"measured.carbon=3,measured.score.higher": "measured.carbon=3,measured.score.higher=1",
		"uptime=x": `"uptime=x" has no weight: write a number, as in uptime=2`,
		"":         `"" is not a KPI`,
	} {
		got, err := parsePrefer([]string{text})
		again, _ := got.([]v1alpha1.Preference)
		if err == nil && preferText(again) != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %s, %v; want %s", text, preferText(again), err, want)
		}
	}
}

func TestProvidersAreSeparatedBySpacesOrCommas(t *testing.T) {
	for text, want := range map[string]string{"oslo": "oslo", "oslo paris": "oslo paris", "oslo,paris": "oslo paris", "oslo, paris": "", "oslo,": ""} {
		got, err := parseProviders(strings.Split(text, " "))
		if ids, _ := got.([]string); strings.Join(ids, " ") != want || (err != nil) != (want == "") {
			t.Errorf("%s: got %s, %v", text, ids, err)
		}
	}
}

// Each KPI of the API can be written.
func TestEachKPIHasAWord(t *testing.T) {
	for _, kpi := range []v1alpha1.KPI{v1alpha1.KPIUptime, v1alpha1.KPILatency, v1alpha1.KPIPrice, v1alpha1.KPIRemaining, v1alpha1.KPIMeasured} {
		if !slices.ContainsFunc(terms, func(t term) bool { return t.kpi == kpi }) {
			t.Errorf("%s has no word", kpi)
		}
	}
	if got := nameOf("Heat", "cpu", ""); got != "Heat.cpu" {
		t.Errorf("a KPI of a newer broker is shown as %s", got)
	}
}
