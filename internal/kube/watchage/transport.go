package watchage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// errSilent is the cause of a request that this package cancelled. As a net.Error it is a timeout,
// so clients retry.
var errSilent error = silenceError{}

// silenceError is a net.Error.
type silenceError struct{}

func (silenceError) Error() string {
	return fmt.Sprintf("the API server was silent for %v", SilenceLimit)
}
func (silenceError) Timeout() bool   { return true }
func (silenceError) Temporary() bool { return true }

// Wrap returns a transport over next that records the signs of life of watches, and cancels each
// request whose response is silent for SilenceLimit. It is for rest.Config.Wrap.
func (m *Monitor) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{monitor: m, next: next}
}

type transport struct {
	monitor *Monitor
	next    http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport below, see
// k8s.io/apimachinery/pkg/util/net.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	var w *watch
	if isWatch(request) {
		w = t.monitor.begin(request)
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(SilenceLimit, func() {
		if ctx.Err() == nil {
			t.monitor.silent.Inc()
			cancel(errSilent)
		}
	})
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		timer.Stop()
		err = because(ctx, err)
		cancel(nil)
		return nil, err
	}
	timer.Reset(SilenceLimit)
	if w != nil && response.StatusCode == http.StatusOK {
		w.alive()
	}
	response.Body = &body{ReadCloser: response.Body, ctx: ctx, cancel: cancel, timer: timer, watch: w}
	return response, nil
}

// because replaces the error of a request that was cancelled for its silence.
func because(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// body is a response that is being read.
type body struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	// watch is nil for the response to another request.
	watch *watch
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.timer.Reset(SilenceLimit)
		if b.watch != nil {
			b.watch.alive()
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = because(b.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}

func isWatch(request *http.Request) bool {
	if request.Method != http.MethodGet {
		return false
	}
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// resourceOf returns the resource of a collection's path, with its group as in the name of a
// CustomResourceDefinition: pods, or tenants.authentication.liqo.io. The address of the API server
// may have a path of its own in front.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	resource := parts[len(parts)-1]
	// ... apis GROUP VERSION [namespaces NAMESPACE] RESOURCE
	for _, back := range []int{4, 6} {
		if at := len(parts) - back; at >= 0 && parts[at] == "apis" {
			return resource + "." + parts[at+1]
		}
	}
	return resource
}
