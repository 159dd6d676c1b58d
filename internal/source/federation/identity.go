package federation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
)

// What Liqo v1.2.0 keeps for each provider: pkg/liqo-controller-manager/authentication.
const (
	// controlPlane is the type of the identity with which Liqo's crd-replicator writes at the provider.
	// Identities of the other type, those of ResourceSlices, may do less.
	controlPlane = "ControlPlane"
	// kubeconfigKey is the key of the Secret of an identity.
	kubeconfigKey = "kubeconfig"
	// awsKey is in the Secret of an identity of AWS, whose kubeconfig has no credentials.
	awsKey = "awsAccessKeyID"
)

// Identity is this cluster's identity at one provider.
type Identity struct {
	// Provider is a cluster ID.
	Provider string
	// Namespace and Secret name the Secret with the kubeconfig. Secret is empty until Liqo has written it.
	Namespace, Secret string
	// number counts the identities at the provider. Of several, Liqo uses none.
	number int
}

// identityOf reads an Identity of Liqo. It returns false for one that cannot read Offers.
func identityOf(u *unstructured.Unstructured) (id Identity, ok bool) {
	secret := kube.Text(u, "status", "kubeconfigSecretRef", "name")
	id = Identity{Provider: kube.Text(u, "spec", "clusterID"), Namespace: u.GetNamespace(), Secret: secret}
	return id, kube.Text(u, "spec", "type") == controlPlane
}

// Identities returns those of these Identities of Liqo that can read Offers, sorted by provider, then by namespace.
func Identities(objects []unstructured.Unstructured) (all []Identity) {
	for i := range objects {
		if id, ok := identityOf(&objects[i]); ok {
			all = append(all, id)
		}
	}
	sortIdentities(all)
	return all
}

// sortIdentities sorts all identities of this cluster by provider, then by namespace.
func sortIdentities(all []Identity) {
	at := map[string]int{}
	for _, id := range all {
		at[id.Provider]++
	}
	for i := range all {
		all[i].number = at[all[i].Provider]
	}
	slices.SortFunc(all, func(a, b Identity) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Namespace, b.Namespace))
	})
}

// Connect returns the connection to the provider of an identity that Identities returned. An error of the API server
// about the Secret is wrapped.
func (id Identity) Connect(ctx context.Context, secrets corev1client.SecretsGetter) (*Connection, error) {
	if id.number > 1 {
		return nil, fmt.Errorf("namespace %s has one of %d identities for it, and Liqo uses none of them",
			id.Namespace, id.number)
	}
	if len(validation.IsDNS1123Label(id.Provider)) > 0 {
		return nil, errors.New("its cluster ID is not one of Liqo v1")
	}
	if id.Secret == "" {
		return nil, errors.New("Liqo has not written its kubeconfig yet") //nolint:staticcheck // Liqo is a name.
	}
	secret, err := secrets.Secrets(id.Namespace).Get(ctx, id.Secret, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s in namespace %s: %w", id.Secret, id.Namespace, err)
	}
	namespace := secret.Annotations[liqo.RemoteTenantNamespaceAnnotation]
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return nil, fmt.Errorf("its Secret %s has no tenant namespace in annotation %s",
			id.Secret, liqo.RemoteTenantNamespaceAnnotation)
	}
	if _, aws := secret.Data[awsKey]; aws {
		return nil, errors.New("its identity is one of AWS IAM, which cannot be used")
	}
	return connect(secret.Data[kubeconfigKey], namespace)
}
