package main

import (
	"context"
	"fmt"
	"io"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/controllers"
)

var policyListKind = v1alpha1.GroupVersion.WithKind("ResourcePolicyList")

// skew is by how much the clocks of the demo and of another Proffer may differ.
const skew = time.Minute

// join makes ready for the demo on somebody's cluster, where real consumers may be offered what policies say. So samples go only to where
// nobody has written policies and no other Proffer would publish them, and where there is one the demo's operator comes after it.
func (c *cluster) join(ctx context.Context, undo *cleanup, progress io.Writer) error {
	// What the demo makes in somebody's cluster it takes away again, and nothing else.
	c.client = remembering{c.client, undo, progress}
	if err := c.installCRDs(ctx, undo, progress); err != nil {
		return err
	}
	other, err := c.otherProffer(ctx)
	if err != nil {
		return err
	}
	if other != nil {
		c.leaseNamespace = other.Namespace
		fmt.Fprintf(progress, "a Proffer runs here (%s in namespace %s): leaving the statuses to it\n", *other.Spec.HolderIdentity, other.Namespace)
	}
	var policies metav1.PartialObjectMetadataList
	policies.SetGroupVersionKind(policyListKind)
	if err := c.client.List(ctx, &policies); err != nil {
		return fmt.Errorf("looking for policies: %w", err)
	}
	switch n := len(policies.Items); {
	case n == 1:
		fmt.Fprintln(progress, "1 policy is there: watching that")
	case n > 1:
		fmt.Fprintf(progress, "%d policies are there: watching those\n", n)
	case other != nil:
		fmt.Fprintln(progress, "no policy is there, and none is added, since the other Proffer would offer what it says: watching for yours")
	default:
		return c.applySamples(ctx, progress)
	}
	return nil
}

// otherProffer returns the Lease that another Proffer holds, nil if none does.
func (c *cluster) otherProffer(ctx context.Context) (*coordinationv1.Lease, error) {
	var leases coordinationv1.LeaseList
	if err := c.client.List(ctx, &leases, client.MatchingFields{"metadata.name": controllers.LeaderElectionID}); err != nil {
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

// held reports whether somebody holds the Lease, and renewed it not too long ago.
func held(l coordinationv1.LeaseSpec, now time.Time) bool {
	if l.HolderIdentity == nil || *l.HolderIdentity == "" || l.RenewTime == nil || l.LeaseDurationSeconds == nil {
		return false
	}
	return now.Before(l.RenewTime.Add(time.Duration(*l.LeaseDurationSeconds)*time.Second + skew))
}
