package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"proffer.dev/proffer/api/v1alpha1"
)

// watchPolicies returns a channel that receives after a policy or its status was written.
func (c *cluster) watchPolicies(ctx context.Context) (<-chan struct{}, error) {
	informers, err := cache.New(c.config, cache.Options{Scheme: c.client.Scheme(), Mapper: c.client.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("watching policies: %w", err)
	}
	written := make(chan struct{}, 1)
	wake := func() {
		select {
		case written <- struct{}{}:
		default: // The channel holds a value already.
		}
	}
	policies, err := informers.GetInformer(ctx, &v1alpha1.ResourcePolicy{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching policies: %w", err)
	}
	if _, err := policies.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { wake() }, UpdateFunc: func(any, any) { wake() }, DeleteFunc: func(any) { wake() },
	}); err != nil {
		return nil, fmt.Errorf("watching policies: %w", err)
	}
	go func() { _ = informers.Start(ctx) }() // It returns an error only if it was started before.
	return written, nil
}

// policies reads the policies from the API server, not from a cache.
func (c *cluster) policies(ctx context.Context) ([]v1alpha1.ResourcePolicy, error) {
	var list v1alpha1.ResourcePolicyList
	if err := c.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("reading policies: %w", err)
	}
	return list.Items, nil
}

// describing lists Liqo's kinds that describe a consumer, and the field with its ID.
var describing = []struct {
	kind schema.GroupVersionKind
	id   []string
}{
	{foreignClusterKind, []string{"spec", "clusterID"}},
	{
		schema.GroupVersionKind{Group: "discovery.liqo.io", Version: "v1alpha1", Kind: "ForeignCluster"},
		[]string{"spec", "clusterIdentity", "clusterID"},
	},
	{
		schema.GroupVersionKind{Group: "authentication.liqo.io", Version: "v1beta1", Kind: "Tenant"},
		[]string{"spec", "clusterID"},
	},
}

// describedConsumers returns the consumers that objects of Liqo describe, nil without Liqo's kinds.
func (c *cluster) describedConsumers(ctx context.Context) (map[string]bool, error) {
	var ids map[string]bool
	for _, d := range describing {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(d.kind.GroupVersion().WithKind(d.kind.Kind + "List"))
		if err := c.client.List(ctx, &list); err != nil {
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
				continue
			}
			return nil, fmt.Errorf("looking for consumers: %w", err)
		}
		if ids == nil {
			ids = map[string]bool{}
		}
		for i := range list.Items {
			if id, _, _ := unstructured.NestedString(list.Items[i].Object, d.id...); id != "" {
				ids[id] = true
			}
		}
	}
	return ids, nil
}
