package jsonstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"proffer.dev/proffer/test"
)

// readValue reads the next value, member by member and element by element.
func readValue(r *Reader) (any, error) {
	kind, err := r.Kind()
	if err != nil {
		return nil, err
	}
	switch kind { //nolint:exhaustive // all other kinds are read with Value
	case Object:
		out := map[string]any{}
		_, err := r.Members(func(key string) error {
			value, err := readValue(r)
			out[key] = value
			return err
		})
		return out, err
	case Array:
		out := []any{}
		_, err := r.Elements(func() error {
			value, err := readValue(r)
			out = append(out, value)
			return err
		})
		return out, err
	case String:
		text, cut, err := r.String(1 << 20)
		if cut {
			err = errors.New("cut")
		}
		return text, err
	}
	value, _, err := r.Value(100)
	return value, err
}

// anyValue draws values that nest at most to this depth.
func anyValue(depth int) *rapid.Generator[any] {
	toAny := func(s string) any { return s }
	scalar := rapid.OneOf(
		rapid.Just(any(nil)),
		rapid.Map(rapid.Bool(), func(v bool) any { return v }),
		rapid.Map(rapid.Int64(), func(v int64) any { return v }),
		rapid.Map(rapid.Float64Range(-1e30, 1e30), func(v float64) any { return v }),
		rapid.Map(rapid.String(), toAny),
		rapid.Map(rapid.SampledFrom([]string{`"`, `\`, `\"`, `}`, `{"`, "\u2028", "<&>", "\x00", "𝄞"}), toAny),
	)
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(
		scalar,
		rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 4), func(list []any) any { return list }),
		rapid.Map(rapid.MapOfN(rapid.String(), anyValue(depth-1), 0, 4), func(m map[string]any) any { return m }),
	)
}

func TestReadingAgreesWithAJSONDecoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var values []any
		var text strings.Builder
		for _, value := range rapid.SliceOfN(anyValue(3), 1, 3).Draw(t, "values") {
			encoded, err := json.Marshal(value)
			test.Must(t, err)
			if rapid.Bool().Draw(t, "indented") {
				encoded, _ = json.MarshalIndent(value, " ", "\t")
			}
			text.Write(append(encoded, '\n'))
			var want any
			test.Must(t, utiljson.Unmarshal(encoded, &want))
			values = append(values, want)
		}
		var from io.Reader = strings.NewReader(text.String())
		if rapid.Bool().Draw(t, "byte by byte") {
			from = iotest.OneByteReader(from)
		}
		r := NewReader(from)
		for _, want := range values {
			got, err := readValue(r)
			test.Must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		}
		if _, err := r.Kind(); !errors.Is(err, io.EOF) {
			t.Fatalf("Kind after the last value: %v, want io.EOF", err)
		}
		skipping := NewReader(strings.NewReader(text.String()))
		for range values {
			test.Must(t, skipping.Skip())
		}
		if err := skipping.Skip(); !errors.Is(err, io.EOF) {
			t.Fatalf("Skip after the last value: %v, want io.EOF", err)
		}
	})
}

func TestAnyInputIsReadToItsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[{}\[\]",:\\ a0tfn-]{0,30}`)).Draw(t, "text")
		r := NewReader(strings.NewReader(text))
		for range len(text) + 1 {
			if _, err := readValue(r); err != nil {
				return
			}
		}
		t.Fatalf("%q was read as more values than it has characters", text)
	})
}

func TestATruncatedValueIsAnError(t *testing.T) {
	const text = `{"a":[1,{"b":"c\n"}],"d":null}`
	for n := 1; n < len(text); n++ {
		for name, read := range map[string]func(*Reader) error{
			"skipped": (*Reader).Skip,
			"read":    func(r *Reader) error { _, err := readValue(r); return err },
		} {
			if err := read(NewReader(strings.NewReader(text[:n]))); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%s %q: %v, want an error other than io.EOF", name, text[:n], err)
			}
		}
	}
	broken := errors.New("broken")
	timingOut := iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(text)))
	if _, err := readValue(NewReader(timingOut)); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a connection that times out: %v", err)
	}
	r := NewReader(strings.NewReader(text))
	if _, err := r.Members(func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a callback that fails: %v", err)
	}
}

func TestValuesThatNobodyReadsAreSkipped(t *testing.T) {
	r := NewReader(strings.NewReader(`{"a":{"b":[1,2,"}"]},"c":[{"d":1},2],"e":"f"} 7`))
	var keys []string
	isObject, err := r.Members(func(key string) error { keys = append(keys, key); return nil })
	if diff := cmp.Diff([]string{"a", "c", "e"}, keys); err != nil || !isObject || diff != "" {
		t.Errorf("object: %t, error: %v, keys: %s", isObject, err, diff)
	}
	if isObject, err := r.Members(nil); err != nil || isObject {
		t.Errorf("Members of a number: object %t, error %v", isObject, err)
	}
	if isArray, err := NewReader(strings.NewReader("{}")).Elements(nil); err != nil || isArray {
		t.Errorf("Elements of an object: array %t, error %v", isArray, err)
	}
}

