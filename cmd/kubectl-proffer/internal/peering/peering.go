// Package peering finds the providers of this cluster, with the rights of the caller.
package peering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/complete"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/source/federation"
)

const (
	// TimeLimit is for everything about one provider, unless --request-timeout sets another.
	TimeLimit = 10 * time.Second
	// Parallel bounds the providers that are asked at a time.
	Parallel = 10
	// listLimit bounds the list of this cluster's identities.
	listLimit = 30 * time.Second
	// maxID bounds what is shown of a cluster ID, in bytes.
	maxID = 63
)

// askForRights ends an error about missing rights.
const askForRights = "docs/reference/commands/catalog.md has the Roles to ask for"

// Client reads this cluster with the rights of the caller.
type Client struct {
	// Objects and Secrets are this cluster's.
	Objects dynamic.Interface
	Secrets corev1client.SecretsGetter
	// Limit is the time limit for one provider.
	Limit time.Duration
}

// Connect returns a client of the cluster that the flags name.
func Connect(flags *operatorclient.Flags) (*Client, error) {
	config, err := flags.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = -1, 0 // A Secret for each provider, and the API server limits requests itself.
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return &Client{objects, core, cmp.Or(config.Timeout, TimeLimit)}, nil
}

// Identities returns the identities at all providers, sorted, or only those at the provider that a flag names.
func (c *Client) Identities(ctx context.Context, flag, provider string) ([]federation.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	list, err := c.Objects.Resource(liqo.Identities).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not list identities.authentication.liqo.io in this cluster: %s", askForRights)
	case apierrors.IsNotFound(err):
		return nil, errors.New("this cluster is no consumer of Liqo v1: " +
			"it has no identities.authentication.liqo.io/v1beta1; choose another with --context or --kubeconfig")
	case err != nil:
		return nil, operatorclient.Explain(err)
	}
	all := federation.Identities(list.Items)
	if provider != "" {
		all = slices.DeleteFunc(all, func(id federation.Identity) bool { return id.Provider != provider })
	}
	if len(all) == 0 && provider != "" {
		return nil, fmt.Errorf("this cluster has no identity at a provider %q: peer with it, or leave --%s out to see all",
			provider, flag)
	}
	return all, nil
}

// Each asks the provider of each identity, and returns the answers in their order. What is wrong with one provider
// must be in its answer, and must not delay the others for longer than the time limit.
func Each[T any](ids []federation.Identity, ask func(federation.Identity) T) []T {
	all := make([]T, len(ids))
	var group errgroup.Group
	group.SetLimit(Parallel)
	for i, id := range ids {
		group.Go(func() error {
			all[i] = ask(id)
			return nil
		})
	}
	_ = group.Wait() // Errors are in the answers.
	return all
}

// Explain explains an error about an identity: if it is of the API server, the caller may not get the Secret.
func Explain(id federation.Identity, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you may not get Secret %s in namespace %s: %s", id.Secret, id.Namespace, askForRights)
	}
	return err
}

// ShownID is a cluster ID that a terminal can show.
func ShownID(id string) string { return output.OneLine(kube.Shorten(id, maxID)) }

// Complete completes the ID of a provider.
func Complete(flags *operatorclient.Flags) cobra.CompletionFunc {
	return complete.Read(func(ctx context.Context) (words []string, err error) {
		c, err := Connect(flags)
		if err != nil {
			return nil, err
		}
		ids, err := c.Identities(ctx, "", "")
		for _, id := range ids {
			words = append(words, ShownID(id.Provider))
		}
		return words, err
	})
}
