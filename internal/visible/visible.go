// Package visible escapes the characters without a shape in the texts of others. A consumer chooses the class
// of its ResourceSlices and the text of its errors. With such characters it could imitate the name of another
// consumer, reorder a row, or control a terminal.
package visible

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// servable matches the names of classes that a policy can have, up to maxClass bytes: DNS-1123 labels.
var servable = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

const maxClass = 63

// word matches the names and amounts of resources that need no quotes.
var word = regexp.MustCompile(`^[-+._/0-9A-Za-z]+$`)

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

// Class shows the class of a ResourceSlice, in which a consumer may write anything. A name that no
// policy can have is quoted, in ASCII and shortened, so that it imitates neither the name of a class
// that is served nor a word that stands for something else.
func Class(name string) string {
	switch {
	case len(name) > maxClass:
		return strconv.QuoteToASCII(strings.ToValidUTF8(name[:maxClass], "")) + "..."
	case servable.MatchString(name):
		return name
	}
	return strconv.QuoteToASCII(name)
}

// Written shows amounts that a consumer wrote, as in "cpu=2", by name. What could not be the name or the amount
// of a resource is quoted.
func Written(amounts map[string]string) []string {
	shown := func(text string) string {
		if word.MatchString(text) {
			return text
		}
		return strconv.QuoteToASCII(text)
	}
	all := make([]string, 0, len(amounts))
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		all = append(all, shown(name)+"="+shown(amounts[name]))
	}
	return all
}

// JSON escapes the characters of a text in JSON that are not visible. They occur in strings only.
func JSON(text []byte) []byte {
	return escape(text, func(b []byte, r rune) []byte {
		for _, unit := range utf16.AppendRune(nil, r) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
		return b
	})
}

// Writer passes JSON, or text, on with the characters escaped that are not visible. Each Write must end
// with a whole character.
type Writer struct{ To io.Writer }

// Write implements io.Writer.
func (w Writer) Write(text []byte) (int, error) {
	if _, err := w.To.Write(JSON(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// YAML is JSON for a reader of YAML, which knows no pairs of surrogates.
func YAML(text []byte) []byte {
	return escape(text, func(b []byte, r rune) []byte { return fmt.Appendf(b, `\U%08x`, r) })
}

// escape returns a text with the characters outside of ASCII that are not visible, and DEL, escaped. It
// is the same text if there are none.
func escape(text []byte, escaped func([]byte, rune) []byte) []byte {
	shown := func(r rune) bool { return r < utf8.RuneSelf && r != unicode.MaxASCII || Is(r) }
	if bytes.IndexFunc(text, func(r rune) bool { return !shown(r) }) < 0 {
		return text
	}
	var b []byte
	for _, r := range string(text) {
		if shown(r) {
			b = utf8.AppendRune(b, r)
		} else {
			b = escaped(b, r)
		}
	}
	return b
}
