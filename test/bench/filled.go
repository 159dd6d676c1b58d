package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/test/bench/population"
)

// filled is a cluster with nodes and pods. Filling it takes minutes, so the parts share it.
type filled struct {
	*cluster
	writer *population.Client
	full   bool
}

// start starts a cluster that has only policies, unless the cluster already runs.
func (f *filled) start(ctx context.Context, o options, progress io.Writer) error {
	if f.cluster != nil {
		return nil
	}
	begin := func() (*cluster, error) { return startCluster(ctx, o.operator, progress) }
	if o.kubeconfig != "" {
		begin, f.full = func() (*cluster, error) { return heldCluster(ctx, o.operator, o.kubeconfig) }, true
	}
	c, err := begin()
	if err != nil {
		return err
	}
	f.cluster = c // the caller stops it, also after an error below
	if f.writer, err = population.NewClient(c.plane.Config); err != nil || f.full {
		return err
	}
	for _, p := range sharePolicies(o.population.Consumers) {
		if err := c.client.Create(ctx, p); err != nil {
			return fmt.Errorf("creating a policy: %w", err)
		}
	}
	return nil
}

// fill creates the population of the options, unless the cluster is already full.
func (f *filled) fill(ctx context.Context, o options, progress io.Writer) error {
	if err := f.start(ctx, o, progress); err != nil || f.full {
		return err
	}
	f.full = true
	return f.writer.Create(ctx, o.population, progress)
}

func (f *filled) stop() error {
	if f.cluster == nil {
		return nil
	}
	return f.cluster.stop()
}

// hold fills a cluster and keeps it until the context ends, so that further runs can measure it.
func hold(ctx context.Context, o options, out, progress io.Writer) (err error) {
	f := &filled{}
	defer func() { err = errors.Join(err, f.stop()) }()
	if err := f.fill(ctx, o, progress); err != nil {
		return err
	}
	fmt.Fprintln(out, f.kubeconfig)
	<-ctx.Done()
	return nil
}

// sharePolicies offer shares of the nodes to all consumers by ID, in three classes whose nodes
// overlap.
func sharePolicies(consumers int) []*v1alpha1.ResourcePolicy {
	var ids []v1alpha1.ClusterID
	for i := range consumers {
		ids = append(ids, v1alpha1.ClusterID(population.Consumer(i)))
	}
	var policies []*v1alpha1.ResourcePolicy
	for class, labels := range map[string]map[string]string{
		"": {"kubernetes.io/os": "linux"}, "gold": {"pool": "compute"}, "silver": {"topology.kubernetes.io/zone": "zone-1"},
	} {
		policies = append(policies, &v1alpha1.ResourcePolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "share-of-" + class + "nodes"},
			Spec: v1alpha1.ResourcePolicySpec{
				Class:     class,
				Consumers: &v1alpha1.Consumers{ClusterIDs: ids},
				Offer: v1alpha1.PolicyOffer{
					Nodes:   &v1alpha1.Nodes{Selector: &metav1.LabelSelector{MatchLabels: labels}},
					Percent: new(v1alpha1.Percent(50)),
					Reserve: v1alpha1.Quantities{"cpu": {Quantity: resource.MustParse("4")}},
				},
			},
		})
	}
	return policies
}
