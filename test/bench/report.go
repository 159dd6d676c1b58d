package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report is everything that was measured.
type report struct {
	sections []*section
	ratios   []ratio
}

// section is one table of figures.
type section struct {
	title string
	// columns name the cells of each row. The first cell names the row.
	columns []string
	rows    [][]string
}

// ratio is a figure that can be compared between machines.
type ratio struct {
	what, of string
	value    float64
	// low and high are the quartiles over the rounds; they equal value after a single measurement.
	low, high float64
}

func (r *report) section(title string, columns ...string) *section {
	s := &section{title: title, columns: columns}
	r.sections = append(r.sections, s)
	return s
}

func (s *section) row(cells ...string) { s.rows = append(s.rows, cells) }

func (r *report) ratio(what, of string, value spread) {
	r.ratios = append(r.ratios, ratio{what: what, of: of, value: value.median, low: value.low, high: value.high})
}

// summary returns the ratios as a section.
func (r *report) summary() *section {
	s := &section{title: "Ratios", columns: []string{"cost of", "relative to", "ratio", "middle half of the rounds"}}
	for _, x := range r.ratios {
		s.row(x.what, x.of, factor(x.value), factor(x.low)+" to "+factor(x.high))
	}
	return s
}

func (s *section) print(out io.Writer) {
	fmt.Fprintf(out, "\n## %s\n\n", s.title)
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, "\t| ")) }
	line(s.columns)
	rule := make([]string, len(s.columns))
	for i := range rule {
		rule[i] = "---"
	}
	line(rule)
	for _, row := range s.rows {
		line(row)
	}
	_ = w.Flush()
}

// factor formats a ratio with three significant digits.
func factor(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// span formats a duration in nanoseconds with three significant digits.
func span(ns float64) string {
	switch {
	case ns < 0:
		return "-" + span(-ns)
	case ns >= float64(time.Second):
		return factor(ns/float64(time.Second)) + " s"
	case ns >= float64(time.Millisecond):
		return factor(ns/float64(time.Millisecond)) + " ms"
	case ns >= float64(time.Microsecond):
		return factor(ns/float64(time.Microsecond)) + " µs"
	}
	return factor(ns) + " ns"
}

// memory formats an amount of bytes.
func memory(n float64) string {
	switch {
	case n >= 1<<20:
		return factor(n/(1<<20)) + " MiB"
	case n >= 1<<10:
		return factor(n/(1<<10)) + " KiB"
	}
	return fmt.Sprintf("%.0f B", n)
}

// thousands formats 10000 as 10,000.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
