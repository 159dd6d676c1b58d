package output

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/test"
)

func TestATerminalDoesNotObeyWhatIsShown(t *testing.T) {
	const hostile, shown = "\x1b]0;title\a\u009b2J\r\u202e\u200b\u00ad\u3164\U000e0041\xff", `\x1b]0;title\a\u009b2J\r\u202e\u200b\u00ad\u3164\U000e0041` + "\ufffd"
	table := &Table{Header: []string{"CLASS", "WHY"}, Text: true, Rows: []Row{{Cells: []string{hostile + "\ngold", hostile}, Red: true}}}
	for _, width := range []int{0, 20, 80, 200} {
		var out strings.Builder
		test.Must(t, (Printer{Out: &out, Width: width, Color: true}).Table(table))
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

func TestJSONAndYAMLShowWhatIsNotVisible(t *testing.T) {
	const hostile = "\x1b]0;t\a\u009b2J\u202e\u200b\U000e0041"
	for format, read := range map[string]func([]byte, any) error{
		JSON: json.Unmarshal, YAML: func(text []byte, into any) error { return yaml.Unmarshal(text, into) },
	} {
		var out strings.Builder
		test.Must(t, (Printer{Out: &out}).Value(format, map[string]string{"class": hostile}))
		var got map[string]string
		if err := read([]byte(out.String()), &got); err != nil || got["class"] != hostile || Clean(out.String()) != out.String() {
			t.Errorf("%s: %q is read as %q (%v)", format, out.String(), got["class"], err)
		}
	}
	var out strings.Builder
	if err := (Printer{Out: &out}).Value(YAML, map[string]string{"class": "gold"}); err != nil || out.String() != "class: gold\n" {
		t.Errorf("%q %v", out.String(), err)
	}
}
