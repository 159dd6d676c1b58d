package federation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/operatortest"
)

// hostile is a text that a terminal would obey.
const hostile = "\x1b]0;title\a\u009b2J\r\u202e\nliqoctl"

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// readFrom returns what is read of a list with these items at noon.
func readFrom(t *testing.T, items ...any) (r Reading, err error) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"kind": "OfferList", "items": items})
	test.Must(t, err)
	return r, r.Read(strings.NewReader(string(text)), func() time.Time { return noon })
}

// object is a well-formed Offer of the class, with an edit of its status.
func object(t *testing.T, class string, edit func(status map[string]any)) map[string]any {
	t.Helper()
	text, err := json.Marshal(operatortest.ProviderOffers(noon)[0])
	test.Must(t, err)
	var o map[string]any
	test.Must(t, json.Unmarshal(text, &o))
	status := o["status"].(map[string]any)
	o["metadata"].(map[string]any)["name"], status["class"] = class, class
	edit(status)
	return o
}

func numbered(n int, value any) map[string]any {
	m := map[string]any{}
	for i := range n {
		m[fmt.Sprintf("example.com/r%d", i)] = value
	}
	return m
}

func shaped(nodes int, free map[string]any) map[string]any {
	return map[string]any{"nodes": nodes, "free": free}
}

func TestNonsenseHarmsOnlyItsOwnOffer(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(status map[string]any)
		want string
	}{
		"an amount that takes hours":        {func(s map[string]any) { s["available"] = map[string]any{"cpu": "1e-999999999"} }, `"1e-999999999" of "cpu" is not an amount`},
		"an amount that takes minutes":      {func(s map[string]any) { s["held"] = map[string]any{"cpu": "1e999999999"} }, `"1e999999999" of "cpu" is not an amount`},
		"an amount that is a command":       {func(s map[string]any) { s["available"] = map[string]any{"cpu": "1;reboot"} }, `is not an amount`},
		"a negative amount":                 {func(s map[string]any) { s["ceiling"] = map[string]any{"cpu": "-1"} }, `an amount cannot be negative`},
		"half a pod":                        {func(s map[string]any) { s["largestPod"] = map[string]any{"pods": "500m"} }, `only cpu can be a fraction`},
		"an amount that is too large":       {func(s map[string]any) { s["defaults"] = map[string]any{"memory": "99E"} }, `is not an amount`},
		"a resource that is a command":      {func(s map[string]any) { s["available"] = map[string]any{"$(reboot)": "1"} }, `"$(reboot)" is not the name of a resource`},
		"more resources than there are":     {func(s map[string]any) { s["available"] = numbered(65, "1") }, `more than 64 amounts`},
		"an amount that is an object":       {func(s map[string]any) { s["available"] = map[string]any{"cpu": map[string]any{}} }, `is not an amount`},
		"amounts that are a list":           {func(s map[string]any) { s["available"] = []any{1} }, `one is not an Offer`},
		"a shape of an amount that is none": {func(s map[string]any) { s["shapes"] = []any{shaped(1, map[string]any{"cpu": "1e999999999"})} }, `is not an amount`},
		"a shape of no node":                {func(s map[string]any) { s["shapes"] = []any{shaped(0, numbered(1, "1"))} }, `a shape is of 0 nodes`},
		"a shape of fewer nodes":            {func(s map[string]any) { s["shapes"] = []any{shaped(-7, numbered(1, "1"))} }, `a shape is of -7 nodes`},
		"a shape of too many nodes":         {func(s map[string]any) { s["shapes"] = []any{shaped(1<<31, numbered(1, "1"))} }, `one is not an Offer`},
		"a shape of too many resources":     {func(s map[string]any) { s["shapes"] = []any{shaped(1, numbered(17, "1"))} }, `17 resources`},
		"too many shapes":                   {func(s map[string]any) { s["shapes"] = slices.Repeat([]any{shaped(1, numbered(1, "1"))}, 9) }, `more than 8 shapes`},
		"a class that is a command":         {func(s map[string]any) { s["class"] = "gold;reboot" }, `is not of the class "gold;reboot"`},
		"another class":                     {func(s map[string]any) { s["class"] = "silver" }, `"wrong" is not of the class "silver"`},
		"a number that is none":             {func(s map[string]any) { s["title"] = json.RawMessage("1e999") }, `one is not an Offer`},
		"no time":                           {func(s map[string]any) { delete(s, "validUntil") }, `wrong does not say how old it is`},
		"a time that is none":               {func(s map[string]any) { s["observedTime"] = "yesterday" }, `one is not an Offer`},
		"too many labels":                   {func(s map[string]any) { s["labels"] = numbered(65, "x") }, `a list that is too long`},
		"too many prices":                   {func(s map[string]any) { s["prices"] = numbered(65, "1") }, `a list that is too long`},
		"too many classes":                  {func(s map[string]any) { s["storageClasses"] = slices.Repeat([]string{"x"}, 257) }, `a list that is too long`},
		"a book":                            {func(s map[string]any) { s["more"] = slices.Repeat([]string{"x"}, maxOffer/4) }, `one has more than 128 KiB`},
		"a resource that a terminal does":   {func(s map[string]any) { s["available"] = map[string]any{hostile: "1"} }, `is not the name of a resource`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := readFrom(t, object(t, "gold", func(map[string]any) {}), object(t, "wrong", tc.edit), object(t, "silver", func(map[string]any) {}))
			if err != nil || len(p.Offers) != 2 || len(p.Problems) != 1 {
				t.Fatalf("%v, %d Offers, %q", err, len(p.Offers), p.Problems)
			}
			if got := p.Problems[0]; !strings.HasPrefix(got, "it has Offers that are left out: 1; the first: ") || !strings.Contains(got, tc.want) || strings.ContainsFunc(got, dangerous) {
				t.Errorf("got %q, want %s", got, tc.want)
			}
		})
	}
}

