package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/internal/kube"
)

// The bounds of what one provider can take of the command.
const (
	// timeLimit is for everything about one provider, unless --request-timeout sets another.
	timeLimit = 10 * time.Second
	// parallel bounds the providers that are asked at a time.
	parallel = 10
	// maxOffers bounds the Offers of a provider that are read.
	maxOffers = 200
	// maxAnswer bounds an answer, and maxOffer one Offer in it, in bytes of JSON.
	maxAnswer = 4 << 20
	maxOffer  = 128 << 10
	// maxRefusal bounds what is read of an answer that is an error, in bytes.
	maxRefusal = 64 << 10
	// maxProblem bounds what is shown of a provider's error, in bytes.
	maxProblem = 300
)

// askAll asks the provider of each identity, with a time limit for each one. The result has their
// order. What is wrong with one provider is in its result, and does not delay the others for longer
// than its time limit.
func (c *consumer) askAll(ctx context.Context, ids []identity, limit time.Duration, now func() time.Time) []Provider {
	all := make([]Provider, len(ids))
	several := map[string]int{}
	for _, id := range ids {
		several[id.provider]++
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, id := range ids {
		all[i] = Provider{ClusterID: tidy(id.provider, maxID), Offers: []Entry{}}
		if several[id.provider] > 1 {
			all[i].problem("namespace %s has one of %d identities for it, and Liqo uses none of them",
				id.namespace, several[id.provider])
			continue
		}
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			err := c.ask(ctx, id, &all[i], now)
			if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				err = fmt.Errorf("it does not answer within %s", limit)
			}
			if err != nil {
				all[i].problem("%v", err)
			}
			return nil
		})
	}
	_ = group.Wait() // Errors are in the results.
	return all
}

// problem adds what is wrong, in one line. A part of it may be the provider's.
func (p *Provider) problem(format string, args ...any) {
	p.Problems = append(p.Problems, tidy(fmt.Sprintf(format, args...), maxProblem))
}

// ask reads the Offers of one provider into the result. The error is about all of them.
func (c *consumer) ask(ctx context.Context, id identity, into *Provider, now func() time.Time) error {
	at, namespace, err := c.connect(ctx, id)
	if err != nil {
		return err
	}
	answer, err := at.get(ctx, namespace)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }()
	return into.read(answer, now)
}

// get returns the body of the answer. The caller must close it.
func (c *providerConnection) get(ctx context.Context, namespace string) (io.ReadCloser, error) {
	version := v1alpha1.GroupVersion
	url := c.server.JoinPath("apis", version.Group, version.Version, "namespaces", namespace, "offers")
	url.RawQuery = "limit=" + strconv.Itoa(maxOffers+1)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "kubectl-proffer")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		// The cause has neither the method nor the URL.
		return nil, fmt.Errorf("it cannot be reached: %w", cmp.Or(errors.Unwrap(err), err))
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer func() { _ = response.Body.Close() }()
	return nil, refusal(response)
}

// refusal explains an answer that is not 200.
func refusal(response *http.Response) error {
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized:
		return errors.New("it does not accept the identity of this cluster: " +
			"its certificate may have expired, or the peering is over")
	case code == http.StatusForbidden, code == http.StatusNotFound:
		return errors.New("it publishes no catalog to this cluster")
	case code >= 300 && code < 400:
		return fmt.Errorf("it answers %d, a redirect, which is not followed", code)
	default:
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // What was read is enough.
		if status := (&metav1.Status{}); json.Unmarshal(text, status) == nil && status.Message != "" {
			text = []byte(status.Message)
		}
		return fmt.Errorf("it answers %d: %s", code, text)
	}
}

// tidy makes a text of a stranger one line that a terminal can show, cut to this many bytes.
func tidy(text string, most int) string { return output.OneLine(kube.Shorten(text, most)) }
