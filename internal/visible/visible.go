// Package visible shows what cannot be seen in a text of others: a consumer chooses the class of its
// ResourceSlices and the text of its errors, and with characters without a shape it could imitate the name
// of another, reorder a row, or have a terminal obey it.
package visible

import (
	"strconv"
	"strings"
	"unicode"
)

// brailleBlank has the category of a symbol, and looks like a space.
const brailleBlank = '\u2800'

// Is reports whether a character has a shape of its own, or is the space. Control characters, marks that
// reorder text, other spaces, and what Unicode ignores by default, such as the fillers of Hangul, variation
// selectors and tags, are not visible.
func Is(r rune) bool {
	return unicode.IsPrint(r) && r != brailleBlank &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Escape writes the characters that are not visible as Go does, as in \u200b, except those in keep.
func Escape(text, keep string) string {
	var b strings.Builder
	for _, r := range text {
		if Is(r) || strings.ContainsRune(keep, r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return b.String()
}

// Blank writes a space for each character that is not visible.
func Blank(text string) string {
	return strings.Map(func(r rune) rune {
		if !Is(r) {
			return ' '
		}
		return r
	}, text)
}
