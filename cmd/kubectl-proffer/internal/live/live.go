// Package live shows what changes.
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
)

// Period is the time between two reads of --watch.
const Period = 2 * time.Second

// Follow reads again and again, and has each change printed, until the context ends or one of them fails. An operator
// that cannot answer for a while is reported once.
func Follow[T any](
	ctx context.Context, period time.Duration, errOut io.Writer, now T,
	read func(context.Context) (T, error), show func(before, after *T) error,
) error {
	waiting := false
	return wait.PollUntilContextCancel(ctx, period, false, func(ctx context.Context) (done bool, err error) {
		next, err := read(ctx)
		if errors.Is(err, operatorclient.ErrTryAgain) || errors.Is(err, operatorclient.ErrNoAnswer) {
			if !waiting {
				fmt.Fprintln(errOut, "Waiting:", output.Clean(err.Error()))
			}
			waiting = true
			return false, nil
		}
		if err == nil {
			err = show(&now, &next)
		}
		waiting, now = false, next
		return false, err
	})
}

// Compare pairs what two answers list, by key: all that is listed after, then what is gone, each in its order. Absent
// returns what stands for one that is not listed.
func Compare[T any, K comparable](before, after []T, key func(T) K, absent func(T) T) iter.Seq2[T, T] {
	return func(yield func(was, is T) bool) {
		gone := map[K]T{}
		for _, was := range before {
			gone[key(was)] = was
		}
		for _, is := range after {
			was, listed := gone[key(is)]
			if !listed {
				was = absent(is)
			}
			delete(gone, key(is))
			if !yield(was, is) {
				return
			}
		}
		for _, was := range before {
			if _, is := gone[key(was)]; is && !yield(was, absent(was)) {
				return
			}
		}
	}
}

// Change writes a text that changes as "old -> new".
func Change(before, after string) (text string, changed bool) {
	if before == after {
		return after, false
	}
	return cmp.Or(before, output.None) + " -> " + cmp.Or(after, output.None), true
}
