package visible

import (
	"strings"
	"testing"
	"unicode"
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

func TestNothingThatUnicodeIgnoresIsVisible(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		ignored := unicode.In(r, unicode.Cf, unicode.Cc, unicode.Cs, unicode.Co, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
		if text := Escape(string(r), ""); ignored && (Is(r) || strings.ContainsRune(text, r) && r != unicode.ReplacementChar) {
			t.Errorf("%U is shown as %q", r, text)
		}
	}
}
