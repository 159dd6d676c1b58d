package plugin

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reconciler receives the changes of policies, offers, grants and consumers. It has a queue of its
// own, in which each object waits once with its latest state, and one call runs at a time. An error
// or a panic is retried, later each time, up to a minute. A call has a minute: its context ends then,
// and when this process stops being the leader.
//
// When it starts, Reconcile is called for everything that there is. The same state may be handed over
// more than once: both methods must be idempotent.
type Reconciler interface {
	// Name is the name that the reconciler is registered by.
	Name() string
	// Reconcile takes the latest state of an object. If requeueAfter is positive, it is called again
	// after that time, and a second at the earliest, with the state of then.
	Reconcile(ctx context.Context, e Event) (requeueAfter time.Duration, err error)
	// HandleDeletion takes the end of an object. It is retried until it succeeds.
	HandleDeletion(ctx context.Context, e Event) error
}

// Keeper is implemented by reconcilers that keep something of objects outside of the process, such as
// rows of a database. When such a reconciler starts, HandleDeletion is called for each object that
// it keeps and that is no more: one may have ended while no process was running. Without it, such an
// end is not noticed.
type Keeper interface {
	// Kept returns what is kept. It is retried as a call of Reconciler is.
	Kept(ctx context.Context) ([]Reference, error)
}

// EveryReplica is implemented by reconcilers that run in every replica instead of in the leader
// alone. It is controller-runtime's interface LeaderElectionRunnable.
type EveryReplica interface {
	// NeedLeaderElection returns false for a reconciler of every replica.
	NeedLeaderElection() bool
}

// Kind is the kind of object that an Event is about.
type Kind string

// The kinds of events, and the keys of their objects.
const (
	// KindPolicy is a valid ResourcePolicy. Its key is the name.
	KindPolicy Kind = "Policy"
	// KindOffer is for the published offer to one consumer in one class. Its key is the consumer's ID,
	// a slash, and the class, which may be empty.
	KindOffer Kind = "Offer"
	// KindGrant is a ResourceSlice with the decision on it. Its key is the namespace, a slash, the name,
	// a slash, and the UID.
	KindGrant Kind = "Grant"
	// KindConsumer is a consumer that one of Liqo's objects describes. Its key is the ID.
	KindConsumer Kind = "Consumer"
)

// Reference names an object.
type Reference struct {
	Kind Kind
	Key  string
}

// Event is the state of an object.
type Event struct {
	Reference
	// Revision is the revision of the snapshot of New. Revisions begin again with each process.
	Revision uint64
	// Old is the object that this process last handed over with success. It is empty for an object that
	// was not. New is empty in HandleDeletion.
	Old, New Object
}

// Object is one object: the field of its kind is set. The zero Object is none. Objects are shared: a
// plugin must not change them.
type Object struct {
	Policy   *Policy
	Offer    *Offer
	Grant    *Grant
	Consumer *Consumer
}

// Offer holds the amounts offered to a consumer in a class.
type Offer struct {
	ClusterID, Class string
	// Policy is the name of the policy that decides, empty if none does any more.
	Policy string
	// Amounts include what the consumer has. A resource that is not offered any more is 0.
	Amounts corev1.ResourceList
}

// Grant is the decision on a ResourceSlice.
type Grant struct {
	Namespace, Name, UID string
	ClusterID, Class     string
	// Policy is the name of the policy that decided, empty for none.
	Policy string
	// Accepted reports whether the slice is, or is about to be, accepted with the amounts Granted.
	Accepted       bool
	Asked, Granted corev1.ResourceList
}
