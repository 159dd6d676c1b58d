package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clientrest "k8s.io/client-go/rest"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
)

// What Liqo v1.2.0 keeps for each provider: pkg/liqo-controller-manager/authentication.
const (
	// controlPlane is the type of the identity with which Liqo's crd-replicator writes at the provider.
	controlPlane = "ControlPlane"
	// kubeconfigKey is the key of the Secret of an identity.
	kubeconfigKey = "kubeconfig"
	// awsKey is in the Secret of an identity of AWS, whose kubeconfig has no credentials.
	awsKey = "awsAccessKeyID"
)

// identity is this cluster's identity at one provider.
type identity struct {
	provider string
	// namespace and secret name the Secret with the kubeconfig. The name is empty until Liqo has written
	// the Secret.
	namespace, secret string
}

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

// identities returns the identity at each provider, by cluster ID, or only the identities at one
// provider. A provider with several, of which Liqo uses none, is listed once for each.
func (c *consumer) identities(ctx context.Context, provider string) ([]identity, error) {
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
	var all []identity
	for i := range list.Items {
		u := &list.Items[i]
		secret := kube.Text(u, "status", "kubeconfigSecretRef", "name")
		one := identity{kube.Text(u, "spec", "clusterID"), u.GetNamespace(), secret}
		// Identities of the other type, those of ResourceSlices, may do less.
		if kube.Text(u, "spec", "type") == controlPlane && (provider == "" || one.provider == provider) {
			all = append(all, one)
		}
	}
	if len(all) == 0 && provider != "" {
		return nil, fmt.Errorf(
			"this cluster has no identity at a provider %q: peer with it, or leave --provider out to see all", provider)
	}
	slices.SortFunc(all, func(a, b identity) int {
		return cmp.Or(cmp.Compare(a.provider, b.provider), cmp.Compare(a.namespace, b.namespace))
	})
	return all, nil
}

// askForRights ends an error about missing rights.
const askForRights = "docs/reference/commands/catalog.md has the Roles to ask for"

// connect returns the connection of an identity, and the tenant namespace at its provider.
func (c *consumer) connect(ctx context.Context, id identity) (at *providerConnection, namespace string, err error) {
	if len(validation.IsDNS1123Label(id.provider)) > 0 {
		return nil, "", errors.New("its cluster ID is not one of Liqo v1")
	}
	if id.secret == "" {
		return nil, "", errors.New("Liqo has not written its kubeconfig yet") //nolint:staticcheck // Liqo is a name.
	}
	secret, err := c.core.Secrets(id.namespace).Get(ctx, id.secret, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, "", fmt.Errorf("you may not get Secret %s in namespace %s: %s", id.secret, id.namespace, askForRights)
	case err != nil:
		return nil, "", fmt.Errorf("reading Secret %s in namespace %s: %w", id.secret, id.namespace, err)
	}
	namespace = secret.Annotations[liqo.RemoteTenantNamespaceAnnotation]
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return nil, "", fmt.Errorf("its Secret %s has no tenant namespace in annotation %s",
			id.secret, liqo.RemoteTenantNamespaceAnnotation)
	}
	if _, aws := secret.Data[awsKey]; aws {
		return nil, "", errors.New("its identity is one of AWS IAM, which this command cannot use")
	}
	at, err = connect(secret.Data[kubeconfigKey])
	return at, namespace, err
}
