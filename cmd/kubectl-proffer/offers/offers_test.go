package offers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

func TestOffersAreAlignedAtAnyWidth(t *testing.T) {
	offers := operatortest.Offers()
	offers.Consumers = append(offers.Consumers, rest.Consumer{ClusterID: "zagreb", Known: true, Because: "no ResourcePolicy in force is for this consumer"})
	for _, width := range []int{80, 160} {
		for name, table := range map[string]*output.Table{
			"offers": byClass(rowsOf(&offers), width), "by-resource": byResource(rowsOf(&offers), ""), "wide": byResource(rowsOf(&offers), output.Wide),
		} {
			t.Run(fmt.Sprintf("%s at %d", name, width), func(t *testing.T) {
				lines := table.Lines(width, false)
				operatortest.Golden(t, fmt.Sprintf("%s-%d.txt", name, width), lines)
				operatortest.Fits(t, width, lines)
			})
		}
	}
}

// one returns the default offer, or the offer to rome, of one resource.
func one(consumer, name, offered, granted, used string) []row {
	o := rest.Offer{Class: "gold", Policy: "gold-pool", Resources: operatortest.Amounts(name, offered), Because: []string{name + " 1: why"}}
	if granted != "" {
		o.Granted = operatortest.Amounts(name, granted)
	}
	if used != "" {
		o.Used = operatortest.Amounts(name, used)
	}
	return offerRows(consumer, []rest.Offer{o})
}

func TestAmountsAreRoundedDownForPeopleAndExactInWide(t *testing.T) {
	for _, tc := range []struct {
		rows                   []row
		class, resource, exact string
	}{
		{one("rome", "cpu", "13750m", "2500m", "2500m"), "cpu 13.7 | cpu 2.5 | cpu 2.5", "13.7 | 2.5 | 2.5", "13.75 | 2.5 | 2.5"},
		{one("rome", "memory", "69363721830", "16Gi", ""), "memory 64.5Gi | memory 16Gi | 0", "64.5Gi | 16Gi | 0", "69363721830 | 16Gi | 0"},
		// What differs reads differently.
		{one("rome", "cpu", "13750m", "", "13751m"), "cpu 13.75 | 0 | cpu 13.751", "13.75 | 0 | 13.751", "13.75 | 0 | 13.751"},
		// Nothing is 0, and there is no - but where there can be nothing.
		{one("rome", "cpu", "0", "", "0"), "cpu 0 | 0 | 0", "0 | 0 | 0", "0 | 0 | 0"},
		{one(output.Anyone, "cpu", "2", "", ""), "cpu 2 |  | ", "2 |  | ", "2 |  | "},
	} {
		if got := strings.Join(byClass(tc.rows, 0).Rows[0].Cells[3:6], " | "); got != tc.class {
			t.Errorf("got %q, want %q", got, tc.class)
		}
		if got := strings.Join(byResource(tc.rows, "").Rows[0].Cells[3:6], " | "); got != tc.resource {
			t.Errorf("by resource: got %q, want %q", got, tc.resource)
		}
		if got := strings.Join(byResource(tc.rows, output.Wide).Rows[0].Cells[3:6], " | "); got != tc.exact {
			t.Errorf("wide: got %q, want %q", got, tc.exact)
		}
	}
}

