package operatorclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"proffer.dev/proffer/api/rest"
)

const (
	// tokenSeconds is the shortest life that the API server gives a token.
	tokenSeconds = 600
	// renewBefore is the time before its end at which a token is replaced.
	renewBefore = time.Minute
	// maxError bounds what is read of an answer that is an error, in bytes.
	maxError = 64 << 10
	// maxAnswer bounds what is decoded of an answer, in bytes: ten times the snapshot of 50,000 pods.
	maxAnswer = 256 << 20
)

// Client asks the operator. It is safe for concurrent use.
type Client struct {
	flags   *Flags
	account Account
	http    *http.Client
	core    corev1client.CoreV1Interface
	// base is the URL of the operator behind the API server's proxy.
	base *url.URL
	// err is why nothing can be asked, nil if it can.
	err error

	mu      sync.Mutex
	token   string
	expires time.Time
}

// Offers returns what each consumer is offered.
func (c *Client) Offers(ctx context.Context) (*rest.Offers, error) {
	return decode[rest.Offers](c.get(ctx, nil, rest.OffersPath))
}

// Consumer returns what one consumer is offered, with its details. The operator also answers for a
// consumer that it does not know.
func (c *Client) Consumer(ctx context.Context, clusterID string) (*rest.Consumer, error) {
	// The cluster ID is one element of the path, whatever is in it.
	return decode[rest.Consumer](c.get(ctx, nil, rest.OffersPath, url.PathEscape(clusterID)))
}

// Overview returns what needs somebody.
func (c *Client) Overview(ctx context.Context) (*rest.Overview, error) {
	return decode[rest.Overview](c.get(ctx, nil, rest.OverviewPath))
}

// Federation returns what the providers of the operator's cluster publish to it.
func (c *Client) Federation(ctx context.Context) (*rest.Federation, error) {
	all := &rest.Federation{}
	for first := true; first || all.Continue != ""; first = false {
		query := url.Values{rest.ScopeParam: {rest.FederationScope}, "continue": {all.Continue}}
		page, err := decode[rest.Federation](c.get(ctx, query, rest.CatalogPath))
		if err != nil {
			return nil, err
		}
		all.Providers, all.Continue = append(all.Providers, page.Providers...), page.Continue
	}
	return all, nil
}

// Snapshot returns the JSON of a rest.World as it arrives. The caller must close it.
func (c *Client) Snapshot(ctx context.Context) (io.ReadCloser, error) {
	return c.get(ctx, nil, rest.SnapshotPath)
}

// World returns the whole snapshot.
func (c *Client) World(ctx context.Context) (*rest.World, error) {
	world, err := decode[rest.World](c.Snapshot(ctx))
	if err != nil {
		return nil, err
	}
	if world.Version != rest.WorldVersion {
		return nil, fmt.Errorf("the operator's snapshot is of format %d, and this plugin reads format %d: "+
			"use the version of the plugin that fits the operator", world.Version, rest.WorldVersion)
	}
	return world, nil
}

// Simulate returns what the change would do. The operator writes nothing.
func (c *Client) Simulate(ctx context.Context, change *rest.Change) (*rest.Simulation, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	if len(body) > rest.MaxChange {
		return nil, fmt.Errorf("the change is %d bytes as JSON, and the operator takes at most %d: "+
			"simulate fewer policies at once", len(body), rest.MaxChange)
	}
	at, header := c.base.JoinPath(rest.SimulatePath), jsonHeader()
	header.Set("Content-Type", "application/json")
	response, err := c.send(ctx, http.MethodPost, at, header, bytes.NewReader(body))
	return decode[rest.Simulation](c.accepted(response, err, http.MethodPost, rest.SimulatePath))
}

