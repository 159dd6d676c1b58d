// Package outcome writes what a simulated change would do, for a terminal and for a merge request.
package outcome

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// The exit statuses of an answer. That of an error is exit.Failed.
const (
	statusNothing  = 0
	statusChanges  = 1
	statusEviction = 2
)

// Status returns the exit status for what a change would do: 0 for nothing, 1 for changes, 2 if pods would be
// evicted.
func Status(s *rest.Simulation) int {
	switch {
	case len(s.Evicted) > 0:
		return statusEviction
	case len(s.Problems)+len(s.Offers)+len(s.Policies)+len(s.Slices) > 0:
		return statusChanges
	default:
		return statusNothing
	}
}

// section is one part of the answer.
type section struct {
	title string
	// table is nil for a section of lines.
	table *output.Table
	lines []string
}

// sections returns the answer in parts, without those that are empty. In format output.Wide amounts are exact,
// and each change has a row of its own.
func sections(s *rest.Simulation, format string) []section {
	all := []section{
		{title: "Policies that are invalid", table: problemsTable(s.Problems)},
		{title: "Offers that change", table: offersTable(s.Offers, format)},
		{title: "Policies whose reason changes", table: policiesTable(s.Policies)},
		{title: "ResourceSlices whose grants change", table: slicesTable(s.Slices, format)},
		{title: "Evictions", table: evictionsTable(s.Evicted)},
		{title: "Not considered", lines: s.Unknown},
		{title: "Lists that the operator has cut", lines: s.Truncated},
	}
	return slices.DeleteFunc(all, func(x section) bool {
		return len(x.lines) == 0 && (x.table == nil || len(x.table.Rows) == 0)
	})
}

func problemsTable(problems map[string][]string) *output.Table {
	t := &output.Table{Header: []string{"POLICY", "PROBLEM"}, Text: true}
	for _, policy := range slices.Sorted(maps.Keys(problems)) {
		for _, problem := range problems[policy] {
			t.Rows = append(t.Rows, output.Row{Cells: []string{policy, problem}, Red: true})
		}
	}
	return t
}

func offersTable(changes []rest.OfferChange, format string) *output.Table {
	t := &output.Table{Header: []string{"CONSUMER", "CLASS", "RESOURCE", "NOW", "THEN", "WHY"}, Text: true}
	for _, alike := range output.Fold(changes, format, func(c rest.OfferChange) rest.OfferChange {
		c.Consumer = ""
		return c
	}) {
		c := &alike[0]
		consumer := andMore(c.Consumer, len(alike))
		if c.Anyone {
			consumer = output.Anyone
		}
		written, _ := rest.Explanation([]string{c.Because}, c.Resource)
		amounts := output.Notation(format, written).Texts(c.Resource, c.Then, c.Now)
		// The explanation of the amount is without the resource and the amount before it.
		t.Add(consumer, output.Class(c.Class), c.Resource, amounts[1], amounts[0],
			cmp.Or(rest.Reason([]string{c.Because}, c.Resource), c.Because))
	}
	return t
}

// andMore names the first of n.
func andMore(first string, n int) string {
	if n == 1 {
		return first
	}
	return fmt.Sprintf("%s and %d more", first, n-1)
}

func policiesTable(changes []rest.PolicyChange) *output.Table {
	t := &output.Table{Header: []string{"POLICY", "NOW", "THEN", "MESSAGE"}, Text: true}
	for _, c := range changes {
		t.Add(c.Policy, c.Now, c.Then, c.Message)
	}
	return t
}

// grantChange is one amount of a ResourceSlice that changes.
type grantChange struct {
	consumer, slice, class, resource string
	now, then                        string
	because                          string
}

// grantChanges lists the amounts that change.
func grantChanges(changes []rest.SliceChange) []grantChange {
	var all []grantChange
	for _, c := range changes {
		for _, name := range sets.List(sets.KeySet(c.Now).Union(sets.KeySet(c.Then))) {
			now, then := c.Now.OrZero(name), c.Then.OrZero(name)
			if now.Cmp(*then) != 0 {
				all = append(all, grantChange{
					c.Consumer, c.Namespace + "/" + c.Name, output.Class(c.Class), name, now.String(), then.String(), c.Because,
				})
			}
		}
	}
	return all
}

