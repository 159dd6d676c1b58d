package world

import (
	"strings"
	"testing"
	"time"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/test"
)

func TestASnapshotThatDoesNotSayWhenAnOfferWasWithdrawnStillOwesIt(t *testing.T) {
	const zeros = `"class":"gold","policy":"","resources":{"cpu":"0"},"lastPolicy":"gold"`
	for _, tc := range []struct {
		name, moved string
		want        int
	}{
		{"an earlier operator", "", 1},
		{"withdrawn a day ago", `,"moved":"2026-01-09T00:00:00Z"`, 1},
		{"withdrawn a week ago", `,"moved":"2026-01-03T00:00:00Z"`, 0},
	} {
		file := `{"version":1,"revision":7,"time":"2026-01-10T00:00:00Z","policies":[],"consumers":[{"clusterID":"rome"}],"offers":[` +
			`{"clusterID":"rome",` + zeros + tc.moved + `},{"clusterID":"","anyone":true,` + zeros + tc.moved + `}],"slices":[],"nodes":[],"pods":[]}`
		w, _, err := Decode(strings.NewReader(file))
		test.Must(t, err)
		o := rehearse.Rehearse(w, &rehearse.Change{}, never)
		for _, id := range []string{"rome", "anybody"} {
			if got := len(o.With.Of(id).Offers); got != tc.want {
				t.Errorf("%s: %s reads %d classes, want %d", tc.name, id, got, tc.want)
			}
		}
	}
}

func TestASnapshotSaysWhoHasDeparted(t *testing.T) {
	const file = `{"version":1,"revision":7,"time":"2026-01-10T00:00:00Z","policies":[],"consumers":[],"offers":[` +
		`{"clusterID":"oslo","departed":"2026-01-09T00:00:00Z","class":"gold","policy":"","resources":{"cpu":"0"},"moved":"2026-01-09T00:00:00Z"},` +
		`{"clusterID":"","anyone":true,"none":true,"class":"","policy":""}],"slices":[],"nodes":[],"pods":[]}`
	w, _, err := Decode(strings.NewReader(file))
	test.Must(t, err)
	since := time.Date(2026, 1, 9, 0, 0, 0, 0, time.UTC).Unix()
	if len(w.Offers.Departed) != 1 || w.Offers.Departed[0].ID != "oslo" || w.Offers.Departed[0].Since != since || w.Offers.Entries.Len() != 0 {
		t.Fatalf("departed: %+v, known: %d", w.Offers.Departed, w.Offers.Entries.Len())
	}
	if o := w.Offers.Of("oslo").Offers; len(o) != 1 || !o[0].Spent() {
		t.Errorf("oslo reads %v", o)
	}
	w.Now = w.Now.Add(offer.OwedFor)
	if o := rehearse.Rehearse(w, &rehearse.Change{}, never); len(o.With.Departed) != 0 {
		t.Errorf("after a week, %d consumers are remembered", len(o.With.Departed))
	}
}
