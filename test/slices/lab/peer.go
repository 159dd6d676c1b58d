package lab

import (
	"context"
	"errors"
	"fmt"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication/forge"
	authutils "github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication/utils"
	tenantnamespace "github.com/liqotech/liqo/pkg/tenantNamespace"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Unpeer does what liqoctl unauthenticate does. The consumer must have no slices. It deletes what
// each cluster keeps about the other.
func (c *Cluster) Unpeer(ctx context.Context, provider *Cluster) error {
	atConsumer, atProvider := TenantNamespace(provider.ID), TenantNamespace(c.ID)
	for _, part := range []struct {
		cluster *Cluster
		object  client.Object
	}{
		{c, forge.Identity(forge.ControlPlaneIdentityName(liqov1beta1.ClusterID(provider.ID)), atConsumer)},
		{provider, forge.Tenant(liqov1beta1.ClusterID(c.ID), &atProvider)},
	} {
		if err := part.cluster.Client.Delete(ctx, part.object); err != nil {
			return fmt.Errorf("unpeer %s from %s: %w", c.ID, provider.ID, err)
		}
		err := Await(ctx, "it is gone", func(ctx context.Context) error {
			err := part.cluster.Client.Get(ctx, client.ObjectKeyFromObject(part.object), part.object)
			if err == nil {
				return fmt.Errorf("%s has %T %s", part.cluster.ID, part.object, part.object.GetName())
			}
			return client.IgnoreNotFound(err)
		})
		if err != nil {
			return fmt.Errorf("unpeer %s from %s: %w", c.ID, provider.ID, err)
		}
	}
	// Kubernetes deletes the bindings of the Tenant's roles later. Liqo takes one that exists for its own,
	// so a consumer that peers again before that would be without rights in the end.
	err := Await(ctx, "its RoleBindings are gone", func(ctx context.Context) error {
		left := &rbacv1.RoleBindingList{}
		if err := provider.Client.List(ctx, left, client.InNamespace(atProvider)); err != nil {
			return err
		}
		for i := range left.Items {
			if owner := metav1.GetControllerOf(&left.Items[i]); owner != nil && owner.Kind == "Tenant" {
				return fmt.Errorf("%s has RoleBinding %s", provider.ID, left.Items[i].Name)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("unpeer %s from %s: %w", c.ID, provider.ID, err)
	}
	return nil
}

// Peer makes the cluster a consumer of the provider, as liqoctl authenticate does: it signs a nonce of
// the provider, and each cluster gets objects for the other.
func (c *Cluster) Peer(ctx context.Context, provider *Cluster) error {
	if err := c.peer(ctx, provider); err != nil {
		return fmt.Errorf("peer %s with %s: %w", c.ID, provider.ID, err)
	}
	return nil
}

func (c *Cluster) peer(ctx context.Context, provider *Cluster) error {
	atConsumer, err := c.tenantNamespace(ctx, provider.ID)
	if err != nil {
		return err
	}
	atProvider, err := provider.tenantNamespace(ctx, c.ID)
	if err != nil {
		return err
	}
	signature, err := shakeHands(ctx, c, provider, atConsumer, atProvider)
	if err != nil {
		return err
	}
	tenant, err := authutils.GenerateTenant(ctx, c.Client, liqov1beta1.ClusterID(c.ID), liqoNamespace,
		atProvider, signature, nil)
	if err != nil {
		return err
	}
	if err := provider.Client.Create(ctx, tenant); err != nil {
		return err
	}
	var identity *authv1beta1.Identity
	err = Await(ctx, "the provider gives the tenant a certificate", func(ctx context.Context) (err error) {
		identity, err = authutils.GenerateIdentityControlPlane(ctx, provider.Client,
			liqov1beta1.ClusterID(c.ID), atConsumer, liqov1beta1.ClusterID(provider.ID), &atProvider)
		return err
	})
	if err != nil {
		return err
	}
	if err := c.Client.Create(ctx, identity); err != nil {
		return err
	}
	return Await(ctx, "the consumer has a kubeconfig for the provider", func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(identity), identity); err != nil {
			return err
		}
		if identity.Status.KubeconfigSecretRef == nil {
			return errors.New("the identity names no kubeconfig")
		}
		return nil
	})
}

// shakeHands returns the consumer's signature of the provider's nonce.
func shakeHands(
	ctx context.Context, consumer, provider *Cluster, atConsumer, atProvider string,
) (signature []byte, err error) {
	consumerID, providerID := liqov1beta1.ClusterID(consumer.ID), liqov1beta1.ClusterID(provider.ID)
	if err := authutils.EnsureNonceSecret(ctx, provider.Client, consumerID, atProvider); err != nil {
		return nil, err
	}
	var nonce []byte
	err = Await(ctx, "the provider makes a nonce", func(ctx context.Context) (err error) {
		nonce, err = authutils.RetrieveNonce(ctx, provider.Client, consumerID, atProvider)
		return err
	})
	if err != nil {
		return nil, err
	}
	text := string(nonce)
	if err := authutils.EnsureSignedNonceSecret(ctx, consumer.Client, providerID, atConsumer, &text); err != nil {
		return nil, err
	}
	err = Await(ctx, "the consumer signs the nonce", func(ctx context.Context) (err error) {
		signature, err = authutils.RetrieveSignedNonce(ctx, consumer.Client, providerID, atConsumer)
		return err
	})
	return signature, err
}

// tenantNamespace creates the namespace in which a cluster keeps its objects for a peer, and
// returns its name.
func (c *Cluster) tenantNamespace(ctx context.Context, peer string) (string, error) {
	clientset, err := c.clientset()
	if err != nil {
		return "", err
	}
	ns, err := tenantnamespace.NewManager(clientset, scheme).CreateNamespace(ctx, liqov1beta1.ClusterID(peer))
	if err != nil {
		return "", fmt.Errorf("tenant namespace of %s: %w", peer, err)
	}
	return ns.Name, nil
}

// TenantNamespace returns the namespace in which a cluster keeps its objects for a peer.
func TenantNamespace(peer string) string {
	return tenantnamespace.NewManager(nil, scheme).ForgeNamespace(liqov1beta1.ClusterID(peer), nil).Name
}

// At returns a client for the provider with the rights of the consumer's Liqo there.
func (c *Cluster) At(ctx context.Context, provider *Cluster) (client.Client, error) {
	return c.clientOf(ctx, forge.Identity(forge.ControlPlaneIdentityName(liqov1beta1.ClusterID(provider.ID)),
		TenantNamespace(provider.ID)))
}

// SliceAt returns a client for the provider with the identity of one of the consumer's slices, by
// which Liqo's kubelet sends pods.
func (c *Cluster) SliceAt(ctx context.Context, provider *Cluster, slice string) (client.Client, error) {
	namespace := TenantNamespace(provider.ID)
	identity := forge.ResourceSliceIdentityName(forge.ResourceSlice(slice, namespace))
	return c.clientOf(ctx, forge.Identity(identity, namespace))
}

// clientOf returns a client with the kubeconfig of an identity of the consumer.
func (c *Cluster) clientOf(ctx context.Context, identity *authv1beta1.Identity) (client.Client, error) {
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(identity), identity); err != nil {
		return nil, err
	}
	if identity.Status.KubeconfigSecretRef == nil {
		return nil, fmt.Errorf("identity %s has no kubeconfig yet", identity.Name)
	}
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: identity.Namespace, Name: identity.Status.KubeconfigSecretRef.Name}
	if err := c.Client.Get(ctx, key, &secret); err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[consts.KubeconfigSecretField])
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}