func slicesTable(changes []rest.SliceChange, format string) *output.Table {
	t := &output.Table{Header: []string{"CONSUMER", "SLICE", "CLASS", "RESOURCE", "NOW", "THEN", "WHY"}, Text: true}
	for _, alike := range output.Fold(grantChanges(changes), format, func(c grantChange) grantChange {
		c.consumer, c.slice = "", ""
		return c
	}) {
		c, consumers := &alike[0], sets.New[string]()
		for i := range alike {
			consumers.Insert(alike[i].consumer)
		}
		amounts := output.Notation(format, "").Texts(c.resource, c.now, c.then)
		t.Add(andMore(c.consumer, len(consumers)), andMore(c.slice, len(alike)), c.class, c.resource,
			amounts[0], amounts[1], c.because)
	}
	return t
}

func evictionsTable(evictions []rest.Eviction) *output.Table {
	t := &output.Table{Header: []string{"CONSUMER", "CLASS", "PODS", "WHY"}, Text: true}
	for _, e := range evictions {
		t.Rows = append(t.Rows, output.Row{
			Cells: []string{e.Consumer, output.Class(e.Class), strconv.Itoa(e.Pods), e.Because}, Red: true,
		})
	}
	return t
}

// Lines returns the answer for a terminal: the summary first and last. In format output.Wide amounts are exact, and
// each change has a row of its own. The width is in columns, 0 for any.
func Lines(s *rest.Simulation, format string, width int, color bool) []string {
	sentence := output.Wrap(summary(s, output.OneLine), width)
	lines := slices.Clone(sentence)
	for _, x := range sections(s, format) {
		lines = append(lines, "", x.title+":")
		if x.table != nil {
			lines = append(lines, x.table.Lines(width, color)...)
		}
		for _, line := range x.lines {
			lines = append(lines, output.Hanging("- ", line, width)...)
		}
	}
	if len(lines) > len(sentence) {
		lines = append(append(lines, ""), sentence...)
	}
	return lines
}

// Markdown returns the answer for a merge request.
func Markdown(s *rest.Simulation) []string {
	lines := []string{"### kubectl proffer simulate", "", "**" + summary(s, codeSpan) + "**"}
	for _, x := range sections(s, "") {
		lines = append(lines, "", "#### "+x.title, "")
		if x.table != nil {
			lines = append(lines, markdownTable(x.table)...)
		}
		for _, line := range x.lines {
			lines = append(lines, "- "+codeSpan(line))
		}
	}
	return lines
}

func markdownTable(t *output.Table) []string {
	lines := []string{
		"| " + strings.Join(t.Header, " | ") + " |",
		"|" + strings.Repeat(" --- |", len(t.Header)),
	}
	for _, r := range t.Rows {
		cells := make([]string, len(r.Cells))
		for i, cell := range r.Cells {
			if cells[i] = inTable(codeSpan(cell)); cell == "" {
				cells[i] = output.None
			}
		}
		lines = append(lines, "| "+strings.Join(cells, " | ")+" |")
	}
	return lines
}

// codeSpan writes a text of others as a code span. Elsewhere a forge finds mentions, references to issues and
// commits, and addresses in a text, whatever is escaped in it.
func codeSpan(text string) string {
	text = strings.ReplaceAll(output.Clean(text), "\n", " ")
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") ||
		strings.HasPrefix(text, " ") && strings.HasSuffix(text, " ") {
		text = " " + text + " " // Markdown removes one space at both ends.
	}
	return fence + text + fence
}

// inTable protects the bars in a cell, which would end it. A bar after a backslash cannot be escaped.
var inTable = strings.NewReplacer(`\|`, `\\u007c`, "|", `\|`).Replace
