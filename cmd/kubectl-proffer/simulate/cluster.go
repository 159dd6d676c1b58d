package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
	"proffer.dev/proffer/internal/operator"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/rehearse/world"
)

// observeTimeout bounds the reading of the cluster.
const observeTimeout = 2 * time.Minute

// onCluster rehearses a change on what an operator would evaluate, which the plugin reads with the
// rights of its user.
func (o *simulateOptions) onCluster(ctx context.Context, change *rest.Change) (*rest.Simulation, error) {
	config, err := o.flags.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 50, 100 // A review for each right is one request.
	reviews, err := authorizationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	missing, err := manifests.MissingReads(ctx, reviews.SelfSubjectAccessReviews(), o.flags.Namespace)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("--world=%s: you may not %s: "+
			"ask for these rights, or leave out --world and have the operator evaluate the change",
			worldCluster, manifests.List(missing))
	}
	// Failures of watches end in the timeout; their log is the operator's.
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	reading, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	snapshot, content, err := operator.Observe(reading, config, o.flags.Namespace)
	switch {
	case apimeta.IsNoMatchError(err):
		return nil, errors.New("the API server does not know ResourcePolicies: " +
			"install Proffer's CRDs first, as in: kubectl apply -k config/crd")
	case err != nil:
		return nil, fmt.Errorf("--world=%s: %w", worldCluster, err)
	}
	known := rehearse.Of(snapshot, content)
	known.Now = time.Now()
	of := rest.Evaluated{Revision: snapshot.Revision, Time: snapshot.Time}
	return rehearseOn(ctx, &known, change, of, world.UnknownOfCluster)
}
