package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/table"
)

func exceeding(consumer string, users ...string) (all []table.Excess) {
	for _, user := range users {
		all = append(all, table.Excess{Consumer: consumer, User: user, OfGrant: true})
	}
	return all
}

func TestAUserInExcessIsMarkedAtOnceAndUntilASecondPeriodHasEnded(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 3, 0, time.UTC)
	mine, m := exceeding("rome", "mine-1", ""), marks{}
	for _, step := range []struct {
		at       time.Duration
		excesses []table.Excess
		want     string
		next     time.Duration
	}{
		{0, nil, "", 0},
		{time.Second, mine, "!mine-1", 16 * time.Second},
		{2 * time.Second, nil, "!mine-1", 15 * time.Second},
		{6 * time.Second, mine, "!mine-1", 11 * time.Second},
		{8 * time.Second, mine, "!mine-1", 19 * time.Second}, // The next period has begun.
		{27*time.Second - 1, nil, "!mine-1", 1},
		{27 * time.Second, nil, "", 0},
	} {
		next, got := m.refresh(step.excesses, start.Add(step.at)), map[string]string{}
		m.addTo(got)
		if listed := strings.Join(slices.Sorted(maps.Keys(got)), " "); listed != step.want || next != step.next {
			t.Errorf("after %s: %q for %s, want %q for %s", step.at, listed, next, step.want, step.next)
		}
	}
}

func TestAConsumerWithSeveralUsersInExcessIsMarkedItself(t *testing.T) {
	now, m, got := time.Now(), marks{}, map[string]string{"mine-1": "pool=gold"}
	m.refresh(exceeding("oslo", "a-2", "b-2", "c-2", "d-2"), now)
	m.refresh(exceeding("rome", "a-1", "b-1", "c-1", "d-1", "e-1"), now)
	m.addTo(got)
	want := map[string]string{"mine-1": "pool=gold", "!a-2": "", "!b-2": "", "!c-2": "", "!d-2": "", "!_rome": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Of 50 users, each is in excess for a moment, one after the other.
func TestAConsumerThatFlipsItsMarksCausesFewWrites(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m, listed, writes := marks{}, map[string]string{}, 0
	for tick := range 6000 {
		now := start.Add(time.Duration(tick) * 10 * time.Millisecond)
		var all []table.Excess
		if tick%4000 < 1500 && tick%2 == 0 {
			all = exceeding("rome", fmt.Sprintf("mine-%02d", tick/2%50))
		}
		m.refresh(all, now)
		want := map[string]string{}
		if m.addTo(want); !maps.Equal(want, listed) {
			listed = want
			writes++
		}
	}
	// Two times five marks, and the removal of the marks once.
	if writes != 11 {
		t.Errorf("%d writes in a minute, want 11", writes)
	}
}

func TestMarksAreBounded(t *testing.T) {
	m, got := marks{}, map[string]string{}
	for i := range 2000 {
		m.refresh(exceeding(fmt.Sprintf("consumer-%04d", i), fmt.Sprintf("mine-%04d", i)), time.Now())
	}
	if m.addTo(got); len(got) != maxMarks {
		t.Errorf("%d marks, want %d", len(got), maxMarks)
	}
}
