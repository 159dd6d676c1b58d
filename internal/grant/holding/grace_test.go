package holding

import (
	"strconv"
	"testing"
	"time"
)

// Whoever replaces a policy deletes it first.
func TestAGrantWhosePolicyIsGoneIsLeftAloneForAWhile(t *testing.T) {
	start := time.Now()
	u := Grace{Started: start, Since: map[[2]string]time.Time{}}
	for _, step := range []struct {
		after  time.Duration
		policy fate
		want   time.Duration
	}{
		{0, gone, startGrace},
		{time.Minute, replaced, 0},
		{time.Hour, gone, replaceGrace},
		{time.Hour + time.Second, gone, replaceGrace - time.Second},
		{time.Hour + 2*time.Second, replaced, 0},
		{2 * time.Hour, gone, replaceGrace},
		{2*time.Hour + replaceGrace, gone, 0},
		{3 * time.Hour, gone, 0},
		{4 * time.Hour, replaced, 0},
		{5 * time.Hour, narrowed, 0},
	} {
		if got := u.leaveAloneFor("gold", "rome", step.policy, start.Add(step.after)); got != step.want {
			t.Errorf("after %s the grant is left alone for %s, want %s", step.after, got, step.want)
		}
	}
	for i := range 100 {
		u.forget(1)
		u.leaveAloneFor("gold", strconv.Itoa(i), replaced, start)
	}
	if len(u.Since) > 3 {
		t.Errorf("%d classes and consumers are remembered for one slice", len(u.Since))
	}
}

func TestMissingCapacityTakesNoGrantForTheGraceOfNodesAfterTheFirstDecision(t *testing.T) {
	start := time.Now()
	g := Grace{Nodes: 2 * time.Minute}
	for _, step := range []struct{ after, want time.Duration }{
		{time.Hour, 2 * time.Minute},
		{time.Hour + time.Minute, time.Minute},
		{time.Hour + 2*time.Minute, 0},
		{2 * time.Hour, 0},
	} {
		g.Begin(start.Add(step.after))
		if got := g.shelterFor(start.Add(step.after)); got != step.want {
			t.Errorf("after %s it takes none for %s, want %s", step.after, got, step.want)
		}
	}
	if got := (*Grace)(nil).shelterFor(start); got != 0 {
		t.Errorf("a rehearsal shelters grants for %s", got)
	}
}