// Version returns the version of the operator. An operator that is not ready returns it too.
func (c *Client) Version(ctx context.Context) (string, error) {
	response, err := c.send(ctx, http.MethodGet, c.base.JoinPath(rest.OffersPath), jsonHeader(), http.NoBody)
	if err == nil {
		if version := response.Header.Get(rest.VersionHeader); version != "" {
			return version, response.Body.Close()
		}
	}
	body, err := c.accepted(response, err, http.MethodGet, rest.OffersPath)
	if err != nil {
		return "", err
	}
	tooOld := errors.New("the operator does not report its version: it is too old for this plugin")
	return "", errors.Join(tooOld, body.Close())
}

// get returns the body of the answer for a path, of which errors show the first part.
func (c *Client) get(ctx context.Context, query url.Values, path ...string) (io.ReadCloser, error) {
	at := c.base.JoinPath(path...)
	at.RawQuery = query.Encode()
	response, err := c.send(ctx, http.MethodGet, at, jsonHeader(), http.NoBody)
	return c.accepted(response, err, http.MethodGet, path[0])
}

func jsonHeader() http.Header { return http.Header{"Accept": {"application/json"}} }

// decode decodes an answer, and closes it.
func decode[T any](answer io.ReadCloser, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Close() }()
	into := new(T)
	if err := json.NewDecoder(io.LimitReader(answer, maxAnswer)).Decode(into); err != nil {
		return nil, fmt.Errorf("reading the operator's answer: %w", err)
	}
	return into, nil
}

// accepted returns the body of an answer that is 200, and explains any other. Err is the error of sending the
// request.
func (c *Client) accepted(response *http.Response, err error, method, path string) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxError))
	if err != nil {
		return nil, Explain(err)
	}
	return nil, c.flags.refusal(c.account, method, path, response.StatusCode, response.Header, text)
}

// send sends a request with a token and these headers. The caller must close the body of the answer.
func (c *Client) send(
	ctx context.Context, method string, at *url.URL, header http.Header, body io.Reader,
) (*http.Response, error) {
	token, err := c.validToken(ctx)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, at.String(), body)
	if err != nil {
		return nil, err
	}
	request.Header = header
	request.Header.Set(rest.TokenHeader, token)
	return c.inTime(request)
}

// inTime sends a request, and returns its answer if that begins in time. Where a firewall drops what the
// API server sends to the operator, the API server itself answers only after up to two minutes. The body
// of the answer may take any time.
func (c *Client) inTime(request *http.Request) (*http.Response, error) {
	limit := c.flags.FirstByte
	if request.Method == http.MethodPost {
		limit += 2 * rest.SimulateTimeout // The operator waits for the body, and then computes.
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(limit, func() { cancel(ErrNoAnswer) })
	response, err := c.http.Do(request.WithContext(ctx))
	if began := timer.Stop(); began && err == nil {
		response.Body = &answerBody{response.Body, func() { cancel(nil) }}
		return response, nil
	}
	silent := errors.Is(context.Cause(ctx), ErrNoAnswer) || timedOut(err)
	cancel(nil)
	if err == nil {
		_ = response.Body.Close()
	}
	if silent {
		return nil, c.flags.noAnswer()
	}
	return nil, Explain(err)
}

// timedOut reports whether an error is about an answer that did not come within a time that the caller
// has set. The API server itself was reached.
func timedOut(err error) bool {
	if connecting, ok := errors.AsType[*net.OpError](err); ok && connecting.Op == "dial" {
		return false
	}
	late, ok := errors.AsType[net.Error](err)
	return ok && late.Timeout()
}

// answerBody ends its request when it is closed.
type answerBody struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *answerBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// validToken returns a token that is valid for another minute.
func (c *Client) validToken(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || time.Until(c.expires) > renewBefore {
		return c.token, c.err
	}
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	accounts := c.core.ServiceAccounts(c.flags.Namespace)
	granted, err := accounts.CreateToken(ctx, c.account.Name, request, metav1.CreateOptions{})
	if err != nil {
		return "", c.flags.noToken(c.account, err)
	}
	c.token, c.expires = granted.Status.Token, granted.Status.ExpirationTimestamp.Time
	return c.token, nil
}