func dangerous(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

func TestTheLineOfPricesIsThatOfThePrices(t *testing.T) {
	for want, edit := range map[string]func(map[string]any){
		"cpu 0.5 EUR/hour": func(map[string]any) {},
		"cpu 9 EUR/month": func(s map[string]any) {
			s["period"], s["prices"] = "Month", map[string]any{"cpu": "9", "memory": "free"}
		},
		"": func(s map[string]any) { s["currency"] = "eur" },
	} {
		p, err := readFrom(t, object(t, "gold", func(s map[string]any) {
			s["price"], s["prices"], s["currency"], s["period"] = "cpu 0.0001 EUR/hour", map[string]any{"cpu": "0.5"}, "EUR", "Week"
			edit(s)
		}))
		if err != nil || len(p.Offers) != 1 || p.Offers[0].Price != want || want == "" && (p.Offers[0].Prices != nil || p.Offers[0].Currency != "") {
			t.Errorf("%v, %+v, want %s", err, p.Offers, want)
		}
	}
}

func TestAClassIsThereOnce(t *testing.T) {
	gold := object(t, "gold", func(map[string]any) {})
	p, err := readFrom(t, gold, gold)
	if want := []string{"it has Offers that are left out: 1; the first: gold is there twice"}; err != nil || len(p.Offers) != 1 || !cmp.Equal(p.Problems, want) {
		t.Errorf("%v, %d Offers, %q", err, len(p.Offers), p.Problems)
	}
}

func TestAnAnswerThatIsNoListOfOffersIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                "its answer is not a list of Offers: unexpected EOF",
		"<html>":          "its answer is not a list of Offers: ",
		"[]":              "its answer is not a list of Offers: it has [ where { should be",
		"{}":              "its answer is not a list of Offers: it has no items",
		`{"items": null}`: "its answer is not a list of Offers: ",
		`{"items": {}}`:   "its answer is not a list of Offers: it has { where [ should be",
		`{"items": [{]}`:  "its answer is not a list of Offers: ",
		`{"items": [`:     "its answer is not a list of Offers: unexpected EOF",
		`{"a": "` + strings.Repeat("x", maxAnswer) + `"}`: "its answer has more than 4 MiB",
		`{"items": [` + strings.Repeat("[", 20_000):       "its answer is not a list of Offers: ",
	} {
		p := &Reading{}
		if err := p.Read(strings.NewReader(text), time.Now); err == nil || !strings.HasPrefix(err.Error(), want) || len(p.Offers) > 0 {
			t.Errorf("%.40s: got %v, want %s", text, err, want)
		}
	}
}

func TestProblemsAreFew(t *testing.T) {
	var items []any
	for i := range maxNamed + 3 {
		items = append(items, object(t, fmt.Sprintf("c%d", i), func(s map[string]any) { s["validUntil"] = "2026-01-01T00:00:00Z" }))
	}
	p, err := readFrom(t, items...)
	if err != nil || len(p.Problems) != maxNamed+1 || p.Problems[maxNamed] != "it has more Offers that are not kept up to date: 3" {
		t.Errorf("%v, %q", err, p.Problems)
	}
}

func TestWhatFollowsTooManyBytesIsLeftOut(t *testing.T) {
	long := map[string]any{"a": strings.Repeat("x", maxAnswer)}
	p, err := readFrom(t, object(t, "gold", func(map[string]any) {}), long, object(t, "silver", func(map[string]any) {}))
	if want := []string{"its answer has more than 4 MiB, and the rest is left out"}; err != nil || len(p.Offers) != 1 || !cmp.Equal(p.Problems, want) {
		t.Errorf("%v, %d Offers, %q", err, len(p.Offers), p.Problems)
	}
}

