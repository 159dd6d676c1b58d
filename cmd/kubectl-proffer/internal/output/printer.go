package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/internal/visible"
)

// Printer prints to one output. Its zero value is of no use: see For.
type Printer struct {
	Out io.Writer
	// Width is the width of the terminal in characters, 0 for no limit.
	Width int
	// Color is set if colours are shown.
	Color bool
}

// For returns a printer for this output. Only a terminal limits the width and has colours, unless
// NO_COLOR is set or TERM is dumb.
func For(out io.Writer) Printer {
	p := Printer{Out: out}
	file, ok := terminal(out)
	if !ok {
		return p
	}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		p.Width = width
	}
	p.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return p
}

// terminal returns the file of a terminal.
func terminal(w io.Writer) (file *os.File, ok bool) {
	file, ok = w.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// Table prints a table.
func (p Printer) Table(t *Table) error { return p.Lines(t.Lines(p.Width, p.Color)...) }

// Lines prints lines. Control characters are shown, not sent, except the style of a row.
func (p Printer) Lines(lines ...string) error {
	if len(lines) == 0 {
		return nil
	}
	_, err := io.WriteString(p.Out, strings.Join(Texts(lines, cleanLine), "\n")+"\n")
	return err
}

// The formats of --output that are values and not tables.
const (
	JSON = "json"
	YAML = "yaml"
)

// IsValue reports whether a format is JSON or YAML.
func IsValue(format string) bool { return format == JSON || format == YAML }

// Value prints a value of api/rest in one of these formats. What is not visible is escaped: a reader of the
// format reads it as it was.
func (p Printer) Value(format string, value any) error {
	text, err := json.MarshalIndent(value, "", "    ")
	text = append(text, '\n')
	switch {
	case err != nil:
	case format == JSON:
		text = visible.JSON(text)
	case format == YAML:
		// Escapes need quotes, which all texts have in JSON, and JSON is YAML.
		escaped := visible.YAML(text)
		if len(escaped) == len(text) {
			escaped, err = yaml.Marshal(value)
		}
		text = escaped
	default:
		err = errors.New("neither JSON nor YAML: " + format)
	}
	if err != nil {
		return err
	}
	_, err = p.Out.Write(text)
	return err
}

// Answer prints a value in format JSON or YAML, and the lines in any other.
func (p Printer) Answer(format string, value any, lines ...string) error {
	if IsValue(format) {
		return p.Value(format, value)
	}
	return p.Lines(lines...)
}

// CheckFormat returns an error that lists the formats unless this is one of them. An empty format is
// the table.
func CheckFormat(format string, formats ...string) error {
	if format == "" {
		return nil
	}
	return oneOf(format, formats, "output format", "-o ")
}

// oneOf returns an error that lists all values of a flag unless this is one of them.
func oneOf(value string, all []string, what, flag string) error {
	if slices.Contains(all, value) {
		return nil
	}
	return fmt.Errorf("there is no %s %q: write %s%s", what, value, flag, strings.Join(all, "|"))
}
