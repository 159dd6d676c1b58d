package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/operatortest"
)

func TestAnOutcomeIsAlignedAtAnyWidth(t *testing.T) {
	simulation := operatortest.Simulation()
	simulation.Problems = map[string][]string{"typo": {`spec.consumers.selector: Invalid value: "Inn": write In, NotIn, Exists or DoesNotExist`}}
	simulation.Truncated = []string{"offers"}
	for _, width := range []int{80, 160} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			lines := text(&simulation, width, false)
			operatortest.Golden(t, fmt.Sprintf("table-%d.txt", width), lines)
			operatortest.Fits(t, width, lines)
		})
	}
	t.Run("markdown", func(t *testing.T) { operatortest.Golden(t, "markdown.md", markdown(&simulation)) })
}

func TestEvictionsAreRedOnATerminal(t *testing.T) {
	simulation := operatortest.Simulation()
	for _, line := range text(&simulation, 160, true) {
		if red := strings.HasPrefix(line, "\x1b[31m"); red != strings.Contains(line, "becomes 0, so") {
			t.Errorf("red is %v: %s", red, line)
		}
	}
}

func TestTheExitStatusSaysWhatChanges(t *testing.T) {
	all := operatortest.Simulation()
	for _, tc := range []struct {
		name string
		s    rest.Simulation
		want int
	}{
		{"nothing", rest.Simulation{Unknown: all.Unknown}, 0},
		{"an offer", rest.Simulation{Offers: all.Offers}, 1},
		{"a policy's reason", rest.Simulation{Policies: all.Policies}, 1},
		{"a grant", rest.Simulation{Slices: all.Slices}, 1},
		{"an invalid policy", rest.Simulation{Problems: map[string][]string{"p": {"x"}}}, 1},
		{"an eviction", all, 2},
	} {
		if got := status(&tc.s); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		}
	}
	if got := text(&rest.Simulation{}, 80, false); !cmp.Equal(got, []string{"Nothing changes."}) {
		t.Errorf("got %q", got)
	}
}

func TestNodesAreParsed(t *testing.T) {
	got, err := parseAddNodes("3=cpu=8,memory=32Gi,nvidia.com/gpu=2,label=pool=gold,label=zone=")
	want := rest.AddedNodes{
		Count: 3, Allocatable: kubetest.Quantities("cpu", "8", "memory", "32Gi", "nvidia.com/gpu", "2"), Labels: map[string]string{"pool": "gold", "zone": ""},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n-want +got:\n%s", err, diff)
	}
	for value, problem := range map[string]string{
		"cpu=8":                 `"cpu" is not a number of nodes from 1 to 10000`,
		"0=cpu=8":               `"0" is not a number of nodes from 1 to 10000`,
		"10001=cpu=8":           `"10001" is not a number of nodes from 1 to 10000`,
		"3":                     `"" is neither an amount nor a label`,
		"3=cpu":                 `"cpu" is neither an amount nor a label`,
		"3=cpu=many":            `"many" is not an amount of cpu`,
		"3=cpu=-1":              `"-1" is not an amount of cpu`,
		"3=cpu=1,label=pool":    `"pool" is not a label`,
		"3=cpu=1,label=a=b c":   `"a=b c" is not a label`,
		"3=label=pool=gold":     "nodes without an amount change nothing",
		"3=cpu=8,,label=pool=a": `"" is neither an amount nor a label`,
	} {
		_, err := parseAddNodes(value)
		if err == nil || !strings.HasPrefix(err.Error(), "--add-nodes="+value+": "+problem+": write COUNT=") {
			t.Errorf("%s: got %v", value, err)
		}
	}
}

// TestMarkdownOfOthersIsText finds each text in a code span of one cell, where a forge links nothing.
func TestMarkdownOfOthersIsText(t *testing.T) {
	for text, want := range map[string]string{
		"@admins, @org/team":                   "`@admins, @org/team`",
		"#123 GH-123 user/repo#1 !7":           "`#123 GH-123 user/repo#1 !7`",
		"6f12460ab34cd56ef7890123456789abcdef": "`6f12460ab34cd56ef7890123456789abcdef`",
		"https://example.org www.example.org":  "`https://example.org www.example.org`",
		"a@example.org":                        "`a@example.org`",
		"<script> &lt; *x* _y_ ~~z~~ [a](b)":   "`<script> &lt; *x* _y_ ~~z~~ [a](b)`",
		":+1: $x$ ![i](https://example.org)":   "`:+1: $x$ ![i](https://example.org)`",
		"a|b||c":                               "`a\\|b\\|\\|c`",
		`a\|b`:                                 "`a\\\\u007cb`",
		"`":                                    "`` ` ``",
		"a``b` @c":                             "```a``b` @c```",
		"` @c":                                 "`` ` @c ``",
		" a ":                                  "`  a  `",
		"two\nlines":                           "`two lines`",
		"un\u200bseen \x1b[31m":                "`un\\u200bseen \\x1b[31m`",
	} {
		simulation := rest.Simulation{
			Offers: []rest.OfferChange{{Consumer: "rome", Resource: "cpu", Then: "1", Because: "cpu 1: " + text}}, Unknown: []string{text},
		}
		lines := markdown(&simulation)
		if row, got := "| `rome` | `<unnamed>` | `cpu` | - | `1` | "+want+" |", lines[len(lines)-5]; got != row {
			t.Errorf("got  %s\nwant %s", got, row)
		}
		item := "- " + strings.NewReplacer(`\\u007c`, `\|`, `\|`, "|").Replace(want)
		if got := lines[len(lines)-1]; got != item {
			t.Errorf("got  %s\nwant %s", got, item)
		}
	}
}
