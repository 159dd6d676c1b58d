package output

import (
	"strings"
	"testing"
)

func TestATerminalDoesNotObeyWhatIsShown(t *testing.T) {
	const hostile, shown = "\x1b]0;title\a\u009b2J\r\u202e\u200b\u00ad\u3164\U000e0041\xff", `\x1b]0;title\a\u009b2J\r\u202e\u200b\u00ad\u3164\U000e0041` + "\ufffd"
	table := &Table{Header: []string{"CLASS", "WHY"}, Text: true, Rows: []Row{{Cells: []string{hostile + "\ngold", hostile}, Style: Red}}}
	for _, width := range []int{0, 20, 80, 200} {
		var out strings.Builder
		if err := (Printer{Out: &out, Width: width, Color: true}).Table(table); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if strings.Count(text, "\x1b[31m")+strings.Count(text, "\x1b[0m") != strings.Count(text, "\x1b") || strings.ContainsAny(text, "\a\u009b\r\u202e\u200b\u00ad\u3164\U000e0041") ||
			!strings.Contains(text, shown+`\ngold`) {
			t.Errorf("at width %d: %q", width, text)
		}
	}
	var out strings.Builder
	if err := (Printer{Out: &out}).Lines("Class: "+hostile, "\x1b[31m"+hostile); err != nil || out.String() != "Class: "+shown+"\n"+`\x1b[31m`+shown+"\n" {
		t.Errorf("%q %v", out.String(), err)
	}
}