func TestWhatFollowsTooManyOffersIsLeftOut(t *testing.T) {
	var items []any
	for i := range maxOffers + 1 {
		items = append(items, object(t, fmt.Sprintf("c%d", i), func(s map[string]any) {
			for _, field := range []string{"held", "ceiling", "largestPod", "shapes", "defaults", "labels", "prices", "message", "url"} {
				delete(s, field)
			}
		}))
	}
	p, err := readFrom(t, items...)
	if want := []string{"it has more than 200 Offers, and the others are left out"}; err != nil || len(p.Offers) != maxOffers || !cmp.Equal(p.Problems, want) {
		t.Errorf("%v, %d Offers, %q", err, len(p.Offers), p.Problems)
	}
}

// The bounds are those of the largest Offer that the CRD allows, but for its size in bytes.
func TestALargeOfferIsRead(t *testing.T) {
	o := object(t, "gold", func(s map[string]any) {
		all := numbered(61, "9223372036854775807")
		maps.Copy(all, map[string]any{"cpu": "9223372036854775807m", "memory": "1.1Gi", "pods": "5"})
		for _, field := range []string{"available", "held", "ceiling", "largestPod", "defaults"} {
			s[field] = all
		}
		s["shapes"] = slices.Repeat([]any{shaped(1<<31-1, numbered(16, "9223372036854775807"))}, 8)
		s["prices"], s["labels"] = numbered(64, "999999999.999999999"), numbered(64, strings.Repeat("x", 63))
		s["message"], s["storageClasses"] = strings.Repeat("x", 4096), slices.Repeat([]string{strings.Repeat("x", 253)}, 256)
	})
	p, err := readFrom(t, o)
	if err != nil || len(p.Offers) != 1 || len(p.Problems) > 0 {
		t.Fatalf("%v %q", err, p.Problems)
	}
	if memory := p.Offers[0].Available["memory"]; memory.Text() != "1.1Gi" {
		t.Errorf("memory is %s", memory.Text())
	}
}

// A provider can make many short items.
func TestTheOffersOfAProviderTakeNoMoreMemoryThanIsAllowed(t *testing.T) {
	const more = 80 // Offers, than are kept of any kind.
	short := func(value any) map[string]any {
		all := map[string]any{}
		for i := range maxItems {
			all[fmt.Sprintf("%c%c", 'a'+i%26, 'a'+i/26)] = value
		}
		return all
	}
	amounts := []string{"available", "held", "ceiling", "largestPod", "defaults"}
	for name, edit := range map[string]func(status map[string]any){
		"amounts": func(s map[string]any) {
			for _, field := range amounts {
				s[field] = short("1")
			}
		},
		"few amounts": func(s map[string]any) {
			for _, field := range amounts {
				s[field] = map[string]any{"a": "1"}
			}
		},
		"shapes": func(s map[string]any) { s["shapes"] = slices.Repeat([]any{shaped(1, numbered(16, "1"))}, 8) },
		"small shapes": func(s map[string]any) {
			s["shapes"] = slices.Repeat([]any{shaped(1, map[string]any{"a": "1"})}, 8)
		},
		"labels and prices": func(s map[string]any) { s["labels"], s["prices"] = short("1"), short("1") },
		"classes": func(s map[string]any) {
			for _, field := range []string{"storageClasses", "ingressClasses", "loadBalancerClasses"} {
				s[field] = make([]string, maxStorageClasses)
			}
		},
	} {
		var items []any
		for i := range more {
			items = append(items, object(t, fmt.Sprintf("c%d", i), edit))
		}
		text, err := json.Marshal(map[string]any{"items": items})
		test.Must(t, err)
		var kept [2]Reading
		before := heap()
		for i := range kept {
			test.Must(t, kept[i].Read(bytes.NewReader(text), func() time.Time { return noon }))
		}
		each := (heap() - before) / int64(len(kept))
		t.Logf("%s: %d KiB of %d Offers", name, each>>10, len(kept[0].Offers))
		if each > maxKept*5/4 || len(kept[0].Offers) == 0 || len(kept[0].Offers) == more {
			t.Errorf("%s: %d Offers take %d KiB", name, len(kept[0].Offers), each>>10)
		}
		runtime.KeepAlive(&kept)
	}
}

func TestTheMessageSaysWhetherSlicesAreGrantedFromOneNode(t *testing.T) {
	for message, want := range map[string]v1alpha1.SliceFit{
		"":                   "",
		"cpu 1: all is left": "",
		rest.FromOneNode + "; cpu 1: the most that one node has left": v1alpha1.FitNode,
	} {
		read, err := readFrom(t, object(t, "gold", func(s map[string]any) { s["message"] = message }))
		test.Must(t, err)
		if len(read.Offers) != 1 || read.Offers[0].Fit != want {
			t.Errorf("%q: got %+v, want %q", message, read.Offers, want)
		}
	}
}
