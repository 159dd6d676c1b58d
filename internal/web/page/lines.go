package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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
	names, most := []string{"capacity", "committed", "used"}, 0.0
	if l.Capacity == nil {
		names[1] = "granted"
	}
	var parts []string
	for i, line := range [][]float64{l.Capacity, l.Committed, l.Used} {
		if known := knownOf(line); len(known) > 0 {
			parts = append(parts, names[i]+" "+spanOf(of.Resource, known))
			most = max(most, slices.Max(known))
		}
	}
	return &lines{
		Capacity: draw(l.Capacity, most), Committed: draw(l.Committed, most), Used: draw(l.Used, most),
		Text: since + strings.Join(parts, "; "),
	}
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

// knownOf returns the amounts of a line that are known.
func knownOf(line []float64) []float64 { return slices.DeleteFunc(slices.Clone(line), math.IsNaN) }

// spanOf writes known amounts as in "4 to 7, last 5", or one amount if they are the same.
func spanOf(name string, known []float64) string {
	amount := func(y float64) *resource.Quantity {
		q := quantity.Of(name, int64(min(y, math.MaxInt64/2))) // The largest amount is rounded up beyond an int64.
		return &q
	}
	texts := quantity.Human(name, amount(slices.Min(known)), amount(slices.Max(known)), amount(known[len(known)-1]))
	if texts[0] == texts[1] {
		return texts[0]
	}
	return texts[0] + " to " + texts[1] + ", last " + texts[2]
}
