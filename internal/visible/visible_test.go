package visible

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/test"
)

func TestWhatHasNoShapeIsEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"gold": "gold",
		"Gold-Pool für 東京, 50 % – ½ 😀 é": "Gold-Pool für 東京, 50 % – ½ 😀 é",
		"go\u200bld":                   `go\u200bld`,
		"go\u00adld":                   `go\u00adld`,
		"gold\U000e0041":               `gold\U000e0041`,
		"gold\U000e0100":               `gold\U000e0100`,
		"gold\ufe0f":                   `gold\ufe0f`,
		"gold\u180b":                   `gold\u180b`,
		"\u3164gold\uffa0\u115f\u1160": `\u3164gold\uffa0\u115f\u1160`,
		"go\u034fld\u17b4\u2065":       `go\u034fld\u17b4\u2065`,
		"\u2800":                       `\u2800`,
		"a\u00a0b\u2003c\u3000":        `a\u00a0b\u2003c\u3000`,
		"\u202egold\u2066":             `\u202egold\u2066`,
		"a\u2028b\u2029":               `a\u2028b\u2029`,
		"\x1b]0;t\a\u009b\r\x7f":       `\x1b]0;t\a\u009b\r\x7f`,
		"\ue000":                       `\ue000`,
		"kept:\n, not\t":               "kept:\n" + `, not\t`,
		"\xff":                         "\ufffd",
		`'\u200b'`:                     `'\u200b'`,
	} {
		if got := Escape(text, "\n"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAmountsAreShownAsTheyAreWritten(t *testing.T) {
	got := strings.Join(Written(map[string]string{
		"nvidia.com/gpu": "0x10", "cpu": "-0.5", "a_b": "", "cpu=9,memory": "1\u200b", "\x1b[2J": "4, pods=1",
	}), " ")
	if want := `"\x1b[2J"="4, pods=1" a_b="" cpu=-0.5 "cpu=9,memory"="1\u200b" nvidia.com/gpu=0x10`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNothingThatUnicodeIgnoresIsVisible(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		ignored := unicode.In(r, unicode.Cf, unicode.Cc, unicode.Cs, unicode.Co, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
		if text := Escape(string(r), ""); ignored && (Is(r) || strings.ContainsRune(text, r) && r != unicode.ReplacementChar) {
			t.Errorf("%U is shown as %q", r, text)
		}
	}
}

func TestTheClassesThatAPolicyCanHaveAreShownAsTheyAre(t *testing.T) {
	for class, want := range map[string]string{
		"gold": "gold", "a-1": "a-1", strings.Repeat("a", 63): strings.Repeat("a", 63),
		"": `""`, "-": `"-"`, "Gold": `"Gold"`, "go ld": `"go ld"`, "gold\n": `"gold\n"`, "<unnamed>": `"<unnamed>"`,
		"g\u043eld": `"g\u043eld"`, "go\u200bld": `"go\u200bld"`, "\x1b[2J": `"\x1b[2J"`, `"gold"`: `"\"gold\""`, "\U000e0041": `"\U000e0041"`,
		strings.Repeat("a", 64): `"` + strings.Repeat("a", 63) + `"...`, strings.Repeat("é", 40): `"` + strings.Repeat(`\u00e9`, 31) + `"...`,
	} {
		if got := Class(class); got != want {
			t.Errorf("%q is shown as %s, want %s", class, got, want)
		}
	}
}

func TestJSONAndYAMLAreEscapedWithoutAnotherMeaning(t *testing.T) {
	const text = "go\u200bld \u009b\x7f \u202e \U000e0041 é 東京 \\ \" \n"
	plain, err := json.Marshal(text)
	test.Must(t, err)
	for _, tc := range []struct {
		escaped []byte
		read    func([]byte, any) error
	}{
		{JSON(plain), json.Unmarshal},
		{YAML(plain), func(text []byte, into any) error { return yaml.Unmarshal(text, into) }},
	} {
		var got string
		if err := tc.read(tc.escaped, &got); err != nil || got != text || Escape(string(tc.escaped), "") != string(tc.escaped) {
			t.Errorf("%s is read as %q (%v)", tc.escaped, got, err)
		}
	}
	var b strings.Builder
	if n, err := (Writer{&b}).Write(plain); n != len(plain) || err != nil || b.String() != string(JSON(plain)) {
		t.Errorf("%d %v %s", n, err, &b)
	}
	if same := []byte("abc"); &JSON(same)[0] != &same[0] {
		t.Error("what is visible is copied")
	}
}
