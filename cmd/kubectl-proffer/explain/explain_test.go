package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

func rome() rest.Consumer { return operatortest.Detailed(operatortest.Offers().Consumers[2]) }

func TestAnExplanationIsAlignedAtAnyWidth(t *testing.T) {
	consumer := rome()
	for _, width := range []int{80, 160} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			lines := describe(&consumer, "", width)
			operatortest.Golden(t, fmt.Sprintf("rome-%d.txt", width), lines)
			operatortest.Fits(t, width, lines)
		})
	}
}

func TestAmountsReadAsInTheirExplanationAndAreExactInWide(t *testing.T) {
	consumer := rome()
	o := &consumer.Offers[1]
	o.Resources, o.Granted, o.Used = operatortest.Amounts("memory", "69363721830"), nil, operatortest.Amounts("memory", "12345Mi")
	o.Because = []string{"memory 64.59Gi: 50% of 129.1Gi is a pool of 64.58Gi"}
	consumer.Details.Slices[0].Asked = operatortest.Amounts("cpu", "13750m")
	consumer.Details.Slices[0].Written = map[string]string{"cpu": "13.750", "memory": "-1"}
	consumer.Details.Slices[0].Granted = nil
	for format, want := range map[string][]string{
		"":          {`^ +memory +64\.59Gi +0 +12\.05Gi +50% of`, `^ +liqo-tenant-rome +batch +gold +cpu=13\.7,memory=-1 +0 +yes`, `worker-1 .* cpu=1\.5,memory=8Gi$`},
		output.Wide: {`^ +memory +69363721830 +0 +12345Mi +50% of`, `^ +liqo-tenant-rome +batch +gold +cpu=13\.750,memory=-1 +0 +yes`, `worker-1 .* cpu=1\.5,memory=8Gi$`},
	} {
		lines := describe(&consumer, format, 0)
		for _, line := range want {
			if !slices.ContainsFunc(lines, regexp.MustCompile(line).MatchString) {
				t.Errorf("%q: no line %s in:\n%s", format, line, strings.Join(lines, "\n"))
			}
		}
	}
}

func TestAPodThatWaitsHasNoNode(t *testing.T) {
	consumer := rome()
	consumer.Details.Pods = []rest.Pod{{UID: "waits", Requests: operatortest.Amounts("cpu", "2")}}
	line := regexp.MustCompile(`^ +- +waits +cpu=2$`)
	if lines := describe(&consumer, "", 80); !slices.ContainsFunc(lines, line.MatchString) {
		t.Errorf("no line %s in:\n%s", line, strings.Join(lines, "\n"))
	}
}

func TestTheSubjectNarrowsTheExplanation(t *testing.T) {
	for text, want := range map[string]string{
		"rome":             "/cpu /memory /pods gold/cpu gold/memory gold/nvidia.com/gpu gold/pods 4 policies 1 slices",
		"rome/gold":        "gold/cpu gold/memory gold/nvidia.com/gpu gold/pods 2 policies 1 slices",
		"rome/":            "/cpu /memory /pods 1 policies 0 slices",
		"rome//cpu":        "/cpu 1 policies 0 slices",
		"rome/<unnamed>":   "/cpu /memory /pods 1 policies 0 slices",
		"rome/gold/memory": "gold/memory 2 policies 1 slices",
		// A resource has a slash of its own.
		"rome/gold/nvidia.com/gpu": "gold/nvidia.com/gpu 2 policies 1 slices",
	} {
		consumer := rome()
		what, err := parseSubject(text)
		test.Must(t, err)
		test.Must(t, what.narrow(&consumer))
		got := ""
		for _, o := range consumer.Offers {
			for _, name := range []string{"cpu", "memory", "nvidia.com/gpu", "pods"} {
				if _, ok := o.Resources[name]; ok {
					got += o.Class + "/" + name + " "
				}
			}
			if len(o.Because) != len(o.Resources) {
				t.Errorf("%s: %d reasons for %d resources", text, len(o.Because), len(o.Resources))
			}
		}
		got += fmt.Sprintf("%d policies %d slices", len(consumer.Details.Policies), len(consumer.Details.Slices))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestASubjectThatIsNotOfferedIsRefusedWithWhatIs(t *testing.T) {
	for text, want := range map[string]string{
		"/gold":            `"/gold" names no consumer: write CONSUMER, CONSUMER/CLASS or CONSUMER/CLASS/RESOURCE`,
		"rome/gold/":       `"rome/gold/" names no resource after the class: write CONSUMER/CLASS/RESOURCE, such as rome/gold/cpu`,
		"rome/silver":      "rome is offered nothing in class silver, only in: <unnamed>, gold",
		"rome/gold/fpga":   "rome is not offered fpga in class gold, only: cpu, memory, nvidia.com/gpu, pods",
		"rome/silver/fpga": "rome is offered nothing in class silver, only in: <unnamed>, gold",
	} {
		what, err := parseSubject(text)
		if err == nil {
			consumer := rome()
			err = what.narrow(&consumer)
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// The explanation of the operator names the node, too.
func TestTheNodeOfASeatIsBesideTheAmountsIfThatFits(t *testing.T) {
	const long = "ip-10-0-12-34.eu-central-1.compute.internal"
	for name, tc := range map[string]struct {
		seat, state string
		width       int
		want        string
	}{
		"a usable node":              {"n1", "", 80, "cpu=3,memory=16Gi on n1   yes"},
		"a wide terminal":            {long, "", 160, "cpu=3,memory=16Gi on " + long + "   yes"},
		"a long name":                {long, "", 80, "cpu=3,memory=16Gi   yes"},
		"a cordoned node":            {"n1", rest.SeatCordoned, 160, "cpu=3,memory=16Gi on n1, which is cordoned   yes"},
		"a cordoned node, if narrow": {"n1", rest.SeatCordoned, 80, "cpu=3,memory=16Gi   yes"},
		"a lost node":                {"n1", rest.SeatLost, 0, "cpu=3,memory=16Gi was on n1, which is gone or not usable   yes"},
		"no seat":                    {"", "", 0, "cpu=3,memory=16Gi   yes"},
	} {
		t.Run(name, func(t *testing.T) {
			consumer := rome()
			s := &consumer.Details.Slices[0]
			s.Seat, s.SeatState = tc.seat, tc.state
			lines := describe(&consumer, "", tc.width)
			if tc.width > 0 {
				operatortest.Fits(t, tc.width, lines)
			}
			if text := strings.Join(lines, "\n"); !strings.Contains(text, tc.want) {
				t.Errorf("no %q in\n%s", tc.want, text)
			}
		})
	}
}
