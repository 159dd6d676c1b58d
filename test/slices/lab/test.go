package lab

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Test is the TestMain of a package whose tests share the clusters that start starts within the limit. At the end it
// stops the operators.
func Test(m *testing.M, limit time.Duration, start func(context.Context, *Lab) error) {
	flag.Parse()
	log.SetLogger(logr.Discard()) // controller-runtime warns if no logger is set
	code, err := Run(limit, start, func(ctx context.Context, l *Lab) (int, error) {
		code := m.Run()
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		var err error
		for _, c := range l.clusters {
			if c.operator != nil {
				err = errors.Join(err, c.StopOperator(ctx))
			}
		}
		return code, err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		code = 1
	}
	os.Exit(code)
}

// stopTimeout is the time for the operators to end after the tests.
const stopTimeout = time.Minute

// stepTimeout is how long Eventually and Cleanup wait. Only a failing test reaches it. The longest step is a drain, of
// a minute.
const stepTimeout = 3 * time.Minute

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Check fails the test if err is not nil, and lets it go on.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Cleanup has f undo something when the test ends. The test fails with its error.
func Cleanup(t testing.TB, f func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stepTimeout)
		defer cancel()
		Check(t, f(ctx))
	})
}

// Eventually waits until try returns nil.
func Eventually(t testing.TB, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	Must(t, Await(ctx, what, try))
}
