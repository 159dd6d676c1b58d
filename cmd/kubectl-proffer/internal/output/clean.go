package output

import (
	"strings"

	"proffer.dev/proffer/internal/visible"
)

// Clean shows what cannot be seen, and control characters instead of sending them to a terminal, which would
// obey them: text comes from consumers, and from whoever is behind the Service. Line breaks stay.
func Clean(text string) string { return visible.Escape(text, "\n") }

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
