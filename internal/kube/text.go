package kube

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
)

const (
	// MaxMessage is the length in bytes that messages in conditions are cut to. The API would take
	// more; more is not readable.
	MaxMessage = 1024
	// MaxNote is the API's bound for the note of an Event, in bytes.
	MaxNote = 1000
	// MaxNamed bounds the number of names of a list that a message shows.
	MaxNamed = 5
	// MaxShown bounds, in bytes, what a message repeats of a text that a consumer chose.
	MaxShown = 64
	// MaxStack bounds the stacks that are logged, in bytes.
	MaxStack = 8 << 10
	// maxName bounds each name in a list.
	maxName = 100
)

// Shorten cuts a text to at most this many bytes, at a rune, and marks the cut with an ellipsis.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const ellipsis = "..."
	if most < len(ellipsis) {
		return ""
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}

// Stack returns the stack of the goroutine for a log line, shortened to MaxStack. After a panic, only the function
// that recovers may call it.
func Stack() string { return Shorten(string(debug.Stack()), MaxStack) }

// First lists the first MaxNamed names, each cut to a readable length, and counts the others.
func First(names []string) string { return FirstOf(names, len(names)) }

// FirstOf does so for the first names of a longer list of this length.
func FirstOf(names []string, count int) string {
	names = slices.Clone(names[:min(len(names), MaxNamed)])
	for i := range names {
		names[i] = Shorten(names[i], maxName)
	}
	text := strings.Join(names, ", ")
	if more := count - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// AppendNote appends a sentence to a message. The result has at most MaxMessage bytes: the message
// is cut to make room, and the sentence takes at most half of it.
func AppendNote(message, note string) string {
	note = Shorten(note, MaxMessage/2)
	return Shorten(message, MaxMessage-len(note)) + note
}
