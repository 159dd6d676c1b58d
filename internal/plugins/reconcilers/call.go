package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/plugin"
)

var (
	errUnknownKind = errors.New("the kind is none of Policy, Offer, Grant and Consumer")
	errExited      = errors.New("the call ended its goroutine instead of returning")
)

// panicError is the error of a call that panicked.
type panicError struct{ value, stack string }

func (e *panicError) Error() string { return "panic: " + e.value }

// panicErrorOf returns the error of a panic with this value. Only the function that recovers may call it.
func panicErrorOf(v any) error {
	return &panicError{value: kube.Shorten(fmt.Sprint(v), kube.MaxMessage), stack: kube.Stack()}
}

// call makes one call of the reconciler, and counts and logs how it ends. A call that fails because
// this process stops is no failure.
func (r *Runner) call(ctx context.Context, ref plugin.Reference, f func(context.Context) error) error {
	calling, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r.metrics.began.Store(new(time.Now()))
	err := guard(calling, f)
	r.metrics.began.Store(nil)
	if err != nil && ctx.Err() != nil {
		return err
	}
	r.metrics.count(err)
	r.log(ref, err)
	return err
}

// guard makes a call in a goroutine of its own, which the call may end, and returns its error, a
// panicError for a panic. The text of the error is read here too, because that is also code of the
// plugin.
func guard(ctx context.Context, f func(context.Context) error) error {
	ended := make(chan error, 1)
	go func() {
		err := errExited
		defer func() {
			if v := recover(); v != nil {
				err = panicErrorOf(v)
			}
			ended <- err
		}()
		if failure := f(ctx); failure != nil {
			err = errors.New(kube.Shorten(failure.Error(), kube.MaxMessage))
		} else {
			err = nil
		}
	}()
	return <-ended
}

// log logs a failed call, unless many were logged just now.
func (r *Runner) log(ref plugin.Reference, err error) {
	about := []any{"reconciler", r.metrics.name, "kind", ref.Kind, "key", ref.Key}
	if ref == kept {
		about = []any{"reconciler", r.metrics.name, "method", "Kept"}
	}
	switch panicked, ok := errors.AsType[*panicError](err); {
	case err == nil:
	case ok:
		r.panics.Do(func() {
			r.Log.Error(err, "The reconciler panicked; will retry", append(about, "stack", panicked.stack)...)
		})
	default:
		r.errors.Do(func() {
			r.Log.Error(err, "The reconciler failed; will retry", about...)
		})
	}
}
