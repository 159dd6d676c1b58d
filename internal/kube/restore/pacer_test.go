package restore

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fight lets another client change the object back as soon as it is written, and returns the writes
// that follow within this time, by their time since the start.
func fight(p *Pacer, content string, duration time.Duration) (writes []time.Duration) {
	for now := start; now.Sub(start) < duration; now = now.Add(time.Millisecond) {
		if p.Wait("object", content, now) == 0 {
			p.Wrote("object", content, "rival", now)
			writes = append(writes, now.Sub(start))
		}
	}
	return writes
}

func TestEachRestoreWaitsTwiceAsLongAsTheOneBefore(t *testing.T) {
	restores := New()
	got := fight(restores.Pacer("Thing", logr.Discard()), "want", 5*time.Minute)
	want, next := []time.Duration{0}, 50*time.Millisecond
	for at := next; at < 5*time.Minute; at += next {
		want = append(want, at)
		next = min(2*next, MaxDelay)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if n := testutil.ToFloat64(restores.WithLabelValues("Thing")); int(n) != len(got)-1 {
		t.Errorf("%v restores in %d writes, of which the first restores nothing", n, len(got))
	}
}

func TestNewContentIsWrittenImmediatelyAlsoDuringAFight(t *testing.T) {
	p := New().Pacer("Thing", logr.Discard())
	fight(p, "a", time.Minute)
	now := start.Add(time.Minute)
	if left := p.Wait("object", "b", now); left != 0 {
		t.Errorf("new content waits %v", left)
	}
	if p.Wrote("object", "b", "", now) {
		t.Error("new content counts as a restore")
	}
	if left := p.Wait("object", "b", now); left < 10*time.Second {
		t.Errorf("the fight is forgotten: %v", left)
	}
	if left := p.Wait("another", "a", now); left != 0 {
		t.Errorf("another object waits %v", left)
	}
}

func TestAFightIsForgottenOnceTheObjectStays(t *testing.T) {
	p := New().Pacer("Thing", logr.Discard())
	writes := fight(p, "a", 2*time.Minute)
	last := start.Add(writes[len(writes)-1])
	if p.Wrote("object", "a", "", last.Add(calmPeriod)) {
		t.Error("a write after the calm counts as a restore")
	}
	if left := p.Wait("object", "a", last.Add(calmPeriod)); left != firstDelay {
		t.Errorf("the first restore after the calm waits %v, want %v", left, firstDelay)
	}
}

func TestWhatWasWrittenLongAgoTakesNoMemory(t *testing.T) {
	p := New().Pacer("Thing", logr.Discard())
	for i := range 1000 {
		p.Wrote(fmt.Sprint(i), "a", "", start.Add(time.Duration(i)*time.Second))
	}
	if n := len(p.byObject); n > 2*int(calmPeriod/time.Second) {
		t.Errorf("%d objects are remembered", n)
	}
}

func TestAFightIsLoggedOnce(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	fight(New().Pacer("Thing", log), "a", 10*time.Second) // By the clock of the log, it takes no time.
	want := []string{`"level"=0 "msg"="Another client changed an object that the operator maintains, and the operator restored it; ` +
		`further restores are not logged for a while" "kind"="Thing" "object"="object" "changedBy"="rival" ` +
		`"nextRestoreAfter"="100ms" "silentFor"="1m0s"`}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestTheLastManagerIsNeitherTheOperatorNorAWriterOfTheStatus(t *testing.T) {
	entry := func(manager, subresource string, second int) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(start.Add(time.Duration(second) * time.Second))
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &at}
	}
	object := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		entry("older", "", 1), entry("rival", "", 2), entry("controller", "status", 3), entry("proffer", "", 4), {Manager: "timeless"},
	}}
	if got := LastManager(object); got != "rival" {
		t.Errorf("got %q, want rival", got)
	}
	if got := LastManager(&metav1.ObjectMeta{}); got != "" {
		t.Errorf("got %q of an object without managers", got)
	}
}
