// Package broker runs a broker with the real Liqo v1.2.0 on one machine: rome is a consumer of milan,
// and milan of oslo and paris. Each cluster has Liqo's controllers, webhook, crd-replicator and virtual
// kubelets, a kube-scheduler, and nodes that KWOK plays. The operator runs on milan, oslo and paris.
package broker

import (
	"context"
	"embed"
	"fmt"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication/forge"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

//go:embed manifests/*.yaml
var manifests embed.FS

//go:embed tour.txt
var text string

// Tour is the lab for a person.
var Tour = lab.Tour{Text: text, Start: func(ctx context.Context, l *lab.Lab) error {
	_, err := Start(ctx, l)
	return err
}}

// The classes of the manifests.
const (
	providerClass = "gold"
	brokerClass   = "pooled"
)

// Lab is four clusters.
type Lab struct {
	*lab.Lab
	Rome, Milan, Oslo, Paris *lab.Cluster
}

// Providers returns the providers of the broker.
func (l *Lab) Providers() []*lab.Cluster { return []*lab.Cluster{l.Oslo, l.Paris} }

// Start starts the clusters, applies the manifests, and returns once each virtual node is ready. Pods run
// until ctx ends.
func Start(ctx context.Context, all *lab.Lab) (*Lab, error) {
	const nodes = 2
	clusters, err := all.Start(ctx, nodes, "rome", "milan", "oslo", "paris")
	if err != nil {
		return nil, err
	}
	l := &Lab{Lab: all, Rome: clusters[0], Milan: clusters[1], Oslo: clusters[2], Paris: clusters[3]}
	var group errgroup.Group
	for _, pair := range [][2]*lab.Cluster{{l.Rome, l.Milan}, {l.Milan, l.Oslo}, {l.Milan, l.Paris}} {
		group.Go(func() error { return pair[0].Peer(ctx, pair[1]) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintln(l.Progress, "lab: rome is peered with milan, and milan with oslo and paris")
	if err := allowTwoHops(ctx, l.Milan); err != nil {
		return nil, err
	}
	for _, provider := range l.Providers() {
		if err := runOperator(ctx, provider, "provider", "catalog"); err != nil {
			return nil, err
		}
		if err := requestSlice(ctx, l.Milan, provider, "from-"+provider.ID, providerClass, "10"); err != nil {
			return nil, err
		}
	}
	if err := letRead(ctx, l.Milan); err != nil {
		return nil, err
	}
	components := []string{"orchestrator", "federation", "provider-guard", "slice-pod-guard"}
	if err := runOperator(ctx, l.Milan, "broker", components...); err != nil {
		return nil, err
	}
	if err := requestSlice(ctx, l.Rome, l.Milan, "from-milan", brokerClass, "10"); err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintln(l.Progress, "lab: the operators of milan, oslo and paris have granted resources")
	if err := Apply(ctx, l.Rome, "consumer"); err != nil {
		return nil, err
	}
	for node, c := range map[string]*lab.Cluster{"from-oslo": l.Milan, "from-paris": l.Milan, "from-milan": l.Rome} {
		if err := AwaitNode(ctx, c, node, true); err != nil {
			return nil, err
		}
	}
	_, _ = fmt.Fprintln(l.Progress, "lab: the virtual nodes are ready")
	return l, nil
}

// letRead lets the operator of a cluster read the Offers of its providers. It reads at once what it may read from the
// beginning, and otherwise within a minute.
func letRead(ctx context.Context, c *lab.Cluster) error {
	roles, stderr, status, err := c.Proffer(ctx, "catalog", "--roles")
	if err != nil || status != 0 || stderr != "" {
		return fmt.Errorf("kubectl proffer catalog --roles ends with %d: %s: %w", status, stderr, err)
	}
	_, err = c.Kubectl(ctx, roles, "apply", "-f", "-")
	return err
}

// allowTwoHops has the virtual kubelets of a broker not add the variables of the API server to pods: the
// one of the consumer has added them, and with two of each Liqo v1.2.0 cannot make the ShadowPod.
func allowTwoHops(ctx context.Context, broker *lab.Cluster) error {
	return apiServerSupport(ctx, broker, false)
}

// apiServerSupport sets whether the virtual kubelets of VirtualNodes that are created from now on add
// these variables.
func apiServerSupport(ctx context.Context, c *lab.Cluster, on bool) error {
	return c.Do(ctx, "-n", "liqo", "patch", "vkoptionstemplates.offloading.liqo.io", "virtual-kubelet-default",
		"--type=merge", fmt.Sprintf(`--patch={"spec":{"extraArgs":["--enable-apiserver-support=%t"]}}`, on))
}

// runOperator installs and starts the operator on a cluster, and applies a manifest.
func runOperator(ctx context.Context, c *lab.Cluster, manifest string, components ...string) error {
	if err := c.RunOperator(ctx, components...); err != nil {
		return err
	}
	return Apply(ctx, c, manifest)
}

// Apply applies a manifest to a cluster.
func Apply(ctx context.Context, c *lab.Cluster, manifest string) error {
	text, err := manifests.ReadFile("manifests/" + manifest + ".yaml")
	if err != nil {
		return err
	}
	_, err = c.Kubectl(ctx, string(text), "apply", "-f", "-")
	return err
}

// requestSlice requests CPUs of a class with a ResourceSlice, which gets a virtual node of its name, and waits
// for a grant.
func requestSlice(ctx context.Context, consumer, provider *lab.Cluster, name, class, cpus string) error {
	slice := forge.ResourceSlice(name, lab.TenantNamespace(provider.ID))
	err := forge.MutateResourceSlice(slice, liqov1beta1.ClusterID(provider.ID), &forge.ResourceSliceOptions{
		Class: authv1beta1.ResourceSliceClass(class),
		Resources: map[corev1.ResourceName]string{
			corev1.ResourceCPU: cpus, corev1.ResourceMemory: "20Gi", corev1.ResourcePods: "20",
		},
	}, true)
	if err != nil {
		return err
	}
	if err := consumer.Client.Create(ctx, slice); err != nil {
		return err
	}
	return lab.Await(ctx, provider.ID+" grants "+consumer.ID+" something", func(ctx context.Context) error {
		if err := consumer.Client.Get(ctx, client.ObjectKeyFromObject(slice), slice); err != nil {
			return err
		}
		if cpu := slice.Status.Resources[corev1.ResourceCPU]; cpu.IsZero() {
			return fmt.Errorf("its status is %+v", slice.Status)
		}
		return nil
	})
}

// AwaitNode waits until a node is ready, or not.
func AwaitNode(ctx context.Context, c *lab.Cluster, name string, ready bool) error {
	return lab.Await(ctx, fmt.Sprintf("node %s of %s has Ready %t", name, c.ID, ready), func(ctx context.Context) error {
		var node corev1.Node
		if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return err
		}
		if lab.IsReady(&node) != ready {
			return fmt.Errorf("its conditions are %v", node.Status.Conditions)
		}
		return nil
	})
}
