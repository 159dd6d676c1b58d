// Package test has what all tests share. It imports only the standard library. test/interop and
// test/slices have their own code for this: they pin the libraries of the Liqo that they test, and must
// not require the operator's module.
package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Timeout is how long Eventually waits. Only a failing test reaches it. After an outage, client-go
// reconnects within a minute.
const Timeout = 90 * time.Second

// leastPause and mostPause bound the time between two attempts of Until.
const leastPause, mostPause = 5 * time.Millisecond, 250 * time.Millisecond

// Must ends the test if err is not nil. It takes a *rapid.T too.
func Must(t interface {
	Helper()
	Fatal(args ...any)
}, err error,
) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Check fails the test if err is not nil, and lets it go on.
func Check(t interface {
	Helper()
	Error(args ...any)
}, err error,
) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Read returns the text of a file.
func Read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	Must(t, err)
	return string(text)
}

// LiveHeap returns the bytes of all objects that are in use. A second collection frees the objects that
// finalizers and pools held.
func LiveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Eventually waits until try returns the zero value: no error, or an empty text, as of a comparison. The
// test fails with the last value of try after Timeout. Cleanups may call Eventually.
func Eventually[T comparable](t testing.TB, try func() T) {
	t.Helper()
	EventuallyWithin(t, Timeout, try)
}

// EventuallyWithin is Eventually with another timeout.
func EventuallyWithin[T comparable](t testing.TB, timeout time.Duration, try func() T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
	defer cancel()
	Must(t, Until(ctx, func(context.Context) error { return failure(try()) }))
}

// Consistently fails the test if try returns anything but the zero value within the duration.
func Consistently[T comparable](t testing.TB, during time.Duration, try func() T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	tick := time.NewTicker(mostPause / 5)
	defer tick.Stop()
	for {
		Must(t, failure(try()))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Pass advances the clock of a synctest bubble, and lets its goroutines act.
func Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Background calls run until the test ends.
func Background(t testing.TB, run func(context.Context) error) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); _ = run(t.Context()) }() // What it does is what the test looks at.
	t.Cleanup(func() { <-done })
}

// failure returns nil for the zero value, and otherwise an error with the value.
func failure[T comparable](value T) error {
	var none T
	if value == none {
		return nil
	}
	if err, ok := any(value).(error); ok {
		return err
	}
	return fmt.Errorf("%v", value)
}

// A Final error ends Until: no further attempt can succeed.
type Final interface {
	error
	Final()
}

// Until calls try until it returns nil or a Final error. Between two attempts it pauses for a tenth of the
// time so far, within bounds: a condition that takes long must not keep an API server busy. When ctx
// ends, Until returns its cause joined with the last error of try that was not caused by the end of ctx.
func Until(ctx context.Context, try func(context.Context) error) error {
	began := time.Now()
	pause := time.NewTimer(0)
	defer pause.Stop()
	var last error
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if final := Final(nil); errors.As(err, &final) {
			return errors.Join(err, last)
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		pause.Reset(min(max(time.Since(began)/10, leastPause), mostPause))
		select {
		case <-pause.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		}
	}
}

// Buffer collects the output of a program. It allows concurrent writes and reads.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
