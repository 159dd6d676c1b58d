package filter

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"

	"proffer.dev/proffer/internal/kube"
)

// maxMistakes bounds the mistakes of an expression that are listed. CEL finds hundreds in some.
const maxMistakes = 3

// hints say what to write instead, where CEL only says what is wrong. The first whose text is in the
// mistake is added.
var hints = []struct{ in, write string }{
	{"kubernetes.Quantity", "compare amounts as in node.allocatable['cpu'].isGreaterThan(quantity('8'))"},
	{"optional_type(", "write .orValue('') after [?'label']"},
	{"'map(string, string).", "write 'label' in node.labels"},
	{"invalid argument to has() macro", "write 'label' in node.labels"},
	{"token recognition error at: '= ", "write == to compare"},
	{"recursion", "write an expression with fewer levels"},
}

// mistakes returns the mistakes with their positions. Fields lists the fields that an expression can read.
func mistakes(all []*cel.Error, fields string) error {
	texts := make([]string, 0, maxMistakes+1)
	for _, e := range all[:min(len(all), maxMistakes)] {
		text := kube.Shorten(e.Message, maxWhy) + hint(e.Message, fields)
		texts = append(texts, at(e.Location.Line(), e.Location.Column())+text)
	}
	if more := len(all) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(texts, "; "))
}

func hint(mistake, fields string) string {
	if strings.HasPrefix(mistake, "undefined field") || strings.HasPrefix(mistake, "undeclared reference") {
		return ": this filter reads " + fields
	}
	for _, h := range hints {
		if strings.Contains(mistake, h.in) {
			return ": " + h.write
		}
	}
	return ""
}

// at writes a position. CEL counts columns from 0, and has -1 where it knows none.
func at(line, column int) string { return fmt.Sprintf("%d:%d: ", max(line, 1), max(column, 0)+1) }
