package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"proffer.dev/proffer/internal/source/consumers"
	"proffer.dev/proffer/internal/toggle"
	"proffer.dev/proffer/internal/web"
)

// callerTimeout bounds how long a change waits for the name of its caller.
const callerTimeout = 5 * time.Second

// newToggling returns what disables and enables providers: every replica does it.
func newToggling(config *rest.Config, clusters *consumers.Lister, o *Options, log logr.Logger) (web.Toggling, error) {
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return web.Toggling{}, fmt.Errorf("making a client for Orchestrations: %w", err)
	}
	reviews, err := authentication.NewForConfig(config)
	if err != nil {
		return web.Toggling{}, fmt.Errorf("making a client for reviews: %w", err)
	}
	peers := func(ctx context.Context) (map[string]bool, error) {
		list, err := clusters.List(ctx)
		if err != nil {
			return nil, err
		}
		return list.IDs(), nil
	}
	return web.Toggling{LegacyGET: o.LegacyToggle, Toggler: toggle.New(toggle.Config{
		Client: api, Peers: peers, Caller: callerOf(reviews), Log: log,
	})}, nil
}

// callerOf returns a function that names the caller of a request that has been authorized.
func callerOf(api authentication.TokenReviewsGetter) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		text, _ := ctx.Value(token{}).(string)
		if text == "" {
			return "", errors.New("there is no bearer token in the header Authorization")
		}
		ctx, cancel := context.WithTimeout(ctx, callerTimeout)
		defer cancel()
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: text}}
		review, err := api.TokenReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && !review.Status.Authenticated {
			err = fmt.Errorf("the token is not valid: %s", review.Status.Error)
		}
		if err != nil {
			return "", fmt.Errorf("reviewing the token: %w", err)
		}
		return review.Status.User.Username, nil
	}
}
