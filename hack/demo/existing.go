package main

import (
	"context"
	"fmt"
	"io"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	proffer "proffer.dev/proffer/internal/operator"
)

// skew bounds the difference between the clocks of the demo and of another Proffer.
const skew = time.Minute

// join prepares the demo on an existing cluster, whose consumers are real. The operator may only
// read there and never leads, so nothing changes for the consumers. Samples are applied only if
// they are asked for, and only if the cluster has no policies and no other Proffer.
func (c *cluster) join(ctx context.Context, samples bool, undo *cleanup, progress io.Writer) error {
	// The demo deletes what it created, and nothing else.
	c.client = undoingClient{c.client, undo, progress}
	other, err := c.otherProffer(ctx)
	if err != nil {
		return err
	}
	policies, err := c.count(ctx, "ResourcePolicy")
	if err != nil {
		return err
	}
	switch {
	case samples && other != nil:
		return fmt.Errorf("the samples are for a cluster without a Proffer, but %s in namespace %s would offer them to its "+
			"consumers: leave out SAMPLES=1 to watch that cluster",
			*other.Spec.HolderIdentity, other.Namespace)
	case samples && policies > 0:
		return fmt.Errorf("the samples are for a cluster without policies, and %d are there: "+
			"leave out SAMPLES=1 to see what they offer", policies)
	case samples:
		fmt.Fprint(progress, `Proffer runs here with all its rights, by the samples: consumers are offered
what these say, and ResourceSlices of their classes are answered, and keep
their answers when the demo ends. It removes the samples, its own account, and
CRDs that were missing, unless something else has objects of them.
`)
	default:
		c.reads, c.leaseNamespace = true, metav1.NamespaceDefault
		c.empty, c.unanswered = policies == 0, other == nil
		fmt.Fprint(progress, `Proffer only reads here: what consumers have stays as it is. It makes an
account that may read, and the CRDs if they are missing, and takes them away
at the end. SAMPLES=1 applies the samples too.
`)
	}
	if other != nil {
		c.leaseNamespace = other.Namespace
		fmt.Fprintf(progress, "a Proffer runs here (%s in namespace %s)\n", *other.Spec.HolderIdentity, other.Namespace)
	}
	if err := c.installCRDs(ctx, undo, progress); err != nil {
		return err
	}
	switch {
	case samples:
		return c.applySamples(ctx, progress)
	case policies == 0:
		fmt.Fprintln(progress, "watching for policies: the cluster has none yet")
	case policies == 1:
		fmt.Fprintln(progress, "watching 1 policy")
	default:
		fmt.Fprintf(progress, "watching %d policies\n", policies)
	}
	return nil
}

// otherProffer returns the Lease that another Proffer holds, nil for none.
func (c *cluster) otherProffer(ctx context.Context) (*coordinationv1.Lease, error) {
	var leases coordinationv1.LeaseList
	if err := c.client.List(ctx, &leases,
		client.MatchingFields{"metadata.name": proffer.LeaderElectionID}); err != nil {
		return nil, fmt.Errorf("looking for another Proffer: %w", err)
	}
	now := time.Now()
	for i := range leases.Items {
		if held(leases.Items[i].Spec, now) {
			return &leases.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// held reports whether the Lease has a holder that renewed it recently.
func held(l coordinationv1.LeaseSpec, now time.Time) bool {
	if l.HolderIdentity == nil || *l.HolderIdentity == "" || l.RenewTime == nil || l.LeaseDurationSeconds == nil {
		return false
	}
	return now.Before(l.RenewTime.Add(time.Duration(*l.LeaseDurationSeconds)*time.Second + skew))
}
