package lab

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// NewAccount returns the token of a new account of this name that has a ClusterRole.
func (c *Cluster) NewAccount(t testing.TB, name, role string) (token string) {
	t.Helper()
	for _, args := range [][]string{
		{"-n", OperatorNamespace, "create", "serviceaccount", name},
		{
			"create", "clusterrolebinding", name, "--clusterrole=" + role,
			"--serviceaccount=" + OperatorNamespace + ":" + name,
		},
		{"-n", OperatorNamespace, "create", "token", name},
	} {
		var err error
		token, err = c.Kubectl(t.Context(), "", args...)
		Must(t, err)
	}
	return strings.TrimSpace(token)
}

// Ask sends a request to the operator's HTTP API, and returns the answer if it is 200.
func (c *Cluster) Ask(ctx context.Context, token, method, path string) (string, error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, method, "https://"+c.Address()+path, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", response.StatusCode, text)
	}
	return string(text), errors.Join(err, response.Body.Close())
}

// NewToggler returns the token of a new account that may disable and enable the providers of the
// operator's Orchestrations.
func (c *Cluster) NewToggler(t testing.TB) (token string) {
	return c.NewAccount(t, "toggler", "proffer-toggle")
}

// Toggle has the operator disable or enable a provider, as a client of the early broker does, and returns the answer.
func (c *Cluster) Toggle(t testing.TB, token, id string, enable bool) (answer string) {
	t.Helper()
	Eventually(t, "the change is made", func(ctx context.Context) (err error) {
		answer, err = c.Ask(ctx, token, http.MethodPost, fmt.Sprintf("/api/toggle?id=%s&enable=%t", id, enable))
		return err
	})
	return answer
}