func TestOffersAreSortedByAColumn(t *testing.T) {
	offers := operatortest.Offers()
	offers.Consumers = append(offers.Consumers, rest.Consumer{ClusterID: "zagreb", Known: true, Because: "no ResourcePolicy in force is for this consumer"})
	const id = "9f1c2a44-7a53-4d1e-8e0b-5f6f0d7c1b22"
	for _, tc := range []struct{ order, resource, want string }{
		{"consumer", "", id + "/<unnamed> oslo/<unnamed> oslo/gold rome/<unnamed> rome/gold zagreb/ <anyone>/<unnamed>"},
		{"class", "", "zagreb/ " + id + "/<unnamed> oslo/<unnamed> rome/<unnamed> oslo/gold rome/gold <anyone>/<unnamed>"},
		{"policy", "", "zagreb/ oslo/gold rome/gold " + id + "/<unnamed> oslo/<unnamed> rome/<unnamed> <anyone>/<unnamed>"},
		{"offered", "", "rome/gold oslo/gold " + id + "/<unnamed> oslo/<unnamed> rome/<unnamed> zagreb/ <anyone>/<unnamed>"},
		{"granted", "memory", "rome/gold " + id + "/<unnamed> oslo/<unnamed> oslo/gold rome/<unnamed> zagreb/ <anyone>/<unnamed>"},
		{"used", "pods", "rome/gold oslo/gold " + id + "/<unnamed> oslo/<unnamed> rome/<unnamed> zagreb/ <anyone>/<unnamed>"},
	} {
		test.Must(t, output.CheckOrder(tc.order, orders))
		var got []string
		for _, of := range output.Fold(inOrder(rowsOf(&offers), tc.order, tc.resource), "", row.offer) {
			got = append(got, of[0].consumer+"/"+of[0].class)
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s of %q (-want +got):\n%s", tc.order, tc.resource, diff)
		}
	}
	if err := output.CheckOrder("size", orders); err == nil || err.Error() != `there is no order "size": write --sort=consumer|class|policy|offered|granted|used` {
		t.Error(err)
	}
}

