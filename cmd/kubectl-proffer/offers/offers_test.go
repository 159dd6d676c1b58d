package offers

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/test/operatortest"
)

func TestOffersAreAlignedAtAnyWidth(t *testing.T) {
	offers := operatortest.Offers()
	offers.Consumers = append(offers.Consumers, rest.Consumer{ClusterID: "zagreb", Known: true, Because: "no ResourcePolicy in force is for this consumer"})
	for _, width := range []int{80, 160} {
		for name, isWide := range map[string]bool{"offers": false, "wide": true} {
			t.Run(fmt.Sprintf("%s at %d", name, width), func(t *testing.T) {
				lines := table(rowsOf(&offers), isWide).Lines(width, false)
				operatortest.Golden(t, fmt.Sprintf("%s-%d.txt", name, width), lines)
				operatortest.Fits(t, width, lines)
			})
		}
	}
}

func TestChangesShowOldAndNewWithoutTheHeader(t *testing.T) {
	before, after := operatortest.Offers(), operatortest.Offers()
	rome := &after.Consumers[2]
	rome.Offers[1].Resources["cpu"] = operatortest.Amounts("cpu", "8")["cpu"]
	delete(rome.Offers[1].Granted, "memory")
	rome.Offers[1].Because[3] = "pods 211: another reason"
	after.Consumers = after.Consumers[1:]
	after.Consumers = append(after.Consumers, rest.Consumer{ClusterID: "turin", Offers: after.Anyone})
	after.Anyone = nil
	for _, width := range []int{80, 160} {
		for name, isWide := range map[string]bool{"changes": false, "changes-wide": true} {
			t.Run(fmt.Sprintf("%s at %d", name, width), func(t *testing.T) {
				lines := table(changes(rowsOf(&before), rowsOf(&after)), isWide).Body(width, false)
				operatortest.Golden(t, fmt.Sprintf("%s-%d.txt", name, width), lines)
				operatortest.Fits(t, width, lines)
			})
		}
	}
}

func TestAnAnswerThatIsTheSameChangesNothing(t *testing.T) {
	before, after := operatortest.Offers(), operatortest.Offers()
	after.Revision++
	if got := changes(rowsOf(&before), rowsOf(&after)); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestAClassIsKeptWithItsConsumersAndPolicies(t *testing.T) {
	offers := operatortest.Offers()
	keepClass(&offers, "gold")
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
