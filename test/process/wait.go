package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// leastPause and mostPause bound the time between two attempts of Until.
const leastPause, mostPause = 5 * time.Millisecond, 250 * time.Millisecond

// Ready waits until the operator's /healthz and /readyz answer 200. It returns an error if the
// operator or ctx ends first. The operator must have been started with --health-probe-bind-address.
func (p *Process) Ready(ctx context.Context) error {
	return p.Until(ctx, func(ctx context.Context) error {
		for _, path := range []string{"/healthz", "/readyz"} {
			if err := probe(ctx, "http://"+p.Address("health-probe")+path); err != nil {
				return err
			}
		}
		return nil
	})
}

func probe(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}

// Until is the function Until, but also returns when the process ends, with an EndedError.
func (p *Process) Until(ctx context.Context, try func(context.Context) error) error {
	return Until(ctx, func(ctx context.Context) error {
		if err := p.Alive(); err != nil {
			return err
		}
		return try(ctx)
	})
}

// Until calls try until try returns nil or an EndedError. Between two attempts it pauses for a tenth of
// the time so far, within bounds: a condition that takes long must not keep an API server busy. When ctx
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
		if ended := (*EndedError)(nil); errors.As(err, &ended) {
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