func TestAResourceIsKeptWithTheOffersThatHaveIt(t *testing.T) {
	offers := operatortest.Offers()
	(&offersOptions{resource: "nvidia.com/gpu"}).keep(&offers)
	var got []string
	for _, r := range rowsOf(&offers) {
		got = append(got, r.consumer+"/"+r.class+"/"+r.resource+": "+r.why)
	}
	why := ": 50% of 4 is a pool of 2, 0 committed, 2 remaining; it has 0"
	if diff := cmp.Diff([]string{"oslo/gold/nvidia.com/gpu" + why, "rome/gold/nvidia.com/gpu" + why}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func answerOf(offers *rest.Offers) *offersAnswer {
	return &offersAnswer{value: offers, at: offers.Time, rows: rowsOf(offers), policies: offers.Policies}
}

func TestChangesShowOldAndNewWithTheirReasonsAndWithoutTheHeader(t *testing.T) {
	before, after := operatortest.Offers(), operatortest.Offers()
	rome := &after.Consumers[2]
	rome.Offers[1].Resources["cpu"] = operatortest.Amounts("cpu", "8")["cpu"]
	delete(rome.Offers[1].Granted, "memory")
	rome.Offers[1].Because[3] = "pods 211: another reason"
	after.Consumers = after.Consumers[1:]
	after.Consumers = append(after.Consumers, rest.Consumer{ClusterID: "turin", Offers: after.Anyone})
	after.Anyone = nil
	before.Policies[0].Generation, after.Policies[0].Generation = 1, 2
	for _, width := range []int{80, 160} {
		t.Run(strconv.Itoa(width), func(t *testing.T) {
			lines := new(offersOptions).compare(answerOf(&before), answerOf(&after), width, false)
			operatortest.Golden(t, fmt.Sprintf("changes-%d.txt", width), lines)
			operatortest.Fits(t, width, lines)
		})
	}
}

func TestPoliciesThatChangeAreListed(t *testing.T) {
	policy := func(name string, generation int64, reason string) rest.Policy {
		return rest.Policy{Name: name, Generation: generation, Reason: reason}
	}
	before := []rest.Policy{policy("a", 1, "Offering"), policy("b", 1, "Offering"), policy("c", 1, "Offering")}
	for name, tc := range map[string]struct {
		after []rest.Policy
		want  []string
	}{
		"none":                {before, nil},
		"an edit":             {[]rest.Policy{policy("a", 2, "Offering"), before[1], before[2]}, []string{"policy a edited: Offering"}},
		"a wrong edit":        {[]rest.Policy{before[0], policy("b", 3, "Invalid"), before[2]}, []string{"policy b edited: Offering -> Invalid"}},
		"an effect on it":     {[]rest.Policy{before[0], before[1], policy("c", 1, "Shadowed")}, []string{"policy c: Offering -> Shadowed"}},
		"a new one":           {append(slices.Clone(before), policy("d", 1, "DryRun")), []string{"policy d: - -> DryRun"}},
		"an earlier operator": {[]rest.Policy{policy("a", 0, "Offering"), before[1], before[2]}, nil},
		"those that are gone": {before[1:2], []string{"policy a: Offering -> -", "policy c: Offering -> -"}},
	} {
		if diff := cmp.Diff(tc.want, policyChanges(before, tc.after, new(offersOptions).showsClass)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestChangesOfPoliciesOfOtherClassesAreNotListed(t *testing.T) {
	gold := rest.Policy{Name: "gold", Generation: 1, Class: "gold", Reason: "Offering"}
	invalid := rest.Policy{Name: "gold", Generation: 2, Reason: "Invalid"} // It has no class.
	silver := rest.Policy{Name: "silver", Generation: 1, Class: "silver", Reason: "Offering"}
	ofGold := &offersOptions{oneClass: true, class: "gold"}
	for name, tc := range map[string]struct {
		before, after []rest.Policy
		want          []string
	}{
		"a wrong edit":         {[]rest.Policy{gold}, []rest.Policy{invalid}, []string{"policy gold edited: Offering -> Invalid"}},
		"its correction":       {[]rest.Policy{invalid}, []rest.Policy{gold}, []string{"policy gold edited: Invalid -> Offering"}},
		"one of another class": {[]rest.Policy{gold}, []rest.Policy{gold, silver}, nil},
		"that is gone":         {[]rest.Policy{gold, silver}, []rest.Policy{gold}, nil},
	} {
		if diff := cmp.Diff(tc.want, policyChanges(tc.before, tc.after, ofGold.showsClass)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnAnswerThatIsTheSameChangesNothing(t *testing.T) {
	before, after := operatortest.Offers(), operatortest.Offers()
	after.Revision++
	if got := new(offersOptions).compare(answerOf(&before), answerOf(&after), 0, false); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestWatchPrintsTheTableOnceThenWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		offers := func(percent int64, amounts ...string) *rest.Offers {
			all := &rest.Offers{
				Evaluated: rest.Evaluated{Time: time.Date(2026, 11, 23, 12, 0, int(percent), 0, time.Local)},
				Policies:  []rest.Policy{{Name: "gold", Generation: percent, Reason: "Offering"}},
			}
			if len(amounts) > 0 {
				all.Anyone = []rest.Offer{{Class: "gold", Policy: "gold", Resources: operatortest.Amounts(amounts...), Because: []string{"cpu 2: fixed"}}}
			}
			return all
		}
		tries := 0
		answers := []*rest.Offers{offers(1), offers(2), nil, offers(3, "cpu", "2"), offers(3, "cpu", "2"), offers(4, "cpu", "3")}
		read := func(context.Context) (*rest.Offers, error) {
			tries++
			switch {
			case tries > len(answers):
				return nil, io.ErrUnexpectedEOF
			case answers[tries-1] == nil:
				return nil, operatorclient.ErrTryAgain
			}
			return answers[tries-1], nil
		}
		var out, problems strings.Builder
		err := Watch(t.Context(), genericiooptions.IOStreams{Out: &out, ErrOut: &problems}, time.Hour, read,
			func() { out.WriteString("(printed)\n") })
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got the error %v", err)
		}
		const want = `(printed)
12:00:02  policy gold edited: Offering; no amount changes
(printed)
12:00:03  policy gold edited: Offering
CONSUMER   CLASS   RESOURCE   OFFERED   GRANTED   USED   POLICY      WHY
<anyone>   gold    cpu        - -> 2    -         -      - -> gold   fixed
(printed)
12:00:04  policy gold edited: Offering
<anyone>   gold    cpu        2 -> 3    -         -      gold     fixed
(printed)
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		const said = "No offers: no ResourcePolicy offers anything.\nWaiting: try again in a moment\n"
		if diff := cmp.Diff(said, problems.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestAClassIsKeptWithItsConsumersAndPolicies(t *testing.T) {
	offers := operatortest.Offers()
	(&offersOptions{class: "gold", oneClass: true}).keep(&offers)
	var got []string
	for _, c := range offers.Consumers {
		for _, o := range c.Offers {
			got = append(got, c.ClusterID+"/"+o.Class)
		}
	}
	for _, p := range offers.Policies {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff([]string{"oslo/gold", "rome/gold", "gold-pool", "gold-trial"}, got); diff != "" || len(offers.Anyone) > 0 {
		t.Errorf("-want +got:\n%s\nanyone: %v", diff, offers.Anyone)
	}
}
