package jsonstream

import (
	"io"
	"strings"
	"testing"
)

// A stranger writes into one element of a list what the decoder itself would refuse or keep in memory.
func TestAnElementBeyondABoundHarmsNoOther(t *testing.T) {
	nested := func(levels int) string {
		return strings.Repeat(`{"a":[`, levels/2) + `"x]}"` + strings.Repeat(`]}`, levels/2)
	}
	cases := map[string]string{
		"as deep as is kept": nested(maxNesting - 2), "deeper by one": nested(maxNesting), "far too deep": nested(50_000),
		"a number": strings.Repeat("9", 8<<20), "spaces": "1" + strings.Repeat(" ", 8<<20),
	}
	for _, escaped := range []string{`\u0061`, `\\`, `\"`, `\n`, "ä", `\ud834\udd1e`} {
		for n := range 8 {
			cases[escaped+" at the bound"+strings.Repeat("'", n)] = `"` + strings.Repeat("x", maxText-n) + strings.Repeat(escaped, 4) + `"`
		}
	}
	for name, element := range cases {
		for kind, read := range map[string]func(*Reader) error{
			"skipped": (*Reader).Skip,
			"a value": func(r *Reader) error {
				value, whole, err := r.Value(1000)
				if whole && value != int64(1) {
					t.Errorf("%s: %v is whole", name, value)
				}
				return err
			},
		} {
			r, sum := NewReader(strings.NewReader(`[`+element+`,`+element+`,"last"] {}`)), 0
			isArray, err := r.Elements(func() error {
				if sum++; sum < 3 {
					return read(r)
				}
				last, _, err := r.String(10)
				if last != "last" {
					t.Errorf("%s, %s: the last element is %q", name, kind, last)
				}
				return err
			})
			if next, nextErr := r.Kind(); !isArray || err != nil || sum != 3 || next != Object || nextErr != nil {
				t.Errorf("%s, %s: %d elements, then %v, %v, %v", name, kind, sum, next, err, nextErr)
			}
		}
	}
}

// A watch delivers an event when it has arrived. Its end within an event is io.ErrUnexpectedEOF itself, as
// the StreamWatcher of client-go expects.
func TestAValueIsReadBeforeTheNextArrives(t *testing.T) {
	from, to := io.Pipe()
	go func() {
		_, _ = io.WriteString(to, `{"type":"ADDED","object":{"a":[1,{}]}}`)
		_, _ = io.WriteString(to, "\n"+`{"type":"ADD`)
		_ = to.Close()
	}()
	r := NewReader(from)
	for n, want := range []error{nil, io.ErrUnexpectedEOF} {
		if _, err := readValue(r); err != want { //nolint:errorlint // It compares as the StreamWatcher does.
			t.Errorf("value %d: %v, want %v", n, err, want)
		}
	}
	_ = from.Close()
}
