package main

import (
	"strings"
	"unicode/utf8"
)

const (
	// margin precedes a class; gap separates two columns.
	margin = "  "
	gap    = "  "
	// The columns of classes and of policies get at most 1/share of the width each.
	share = 4
)

// columns has the widths of the class column, the policy column and the whole table.
type columns struct{ class, policy, width int }

// widen makes room for the class and the policy of an offer. Columns never shrink, so that rows
// stay aligned.
func (c *columns) widen(o offered) {
	c.class = max(c.class, utf8.RuneCountInString(orDash(o.class)))
	c.policy = max(c.policy, utf8.RuneCountInString(orDash(o.policy)))
}

// narrowedTo returns the columns for a table of this width.
func (c columns) narrowedTo(width int) columns {
	return columns{class: min(c.class, width/share), policy: min(c.policy, width/share), width: width}
}

// row returns the lines for a class: its policy and amounts, and the reason below.
func (c columns) row(o offered, amounts, because []string) []string {
	under := strings.Repeat(" ", len(margin)+c.class+len(gap))
	before := margin + pad(orDash(o.class), c.class) + gap + pad(orDash(o.policy), c.policy) + gap
	lines := wrap(amounts, ",", strings.Repeat(" ", utf8.RuneCountInString(before)), c.width)
	if len(lines) == 0 {
		lines = []string{""}
	}
	lines[0] = strings.TrimRight(before+strings.TrimLeft(lines[0], " "), " ")
	for _, sentence := range because {
		lines = append(lines, wrap(strings.Fields(sentence), "", under, c.width)...)
	}
	return lines
}

// wrap joins the parts with a separator into indented lines of at most this width. A part that is
// wider than a line is split.
func wrap(parts []string, after, indent string, width int) (lines []string) {
	room := max(1, width-utf8.RuneCountInString(indent))
	var line string
	flush := func() {
		if line != "" {
			lines = append(lines, indent+line)
			line = ""
		}
	}
	for i, part := range parts {
		if i < len(parts)-1 {
			part += after
		}
		if line != "" && utf8.RuneCountInString(line+" "+part) <= room {
			line += " " + part
			continue
		}
		flush()
		for utf8.RuneCountInString(part) > room {
			head := string([]rune(part)[:room])
			lines = append(lines, indent+strings.TrimRight(head, " "))
			part = strings.TrimLeft(part[len(head):], " ")
		}
		line = part
	}
	flush()
	return lines
}

// pad pads the text with spaces, or cuts it.
func pad(text string, width int) string {
	n := utf8.RuneCountInString(text)
	if n > width {
		return string([]rune(text)[:max(0, width-1)]) + "…"
	}
	return text + strings.Repeat(" ", width-n)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
