package outcome

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/test/operatortest"
)

func TestAnOutcomeIsAlignedAtAnyWidth(t *testing.T) {
	simulation := operatortest.Simulation()
	simulation.Problems = map[string][]string{"typo": {`spec.consumers.selector: Invalid value: "Inn": write In, NotIn, Exists or DoesNotExist`}}
	simulation.Truncated = []string{"offers"}
	for _, width := range []int{80, 160} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			lines := Lines(&simulation, "", width, false)
			operatortest.Golden(t, fmt.Sprintf("table-%d.txt", width), lines)
			operatortest.Fits(t, width, lines)
		})
	}
	t.Run("markdown", func(t *testing.T) { operatortest.Golden(t, "markdown.md", Markdown(&simulation)) })
}

// crowd returns the change of one amount of many consumers.
func crowd(n int, now, then string) []rest.OfferChange {
	var all []rest.OfferChange
	for i := range n {
		all = append(all, rest.OfferChange{Consumer: fmt.Sprintf("c%03d", i), Class: "gold", Resource: "cpu", Now: now, Then: then, Because: "cpu " + then + ": why"})
	}
	return all
}

func TestOneSentenceSumsUp(t *testing.T) {
	all := operatortest.Simulation()
	gold := crowd(150, "4750m", "0")
	memory := slices.Clone(gold)
	for i := range memory {
		memory[i].Resource, memory[i].Now, memory[i].Then = "memory", "69363721830", "69363721829"
	}
	mixed := crowd(3, "4", "2")
	mixed[1].Now, mixed[2].Then = "6", ""
	for name, tc := range map[string]struct {
		s    rest.Simulation
		want string
	}{
		"nothing":        {rest.Simulation{Unknown: all.Unknown}, "Nothing changes."},
		"one consumer":   {rest.Simulation{Offers: gold[:1]}, "No pod would be evicted; c000: gold cpu 4.75 -> 0."},
		"many alike":     {rest.Simulation{Offers: gold}, "No pod would be evicted; 150 consumers: gold cpu 4.75 -> 0."},
		"two amounts":    {rest.Simulation{Offers: append(gold[:150:150], memory...)}, "No pod would be evicted; 150 consumers: gold cpu 4.75 -> 0, memory 69363721830 -> 69363721829."},
		"a part of them": {rest.Simulation{Offers: append(gold[:150:150], memory[:1]...)}, "No pod would be evicted; 150 consumers: gold cpu 4.75 -> 0; c000: gold memory 69363721830 -> 69363721829."},
		"not alike":      {rest.Simulation{Offers: mixed}, "No pod would be evicted; 3 consumers: gold cpu 4..6 -> -..2."},
		"all sorts":      {all, "Pods of oslo would be evicted; 2 consumers: gold cpu 4..6 -> 0..2.5; the default offer: <unnamed> nvidia.com/gpu - -> 1; 1 ResourceSlice is granted other amounts; 2 policies have another reason."},
		"an invalid one": {rest.Simulation{Problems: map[string][]string{"p": {"x"}}}, "No pod would be evicted; 1 policy is invalid; no offer changes."},
		"lists cut":      {rest.Simulation{Offers: gold, Evicted: all.Evicted, Truncated: []string{"offers", "evicted"}}, "Pods of at least 1 consumer would be evicted; at least 150 consumers: gold cpu 4.75 -> 0."},
		"many kinds": {rest.Simulation{Offers: []rest.OfferChange{
			{Consumer: "a", Class: "x", Resource: "cpu", Then: "1"}, {Consumer: "b", Class: "x", Resource: "cpu", Then: "1"},
			{Consumer: "a", Class: "y", Resource: "cpu", Then: "1"}, {Consumer: "c", Class: "z", Resource: "cpu", Now: "1"},
		}}, "No pod would be evicted; 2 consumers: x cpu - -> 1; a: y cpu - -> 1; 1 other amount changes."},
	} {
		if got := summary(&tc.s, func(text string) string { return text }); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tc.want)
		}
		lines := Lines(&tc.s, "", 0, false)
		if lines[0] != tc.want || lines[len(lines)-1] != tc.want {
			t.Errorf("%s: begins with %s\nand ends with %s", name, lines[0], lines[len(lines)-1])
		}
	}
}

func TestRowsThatAreAlikeAreFoldedExceptInWide(t *testing.T) {
	s := rest.Simulation{Offers: append(crowd(3, "13750m", "500m"), rest.OfferChange{Anyone: true, Class: "gold", Resource: "cpu", Now: "13750m", Then: "500m", Because: "cpu 500m: why"})}
	for i, c := range s.Offers[:3] {
		s.Slices = append(s.Slices, rest.SliceChange{
			Namespace: "n", Name: fmt.Sprint("s", i), Consumer: c.Consumer, Class: "gold", Then: operatortest.Amounts("cpu", "500m"), Because: "why",
		})
	}
	s.Slices[2].Consumer = "c000"
	for format, want := range map[string]string{
		"": `c000 and 2 more gold cpu 13.7 500m why
<anyone> gold cpu 13.7 500m why
c000 and 1 more n/s0 and 2 more gold cpu 0 500m why`,
		output.Wide: `c000 gold cpu 13.75 500m why
c001 gold cpu 13.75 500m why
c002 gold cpu 13.75 500m why
<anyone> gold cpu 13.75 500m why
c000 n/s0 gold cpu 0 500m why
c001 n/s1 gold cpu 0 500m why
c000 n/s2 gold cpu 0 500m why`,
	} {
		var got []string
		for _, r := range append(offersTable(s.Offers, format).Rows, slicesTable(s.Slices, format).Rows...) {
			got = append(got, strings.Join(r.Cells, " "))
		}
		if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", format, diff)
		}
	}
	hostile := rest.OfferChange{Resource: "cpu", Now: "1e999999999", Then: "1"}
	if row := offersTable([]rest.OfferChange{hostile}, "").Rows[0].Cells; row[3] != "1e999999999" || row[4] != "1" {
		t.Errorf("%q", row)
	}
}

func TestEvictionsAreRedOnATerminal(t *testing.T) {
	simulation := operatortest.Simulation()
	for _, line := range Lines(&simulation, "", 160, true) {
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
		if got := Status(&tc.s); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		}
	}
	if got := Lines(&rest.Simulation{}, "", 80, false); !cmp.Equal(got, []string{"Nothing changes."}) {
		t.Errorf("got %q", got)
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
		lines := Markdown(&simulation)
		if row, got := "| `rome` | `<unnamed>` | `cpu` | - | `1` | "+want+" |", lines[len(lines)-5]; got != row {
			t.Errorf("got  %s\nwant %s", got, row)
		}
		item := "- " + strings.NewReplacer(`\\u007c`, `\|`, `\|`, "|").Replace(want)
		if got := lines[len(lines)-1]; got != item {
			t.Errorf("got  %s\nwant %s", got, item)
		}
	}
}
