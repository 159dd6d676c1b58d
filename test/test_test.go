package test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestWaitingEndsWithItsContextAndReturnsTheLastError(t *testing.T) {
	missing := errors.New("2 of 3 pods")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := Until(ctx, func(ctx context.Context) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return missing
	})
	if !errors.Is(err, missing) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline and the error %q", err, missing)
	}
}

// recorder is a test whose Fatal ends only the function that failureOf calls.
type recorder struct {
	testing.TB
	message string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatal(args ...any) {
	r.message = fmt.Sprint(args...)
	runtime.Goexit()
}

func failureOf(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	var wg sync.WaitGroup
	wg.Go(func() { f(r) })
	wg.Wait()
	return r.message
}

func TestAFailureShowsTheErrorOrTheDifference(t *testing.T) {
	const short = 10 * time.Millisecond
	late := context.DeadlineExceeded.Error() + "\n"
	attempts := 0
	for name, c := range map[string]struct {
		do   func(testing.TB)
		want string
	}{
		"no error":             {func(t testing.TB) { Must(t, nil) }, ""},
		"an error":             {func(t testing.TB) { Must(t, errors.New("no file")) }, "no file"},
		"at the third attempt": {func(t testing.TB) { Eventually(t, func() bool { attempts++; return attempts < 3 }) }, ""},
		"never, with an error": {func(t testing.TB) {
			EventuallyWithin(t, short, func() error { return errors.New("no pods") })
		}, late + "no pods"},
		"never, with a difference": {func(t testing.TB) { EventuallyWithin(t, short, func() string { return "- a" }) }, late + "- a"},
		"always":                   {func(t testing.TB) { Consistently(t, short, func() error { return nil }) }, ""},
		"not always":               {func(t testing.TB) { Consistently(t, time.Hour, func() string { return "- a" }) }, "- a"},
	} {
		if got := failureOf(t, c.do); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
