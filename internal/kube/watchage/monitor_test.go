package watchage

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"proffer.dev/proffer/test"
)

const pods = "/api/v1/pods?watch=true"

// server answers every request with the same status. A response lasts until its request is
// cancelled or the test closes it.
type server struct {
	status int
	// silent keeps the server from sending even the header of a response.
	silent bool
	// responses are the bodies of all responses that have begun.
	responses []*io.PipeWriter
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.silent {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	reader, writer := io.Pipe()
	s.responses = append(s.responses, writer)
	context.AfterFunc(r.Context(), func() { _ = writer.CloseWithError(r.Context().Err()) })
	return &http.Response{StatusCode: s.status, Body: reader}, nil
}

// write sends more of the last response.
func (s *server) write(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(s.responses[len(s.responses)-1], text); err != nil {
		t.Fatal(err)
	}
}

// client is a process with one Monitor, in a synctest bubble.
type client struct {
	*Monitor
	t      *testing.T
	server *server
}

func newClient(t *testing.T) *client {
	t.Helper()
	return &client{Monitor: New(logr.Discard()), t: t, server: &server{status: http.StatusOK}}
}

// get sends a request and reads its response to the end. Then the channel receives the error.
func (c *client) get(ctx context.Context, url string) <-chan error {
	c.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://10.0.0.1"+url, nil)
	test.Must(c.t, err)
	ended := make(chan error, 1)
	go func() {
		response, err := c.Wrap(c.server).RoundTrip(request)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			err = errors.Join(err, response.Body.Close())
		}
		ended <- err
	}()
	synctest.Wait()
	return ended
}

func (c *client) wants(when string, want map[string]time.Duration) {
	c.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, c.ages()); diff != "" {
		c.t.Errorf("ages %s (-want +got):\n%s", when, diff)
	}
}

func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // the clock of the bubble

func TestEventsAndAcceptedWatchesResetTheAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		ctx, stop := context.WithCancel(t.Context())
		c.wants("before any watch", map[string]time.Duration{})
		ended := c.get(ctx, pods)
		pass(time.Minute)
		c.wants("a minute after the watch began", map[string]time.Duration{"pods": time.Minute})
		c.server.write(t, "bookmark")
		c.wants("after an event", map[string]time.Duration{"pods": 0})
		pass(time.Minute)

		_ = c.server.responses[0].Close()
		if err := <-ended; err != nil {
			t.Errorf("the watch ended with %v", err)
		}
		pass(10 * time.Minute)
		c.wants("while the watch is not replaced", map[string]time.Duration{"pods": 11 * time.Minute})
		c.server.status = http.StatusForbidden
		_ = c.get(ctx, pods)
		c.wants("after a watch that was refused", map[string]time.Duration{"pods": 11 * time.Minute})
		c.server.status = http.StatusOK
		_ = c.get(ctx, pods)
		c.wants("after a new watch", map[string]time.Duration{"pods": 0})
		stop()
		c.wants("after the informer was stopped", map[string]time.Duration{})
	})
}

func TestAWatchStoppedBetweenTwoRequestsIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := c.get(ctx, "/apis/authentication.liqo.io/v1beta1/tenants?watch=1")
		_ = c.server.responses[0].Close()
		<-ended //nolint:errcheck // the error of the response does not matter
		pass(time.Minute)
		c.wants("between two requests", map[string]time.Duration{"tenants.authentication.liqo.io": time.Minute})
		stop()
		c.wants("after the informer was stopped", map[string]time.Duration{})
	})
}

func TestAWatchThatWasNeverAcceptedAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		c.server.status = http.StatusForbidden
		for range 4 {
			_ = c.get(t.Context(), pods)
			pass(time.Minute)
		}
		c.wants("four minutes after the first request", map[string]time.Duration{"pods": 4 * time.Minute})
	})
}

func TestTheOldestWatchOfAResourceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		crds := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?watch=true&fieldSelector=metadata.name%3D"
		_ = c.get(t.Context(), crds+"a")
		pass(time.Minute)
		_ = c.get(t.Context(), crds+"b")
		_ = c.get(t.Context(), "/apis/proffer.dev/v1alpha1/namespaces/proffer-system/grants?watch=true")
		_ = c.get(t.Context(), "/k8s/clusters/c-1/api/v1/nodes?watch=true")
		list := "/apis/proffer.dev/v1alpha1/resourcepolicies"
		_ = c.get(t.Context(), list)
		c.wants("after a minute", map[string]time.Duration{
			"customresourcedefinitions.apiextensions.k8s.io": time.Minute, "grants.proffer.dev": 0, "nodes": 0,
		})
		if resource, age := c.Oldest(); resource != "customresourcedefinitions.apiextensions.k8s.io" || age != time.Minute {
			t.Errorf("the oldest watch is of %s, %v old", resource, age)
		}
		c.server.write(t, " ") // The last response is that of the list.
		test.Check(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP proffer_watch_oldest_news_seconds Seconds since the last sign of life of the watch that has been silent for longest: an event, a bookmark, or its start. The API server sends a bookmark about every 60 s.
# TYPE proffer_watch_oldest_news_seconds gauge
proffer_watch_oldest_news_seconds 60
`), "proffer_watch_oldest_news_seconds"))
		if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
			t.Errorf("metrics: %v, %v", problems, err)
		}
	})
}

func TestASilentResponseIsCancelled(t *testing.T) {
	for name, tc := range map[string]struct {
		url    string
		silent bool
	}{
		"a watch":                    {pods, false},
		"a watch, before its header": {pods, true},
		"a list":                     {"/api/v1/pods", false},
		"a list, before its header":  {"/api/v1/pods", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t)
				c.server.silent = tc.silent
				start := time.Now()
				ended := c.get(t.Context(), tc.url)
				want := SilenceLimit
				if !tc.silent {
					// While data arrives in time, a response may last for any time.
					for range 5 {
						pass(SilenceLimit - time.Second)
						c.server.write(t, "event")
						want += SilenceLimit - time.Second
					}
				}
				err := <-ended
				if took := time.Since(start); took != want {
					t.Errorf("cancelled after %v, want %v", took, want)
				}
				if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
					t.Errorf("the request ended with %v, want a timeout", err)
				}
				if got := testutil.ToFloat64(c.silent); got != 1 {
					t.Errorf("%v cancelled requests counted, want 1", got)
				}
			})
		})
	}
}

func TestAResponseThatEndedIsNotCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := c.get(ctx, pods)
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the request ended with %v", err)
		}
		pass(2 * SilenceLimit)
		if got := testutil.ToFloat64(c.silent); got != 0 {
			t.Errorf("%v cancelled requests counted, want 0", got)
		}
	})
}

func TestAReplicaIsNotReadyWhileAnyWatchIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		var (
			mu     sync.Mutex
			logged []string
		)
		c.log = funcr.New(func(_, args string) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, args)
		}, funcr.Options{})
		running, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Start(running) }()
		wants := func(when string, ready bool, lines int) {
			t.Helper()
			synctest.Wait()
			if err := c.Check(nil); (err == nil) != ready {
				t.Errorf("%s: Check returned %v", when, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(logged) != lines {
				t.Errorf("%s: %d lines logged, want %d: %q", when, len(logged), lines, logged)
			}
		}
		_ = c.get(t.Context(), "/api/v1/nodes?watch=true")
		_ = c.server.responses[0].Close()
		_ = c.get(t.Context(), pods)
		pass(StaleAfter)
		_ = c.get(t.Context(), pods)
		wants("at the limit", true, 0)
		pass(time.Minute)
		wants("past the limit", false, 1)
		if err := c.Check(nil); err == nil || !strings.Contains(err.Error(), "the watch of nodes for 4m0s") {
			t.Errorf("Check returned %v", err)
		}
		_ = c.get(t.Context(), "/api/v1/nodes?watch=true")
		pass(checkInterval)
		wants("after a new watch", true, 2)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Start returned %v", err)
		}
	})
}