func TestALongStringIsCutBetweenCharacters(t *testing.T) {
	for _, tc := range []struct {
		json string
		most int
		want string
		cut  bool
	}{
		{`"abc"`, 3, "abc", false},
		{`"abcd"`, 3, "abc", true},
		{`"äöü"`, 3, "ä", true},
		{`"\u00e4\u00f6"`, 3, "ä", true},
		{`"\"\"\""`, 2, `""`, true},
		{`"` + strings.Repeat(`\u0061`, 100) + `"`, 5, "aaaaa", true},
		{`"` + strings.Repeat(`x`, 29) + `\u0061\u0062"`, 5, "xxxxx", true},
		{`""`, 0, "", false},
		{`"a"`, 0, "", true},
	} {
		got, cut, err := NewReader(strings.NewReader(tc.json)).String(tc.most)
		if err != nil || got != tc.want || cut != tc.cut {
			t.Errorf("%s: got %q, cut %t, error %v", tc.json, got, cut, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text, most := rapid.String().Draw(t, "text"), rapid.IntRange(0, 40).Draw(t, "most")
		encoded, err := json.Marshal(text)
		test.Must(t, err)
		got, cut, err := NewReader(strings.NewReader(string(encoded))).String(most)
		if err != nil || len(got) > most || !strings.HasPrefix(text, got) || cut != (len(text) > most) {
			t.Fatalf("%q within %d bytes: got %q, cut %t, error %v", text, most, got, cut, err)
		}
	})
}

func TestAValueBeyondItsBoundIsSkipped(t *testing.T) {
	r := NewReader(strings.NewReader(`[1,2,3] {"a":1}`))
	if value, whole, err := r.Value(6); value != nil || whole || err != nil {
		t.Errorf("beyond the bound: %v, whole %t, error %v", value, whole, err)
	}
	value, whole, err := r.Value(7)
	if diff := cmp.Diff(map[string]any{"a": int64(1)}, value); diff != "" || !whole || err != nil {
		t.Errorf("within the bound: whole %t, error %v, %s", whole, err, diff)
	}
}

func TestAValueOfAnySizeTakesNoMoreMemoryThanItsBound(t *testing.T) {
	const size = 8 << 20
	large := func(json string) io.Reader { return io.LimitReader(&repeater{text: json}, size) }
	members := func(r *Reader) error { _, err := r.Members(func(string) error { return nil }); return err }
	for name, tc := range map[string]struct {
		begin, repeat, end string
		read               func(*Reader) error
	}{
		"a text":          {`"`, "x", `"`, func(r *Reader) error { _, _, err := r.String(100); return err }},
		"an escaped text": {`"`, `\u0061\n`, ``, func(r *Reader) error { _, _, err := r.String(100); return err }},
		"a key":           {`{"`, "x", `":1}`, members},
		"many members":    {`{"a":1`, `,"bbbbbbbbbbb":"c"`, ``, members},
		"a deep value":    {``, `[`, ``, (*Reader).Skip},
		"a value":         {`[0`, `,1`, ``, func(r *Reader) error { _, _, err := r.Value(100); return err }},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := NewReader(io.MultiReader(strings.NewReader(tc.begin), large(tc.repeat), strings.NewReader(tc.end)))
		if err := tc.read(r); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 || cap(r.text) > 1<<16 {
			t.Errorf("%s of %d MiB: the heap grew by %d bytes, the buffer to %d", name, size>>20, grown, cap(r.text))
		}
		runtime.KeepAlive(r)
	}
}

func TestValuesReadMemberByMemberHaveALimitedDepth(t *testing.T) {
	_, err := readValue(NewReader(strings.NewReader(strings.Repeat("[", 1000))))
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("1000 levels: %v, want an error about the depth", err)
	}
}

// repeater is an endless io.Reader that repeats a text.
type repeater struct {
	text string
	at   int
}

func (r *repeater) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = r.text[r.at]
		r.at = (r.at + 1) % len(r.text)
	}
	return len(into), nil
}

func BenchmarkSkip(b *testing.B) {
	var text strings.Builder
	text.WriteByte('{')
	for i := range 100_000 {
		fmt.Fprintf(&text, `"example.com/r%06d":"1",`, i)
	}
	text.WriteString(`"x":1}`)
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		test.Must(b, NewReader(strings.NewReader(text.String())).Skip())
	}
}
