package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clientrest "k8s.io/client-go/rest"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/source/federation"
)

const (
	// timeLimit is for everything about one provider, unless --request-timeout sets another.
	timeLimit = 10 * time.Second
	// parallel bounds the providers that are asked at a time.
	parallel = 10
	// maxID bounds what is shown of a cluster ID, in bytes.
	maxID = 63
)

// askForRights ends an error about missing rights.
const askForRights = "docs/reference/commands/catalog.md has the Roles to ask for"

// consumer reads this cluster with the rights of the caller.
type consumer struct {
	objects dynamic.Interface
	core    corev1client.CoreV1Interface
}

func newConsumer(config *clientrest.Config) (*consumer, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	core, err := corev1client.NewForConfig(config)
	return &consumer{objects, core}, err
}

// identities returns the identities at all providers, sorted, or only those at one provider.
func (c *consumer) identities(ctx context.Context, provider string) ([]federation.Identity, error) {
	list, err := c.objects.Resource(liqo.Identities).List(ctx, metav1.ListOptions{})
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
		return nil, fmt.Errorf(
			"this cluster has no identity at a provider %q: peer with it, or leave --provider out to see all", provider)
	}
	return all, nil
}

// askAll asks the provider of each identity, with a time limit for each one. The result has their
// order. What is wrong with one provider is in its result, and does not delay the others for longer
// than its time limit.
func (c *consumer) askAll(
	ctx context.Context, ids []federation.Identity, limit time.Duration, now func() time.Time,
) []rest.FederationProvider {
	all := make([]rest.FederationProvider, len(ids))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, id := range ids {
		group.Go(func() error {
			read, err := federation.Ask(ctx, id, c.core, limit, now)
			if apierrors.IsForbidden(err) {
				err = fmt.Errorf("you may not get Secret %s in namespace %s: %s", id.Secret, id.Namespace, askForRights)
			}
			if err != nil {
				read.Problem(err)
			}
			all[i] = rest.FederationProvider{
				ClusterID: shownID(id.Provider), Publishes: err == nil, Offers: read.Offers, Problems: read.Problems,
			}
			return nil
		})
	}
	_ = group.Wait() // Errors are in the results.
	return all
}

// shownID is a cluster ID that a terminal can show.
func shownID(id string) string { return output.OneLine(kube.Shorten(id, maxID)) }
