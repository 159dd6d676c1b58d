// Package output prints tables as kubectl does, at the width of the terminal, and values as JSON or
// YAML.
package output

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// gap separates columns with as many spaces as kubectl.
	gap = "   "
	// minText is the least width for the text column of a table: a narrower one is printed below.
	minText = 30
	// indent is for what is printed below a row or a heading.
	indent = "  "
	// None stands for a value that is absent.
	None = "-"
)

// What begins and ends a red row on a terminal.
const (
	redStyle = "\x1b[31m"
	endStyle = "\x1b[0m"
)

// Row is one row of a Table.
type Row struct {
	// Cells are as many as the table has columns. An empty one is printed as None.
	Cells []string
	// Red is set for what costs somebody their pods, and for what does not work.
	Red bool
}

// Table is a list of aligned rows.
type Table struct {
	// Header are the titles of the columns.
	Header []string
	// Text is set if the last column is free text, which wraps. A line break in it is kept where text
	// wraps, and is a space where the width has no limit.
	Text bool
	Rows []Row
}

// Add appends a plain row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, Row{Cells: cells}) }

// Fits reports whether each row, apart from text that wraps, fits on a line of this width, 0 for no limit, if need be
// with its first column as a heading.
func (t *Table) Fits(width int) bool {
	l, last := layout{width: width}, len(t.Header)
	if t.Text {
		last--
	}
	l.measure(t.Header, t.padded())
	return width <= 0 || len(indent)+l.between(1, last) <= width
}

// Lines returns the table for a terminal of this width, 0 for no limit. The color says whether rows
// have their style.
//
// A table that is too wide changes shape, so that its columns stay aligned: the text wraps in its
// column; if less than 30 characters are left for it, the text is below its row; and if the other
// columns are still too wide, the first ones become a heading over their rows.
func (t *Table) Lines(width int, color bool) []string {
	header, body := t.parts(width, color)
	return append(header, body...)
}

// Body returns the lines of the rows, as Lines does, without the lines of the header.
func (t *Table) Body(width int, color bool) []string {
	_, body := t.parts(width, color)
	return body
}

func (t *Table) parts(width int, color bool) (head, body []string) {
	l := layout{width: width, color: color}
	header, rows, text := t.Header, t.padded(), t.Text
	l.measure(header, rows)
	last := len(header) - 1
	switch {
	case width == 0:
		text = false
		for _, r := range rows {
			r.Cells[last] = strings.ReplaceAll(r.Cells[last], "\n", " ")
		}
	case text && width-l.between(0, last)-len(gap) >= minText:
		return l.wrapped(header, rows)
	case text:
		header = header[:last]
	}
	return l.grouped(l.headings(len(header)), header, rows, text)
}

// padded returns the rows as they are shown, with None in empty cells.
func (t *Table) padded() []Row {
	rows := slices.Clone(t.Rows)
	for i := range rows {
		cells := slices.Clone(rows[i].Cells)
		for c := range cells {
			switch {
			case cells[c] == "":
				cells[c] = None
			case t.Text && c == len(cells)-1:
				cells[c] = Clean(cells[c])
			default:
				cells[c] = OneLine(cells[c])
			}
		}
		rows[i].Cells = cells
	}
	return rows
}

// layout prints rows at the widths of their columns.
type layout struct {
	width  int
	color  bool
	widths []int
}

func (l *layout) measure(header []string, rows []Row) {
	l.widths = make([]int, len(header))
	for c, title := range header {
		l.widths[c] = utf8.RuneCountInString(title)
	}
	for _, r := range rows {
		for c, cell := range r.Cells {
			l.widths[c] = max(l.widths[c], utf8.RuneCountInString(cell))
		}
	}
}

// between returns the width of the columns from first to before last.
func (l *layout) between(first, last int) int {
	sum := max(0, last-first-1) * len(gap)
	for _, w := range l.widths[first:last] {
		sum += w
	}
	return sum
}

// wrapped prints one line for each row, more if its text wraps in the last column.
func (l *layout) wrapped(header []string, rows []Row) (head, lines []string) {
	last := len(header) - 1
	for _, r := range rows {
		cells := slices.Clone(r.Cells)
		for _, part := range Wrap(cells[last], l.width-l.between(0, last)-len(gap)) {
			cells[last] = part
			lines = append(lines, l.style(r, l.line(cells, 0)))
			clear(cells[:last])
		}
	}
	return []string{l.line(header, 0)}, lines
}

// headings returns how many of n columns have to be headings for the others to fit.
func (l *layout) headings(n int) int {
	if l.width == 0 || l.between(0, n) <= l.width {
		return 0
	}
	k := 1
	for k < n-1 && len(indent)+l.between(k, n) > l.width {
		k++
	}
	return k
}

// grouped prints the first k columns as a heading over their rows, and the text of each row on lines of its own.
func (l *layout) grouped(k int, header []string, rows []Row, text bool) (head, lines []string) {
	margin := ""
	if k > 0 {
		margin, head = indent, []string{l.heading(header[:k])}
	}
	for i, r := range rows {
		if k > 0 && (i == 0 || !slices.Equal(rows[i-1].Cells[:k], r.Cells[:k])) {
			lines = append(lines, l.heading(r.Cells[:k]))
		}
		lines = append(lines, l.style(r, margin+l.line(r.Cells[k:len(header)], k)))
		if last := r.Cells[len(r.Cells)-1]; text && last != None {
			for _, part := range Wrap(last, l.width-len(margin+indent)) {
				lines = append(lines, l.style(r, margin+indent+part))
			}
		}
	}
	return append(head, margin+l.line(header[k:], k)), lines
}

// heading joins the first cells, aligned if that fits.
func (l *layout) heading(cells []string) string {
	if l.between(0, len(cells)) > l.width {
		return strings.Join(cells, gap)
	}
	return l.line(cells, 0)
}

// line joins the cells of the columns from the first one on.
func (l *layout) line(cells []string, first int) string {
	padded := slices.Clone(cells)
	for i := range len(cells) - 1 {
		padded[i] = fmt.Sprintf("%-*s", l.widths[first+i], cells[i])
	}
	return strings.Join(padded, gap)
}

func (l *layout) style(r Row, line string) string {
	if !l.color || !r.Red {
		return line
	}
	return redStyle + line + endStyle
}

// Wrap breaks text at spaces into lines of at most this many characters. A longer word has a line of
// its own. A width of 0 or less breaks nothing. The lines of the text are kept apart.
func Wrap(text string, width int) []string {
	if width <= 0 {
		return []string{text}
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, wrapLine(line, width)...)
	}
	return lines
}

// Hanging is Wrap for a text behind a bullet. Its further lines are indented by as much.
func Hanging(bullet, text string, width int) []string {
	if width > 0 {
		width = max(1, width-len(bullet))
	}
	lines := Wrap(text, width)
	for i := range lines {
		lines[i] = bullet + lines[i]
		bullet = strings.Repeat(" ", len(bullet))
	}
	return lines
}

func wrapLine(text string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		switch line := &lines[len(lines)-1]; {
		case *line == "":
			*line = word
		case utf8.RuneCountInString(*line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, word)
		default:
			*line += " " + word
		}
	}
	return lines
}
