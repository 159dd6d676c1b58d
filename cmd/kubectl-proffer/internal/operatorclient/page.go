package operatorclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
)

// PageRequest is a request for a page of the operator, or for a file of a page.
type PageRequest struct {
	Method string
	// Path is escaped, and Query encoded.
	Path, Query string
	Header      http.Header
	Body        io.Reader
}

// FirstClient returns a client of the first account of which the caller may create a token, and the
// account. It creates the token.
func (f *Flags) FirstClient(ctx context.Context, accounts ...Account) (client *Client, account Account, err error) {
	for _, account = range accounts {
		client = f.Client(account)
		if _, err = client.validToken(ctx); !errors.Is(err, ErrNoRight) {
			break
		}
	}
	return client, account, err
}

// Page returns the operator's answer to a request for a page, whatever its status. The caller must
// close its body. An answer of anybody else is an error that explains it.
func (c *Client) Page(ctx context.Context, page *PageRequest) (*http.Response, error) {
	at := c.base.JoinPath(page.Path)
	at.RawQuery = page.Query
	response, err := c.send(ctx, page.Method, at, page.Header, page.Body)
	// The operator's own refusals are pages. Those of the API server are not.
	if err == nil && (response.StatusCode < http.StatusBadRequest ||
		strings.HasPrefix(response.Header.Get("Content-Type"), "text/html")) {
		return response, nil
	}
	_, err = c.accepted(response, err, page.Method, page.Path)
	return nil, err
}
