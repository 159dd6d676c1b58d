package metasync

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

// texts are names as somebody may write them: all differ, and columns take all of them but leftOut.
func texts() (good, leftOut []string) {
	random := rand.New(rand.NewPCG(1, 2))
	long := make([]rune, maxClass)
	for i := range long { // Nothing repeats, so that an index cannot be compressed.
		long[i] = 0x1F300 + random.Int32N(0x300)
	}
	return []string{
			"'", `"`, "`", `\`, `\'`, `a'b"c\`, "'); DROP TABLE proffer_gap; --", "/*", "?", "$1", "%s", "%", "_", "", "NULL",
			"a", "A", "á", "a\u0301", "ä", "ae", "ß", "ss", "ı", "i", "I", "ｉ", "٣", "3", "a\u200bb", "a\u00adb", "🛰", "🛰️",
			string(long), strings.Repeat("'", maxClass), strings.Repeat(`\`, maxClass),
		}, []string{
			"\x00", "a\x00b", "\xff", "a\nb", "a\tb", "\u0085", " ", " a", "a ", "a\u00a0", strings.Repeat("🛰", maxResource+1),
		}
}

// checkTexts checks that each text comes back from each column as it is, and that none hides another.
func checkTexts(t *testing.T, b *books) {
	good, bad := texts()
	p := nothing()
	for _, text := range slices.Concat(good, bad) {
		if !p.takes(maxClass, text) {
			continue
		}
		long := strings.Repeat(text, 5) // Of the longest, 315 characters.
		id := string([]rune(long)[:min(maxID, len([]rune(long)))])
		p.consumers[id] = asJSON(map[string]string{text: strings.Join(bad, "")})
		p.policies[id] = policyVersion{text, 1}
		p.specs[id] = slices.Concat(good, bad)
		p.offers[offerKey{id, text, long}] = offered{id, 1}
		p.pools[poolKey{id, long}] = pool{text, 1, 1, 1}
		g := grantOfSlice(id, 1, hourly)
		g.namespace, g.slice, g.class, g.policy = text, id, text, id
		p.grants[grantKey{text, long}] = g
	}
	if len(p.grants) != len(good) || p.leftOut != len(bad) {
		t.Errorf("%d texts fit, want %d, and %d do not, want %d", len(p.grants), len(good), p.leftOut, len(bad))
	}
	used := map[offerKey]usage{}
	for key := range p.offers {
		used[key] = usage{1, 1}
	}
	b.must(b.session(), of(p, used))
	open, err := b.openRows(t.Context())
	test.Must(t, err)
	checkOpen(t, &open.consumers, p.consumers)
	checkOpen(t, &open.policies, p.policies)
	checkOpen(t, &open.offers, p.offers)
	checkOpen(t, &open.grants, p.grants)
	checkOpen(t, &open.pools, p.pools)
	checkOpen(t, &open.usage, used)
}

func checkOpen[K, V comparable](t *testing.T, s *sheet[K, V], want map[K]V) {
	t.Helper()
	got := map[K]V{}
	for key, row := range s.open {
		got[key] = row.value
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s: open rows\n%v\nwant\n%v", s.name, got, want)
	}
}

func TestEachTextIsARow(t *testing.T) {
	each(t, func(t *testing.T, s *dbtest.Server) { checkTexts(t, newBooks(t, s)) })
}
