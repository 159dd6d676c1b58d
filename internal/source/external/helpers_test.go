package external

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/externaltest"
)

// startManager runs a manager until the test ends. Nothing of it may be left then.
func startManager(t *testing.T) *Manager {
	t.Helper()
	return runManager(t, New(func() {}, leads, RemoveAfter, testr.New(t)))
}

// leads stands for a replica that is the leader.
func leads() bool { return true }

// runManager runs it until the test ends. Nothing of it may be left then.
func runManager(t *testing.T, m *Manager) *Manager {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(test.Timeout):
			t.Error("the manager does not end")
		}
	})
	return m
}

// at returns how to reach a monitor of a test.
func at(m *externaltest.Monitor, with ...func(*capacity.Monitor)) capacity.Monitor {
	monitor := capacity.Monitor{Address: m.Address, Timeout: 5 * time.Second}
	for _, f := range with {
		f(&monitor)
	}
	return monitor
}

func inTime(d time.Duration) func(*capacity.Monitor) {
	return func(m *capacity.Monitor) { m.Timeout = d }
}

func ofClass(class string) func(*capacity.Monitor) {
	return func(m *capacity.Monitor) { m.Class = class }
}

// answered returns the amounts that count for a consumer, nil for none.
func answered(a capacity.Answers, id string) capacity.Amounts {
	if of, ok := a.For(id); ok {
		return a.Distinct[of.Index].Amounts
	}
	return nil
}

// awaitAnswer waits until these amounts count for a consumer.
func awaitAnswer(t *testing.T, m *Manager, of capacity.Monitor, id string, want capacity.Amounts) {
	t.Helper()
	test.Eventually(t, func() string { return cmp.Diff(want, answered(m.Answers(of), id)) })
}

// awaitProblem waits until the problem of a monitor has these words.
func awaitProblem(t *testing.T, m *Manager, of capacity.Monitor, words string) {
	t.Helper()
	test.Eventually(t, func() string {
		if p := m.Answers(of).Problem; p == "" && words != "" || !strings.Contains(p, words) {
			return "the problem is " + p
		}
		return ""
	})
}
