package output

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func reasons() *Table {
	t := &Table{Header: []string{"CONSUMER", "RESOURCE", "WHY"}, Text: true}
	t.Add("rome", "cpu", "half of the nodes, and no more than the others leave")
	t.Add("rome", "memory", "fixed")
	t.Rows[1].Cells[2] = "fixed\nfor all"
	t.Add("a-consumer-of-a-long-name", "", "")
	return t
}

func TestATableTakesTheShapeThatFits(t *testing.T) {
	for name, tc := range map[string]struct {
		width int
		want  string
	}{
		"no limit": {0, `
CONSUMER                    RESOURCE   WHY
rome                        cpu        half of the nodes, and no more than the others leave
rome                        memory     fixed for all
a-consumer-of-a-long-name   -          -`},
		"the text wraps in its column": {72, `
CONSUMER                    RESOURCE   WHY
rome                        cpu        half of the nodes, and no more
                                       than the others leave
rome                        memory     fixed
                                       for all
a-consumer-of-a-long-name   -          -`},
		"the text is below its row": {40, `
CONSUMER                    RESOURCE
rome                        cpu
  half of the nodes, and no more than
  the others leave
rome                        memory
  fixed
  for all
a-consumer-of-a-long-name   -`},
		"the first column is a heading": {32, `
CONSUMER
  RESOURCE
rome
  cpu
    half of the nodes, and no
    more than the others leave
  memory
    fixed
    for all
a-consumer-of-a-long-name
  -`},
	} {
		t.Run(name, func(t *testing.T) {
			got := "\n" + strings.Join(reasons().Lines(tc.width, false), "\n")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOnlyATerminalIsColored(t *testing.T) {
	table := &Table{Header: []string{"CONSUMER"}, Rows: []Row{{Cells: []string{"rome"}, Red: true}, {Cells: []string{"oslo"}}}}
	if diff := cmp.Diff([]string{"CONSUMER", "\x1b[31mrome\x1b[0m", "oslo"}, table.Lines(80, true)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"CONSUMER", "rome", "oslo"}, table.Lines(80, false)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if p := For(&bytes.Buffer{}); p.Color || p.Width != 0 {
		t.Errorf("a buffer has colours or a width: %+v", p)
	}
}

func TestASlowCommandSaysOnATerminalWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var quick, long, file strings.Builder
		slow(&quick, "Waiting")()
		done := slow(&long, "Waiting")
		noTerminal := Slow(&file, "Waiting")
		time.Sleep(patience + time.Millisecond) //nolint:forbidigo // in a bubble
		synctest.Wait()
		done()
		noTerminal()
		if quick.String() != "" || long.String() != "Waiting...\n" || file.String() != "" {
			t.Errorf("a quick one says %q, a slow one %q, one without a terminal %q", quick.String(), long.String(), file.String())
		}
	})
}

func TestAnUnknownFormatIsRefusedWithThoseThatExist(t *testing.T) {
	if err := CheckFormat("xml", JSON, YAML); err == nil || err.Error() != `there is no output format "xml": write -o json|yaml` {
		t.Errorf("got %v", err)
	}
	for _, format := range []string{"", JSON} {
		if err := CheckFormat(format, JSON, YAML); err != nil {
			t.Error(err)
		}
	}
}

func TestAValueIsPrintedAsJSONAndAsYAML(t *testing.T) {
	value := struct {
		Class string `json:"class"`
	}{"gold"}
	for format, want := range map[string]string{JSON: "{\n    \"class\": \"gold\"\n}\n", YAML: "class: gold\n"} {
		var out strings.Builder
		if err := (Printer{Out: &out}).Value(format, value); err != nil || out.String() != want {
			t.Errorf("%s: got %q, %v", format, out.String(), err)
		}
	}
}

func TestATextThatWrapsFitsAlways(t *testing.T) {
	table := &Table{Header: []string{"CONSUMER", "CLASS", "WHY"}, Rows: []Row{{Cells: []string{"rome", "gold", "a text of some length"}}}}
	if table.Text = true; !table.Fits(20) || table.Fits(6) {
		t.Error("the other columns need 7 characters below a heading")
	}
	if table.Text = false; table.Fits(20) || !table.Fits(31) || !table.Fits(0) {
		t.Error("all columns need 31 characters below a heading")
	}
}
