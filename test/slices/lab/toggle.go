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

// NewToggler returns the token of a new account that may disable and enable the providers of the
// operator's Orchestrations.
func (c *Cluster) NewToggler(t testing.TB) (token string) {
	t.Helper()
	const account = "broker-client"
	for _, args := range [][]string{
		{"-n", OperatorNamespace, "create", "serviceaccount", account},
		{
			"create", "clusterrolebinding", account, "--clusterrole=proffer-toggle",
			"--serviceaccount=" + OperatorNamespace + ":" + account,
		},
		{"-n", OperatorNamespace, "create", "token", account},
	} {
		var err error
		token, err = c.Kubectl(t.Context(), "", args...)
		Must(t, err)
	}
	return strings.TrimSpace(token)
}

// Toggle has the operator disable or enable a provider, as a client of the early broker does, and returns the answer.
func (c *Cluster) Toggle(t testing.TB, token, id string, enable bool) (answer string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	url := fmt.Sprintf("https://%s/api/toggle?id=%s&enable=%t", c.operator.metrics, id, enable)
	Eventually(t, "the change is made", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		if answer = string(text); err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%d %s", response.StatusCode, answer)
		}
		return errors.Join(err, response.Body.Close())
	})
	return answer
}
