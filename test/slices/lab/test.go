package lab

import (
	"context"
	"testing"
	"time"
)

// stepTimeout is how long Eventually waits. Only a failing test reaches it. The longest step is a drain, of
// a minute.
const stepTimeout = 3 * time.Minute

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Eventually waits until try returns nil.
func Eventually(t testing.TB, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	Must(t, Await(ctx, what, try))
}
