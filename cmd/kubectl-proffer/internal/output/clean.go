package output

import (
	"strconv"
	"strings"
	"unicode"
)

// Clean shows control characters instead of sending them to a terminal, which would obey them: a
// consumer chooses the class of its ResourceSlices, and text comes from whoever is behind the Service.
// Line breaks stay.
func Clean(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// OneLine is Clean for a text in which a line break would begin another row or another message.
func OneLine(text string) string { return strings.ReplaceAll(Clean(text), "\n", `\n`) }

// cleanLine is Clean for a line that may have a style.
func cleanLine(line string) string {
	if inner, ok := strings.CutPrefix(line, redStyle); ok {
		if inner, ok = strings.CutSuffix(inner, endStyle); ok {
			return redStyle + Clean(inner) + endStyle
		}
	}
	return Clean(line)
}
