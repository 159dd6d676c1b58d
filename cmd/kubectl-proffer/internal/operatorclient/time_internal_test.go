package operatorclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"proffer.dev/proffer/test"
)

// slowServer answers after a while, unless its caller is gone.
type slowServer time.Duration

// RoundTrip implements http.RoundTripper.
func (after slowServer) RoundTrip(r *http.Request) (*http.Response, error) {
	timer := time.NewTimer(time.Duration(after))
	select {
	case <-timer.C:
		body := &slowBody{ctx: r.Context(), text: strings.NewReader("{}")}
		return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
}

// slowBody takes an hour, unless its request has ended.
type slowBody struct {
	ctx  context.Context
	text io.Reader
}

// Read implements io.Reader.
func (b *slowBody) Read(p []byte) (int, error) {
	timer := time.NewTimer(time.Hour)
	select {
	case <-timer.C:
		return b.text.Read(p)
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}

// Close implements io.Closer.
func (b *slowBody) Close() error { return nil }

func TestAnAnswerHasToBeginInTimeAndMayBeLong(t *testing.T) {
	for _, tc := range []struct {
		method       string
		takes, limit time.Duration
	}{
		{http.MethodGet, 9 * time.Second, 10 * time.Second},
		{http.MethodGet, 11 * time.Second, 10 * time.Second},
		// The operator reads a simulation for 20 s, and computes for 20 s.
		{http.MethodPost, 49 * time.Second, 50 * time.Second},
		{http.MethodPost, 51 * time.Second, 50 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &Client{flags: NewFlags(genericclioptions.NewConfigFlags(false)), http: &http.Client{Transport: slowServer(tc.takes)}}
			request, err := http.NewRequestWithContext(t.Context(), tc.method, "https://example.com/", http.NoBody)
			test.Must(t, err)
			start := time.Now()
			response, err := c.inTime(request)
			if took := time.Since(start); took != min(tc.takes, tc.limit) {
				t.Errorf("%s ends after %v", tc.method, took)
			}
			if late := tc.takes > tc.limit; errors.Is(err, ErrNoAnswer) != late || late != (err != nil) {
				t.Errorf("%s that takes %v: %v", tc.method, tc.takes, err)
			}
			if err != nil {
				return
			}
			if text, err := io.ReadAll(response.Body); err != nil || string(text) != "{}" {
				t.Errorf("%s: %q, %v", tc.method, text, err)
			}
			if err := response.Body.Close(); err != nil || response.Body.(*answerBody).ReadCloser.(*slowBody).ctx.Err() == nil {
				t.Errorf("the request outlives its answer: %v", err)
			}
		})
	}
}
