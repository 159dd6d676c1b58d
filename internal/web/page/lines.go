package page

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/trends"
)

const (
	// linePoints is the number of points of a line, and of columns of its picture: half an hour each after a day.
	linePoints = 48
	// lineHeight is the height of its picture.
	lineHeight = 24
	// linesFor is for how long a page shows the same lines.
	linesFor = 5 * time.Minute
)

// lines are the paths of a picture of linePoints x lineHeight, which begins at 0.
type lines struct {
	Capacity, Committed, Used string
	// Text says what the picture shows.
	Text string
}

// linesOf returns nil for lines that are not known.
func linesOf(view View, of trends.Subject) *lines {
	l, ok := view.Lines(of, linePoints)
	if !ok {
		return nil
	}
	return pictureOf(&l, of, "Since "+l.From.Format("15:04")+" UTC, about: ")
}

// monthOf returns the lines of the last 30 days, nil for lines that are not known.
func monthOf(view View, of trends.Subject) *lines {
	l, ok := view.Month().Lines(of)
	if !ok {
		return nil
	}
	return pictureOf(&l, of, "Means of the days since "+l.From.Format(time.DateOnly)+", about: ")
}

// pictureOf draws lines. The text that says what it shows begins with since.
func pictureOf(l *trends.Lines, of trends.Subject, since string) *lines {
	most := 0.0
	for _, line := range [][]float64{l.Capacity, l.Committed, l.Used} {
		for _, y := range line {
			if y > most { // It is not NaN.
				most = y
			}
		}
	}
	out := &lines{Capacity: draw(l.Capacity, most), Committed: draw(l.Committed, most), Used: draw(l.Used, most)}
	var parts []string
	for _, part := range []struct {
		name string
		line []float64
	}{{"capacity", l.Capacity}, {"committed", l.Committed}, {"used", l.Used}} {
		if part.name == "committed" && l.Capacity == nil {
			part.name = "granted"
		}
		if s, ok := spanOf(part.line); ok {
			parts = append(parts, part.name+" "+s.text(of.Resource))
		}
	}
	out.Text = since + strings.Join(parts, "; ")
	return out
}

// draw writes a line as an SVG path. Where it is not known it has a gap.
func draw(line []float64, most float64) string {
	var b strings.Builder
	command := "M"
	for i, y := range line {
		if math.IsNaN(y) {
			command = "M"
			continue
		}
		x, level := i*linePoints/max(1, len(line)-1), y/cmp.Or(most, 1)
		fmt.Fprintf(&b, "%s%d %d", command, x, lineHeight-int(math.Round(level*lineHeight)))
		if alone := i+1 == len(line) || math.IsNaN(line[i+1]); alone && command == "M" {
			b.WriteString("h0") // A point is a line of no length.
		}
		command = "L"
	}
	return b.String()
}

// span holds the least, the most and the last amount of a line that are known.
type span struct{ least, most, last float64 }

// spanOf returns false for a line without a known amount.
func spanOf(line []float64) (s span, ok bool) {
	for _, y := range line {
		if math.IsNaN(y) {
			continue
		}
		if !ok {
			s, ok = span{y, y, y}, true
		}
		s = span{min(s.least, y), max(s.most, y), y}
	}
	return s, ok
}

// text writes the span as in "4 to 7, last 5", or one amount if they are the same.
func (s span) text(name string) string {
	amount := func(y float64) *resource.Quantity {
		q := quantity.Of(name, int64(min(y, math.MaxInt64/2))) // The largest amount is rounded up beyond an int64.
		return &q
	}
	texts := quantity.Human(name, amount(s.least), amount(s.most), amount(s.last))
	if texts[0] == texts[1] {
		return texts[0]
	}
	return texts[0] + " to " + texts[1] + ", last " + texts[2]
}
