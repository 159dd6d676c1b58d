package kube

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlelection "sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// podNamespaceFile holds the name of a Pod's namespace.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// LeaderElection configures how replicas agree on the one that writes. A duration of 0 stands for
// the default of Kubernetes' own components.
type LeaderElection struct {
	// Namespace is the namespace of the Lease; the default is the Pod's.
	Namespace string
	// LeaseDuration, in whole seconds, is the time for which a Lease that is no longer renewed keeps
	// others from taking it. The default is 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is the time for which the leader tries to renew before it stops its work. It is
	// less than LeaseDuration; the default is 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two attempts to take or to renew the Lease. The default is 2
	// s.
	RetryPeriod time.Duration
}

// Leader runs the work that only one replica may do: while it holds the Lease, or all the time
// without an election. Losing the Lease, which happens to every replica while the API server is
// away, ends that work and nothing else; every replica goes on serving. The manager's own election
// would end the process.
type Leader struct {
	// work returns nil when its context ends, and can be started again. An error ends the process.
	work []manager.Runnable
	// lease is nil without an election.
	lease resourcelock.Interface
	name  string
	times LeaderElection
	// tenure is renewed with the Lease.
	tenure *Tenure
	log    logr.Logger
}

// Tenure reports, by the clock of this process, whether it still leads. A process that was suspended
// therefore stops before its next write, not only when its next renewal fails. The zero Tenure, for an
// operator without an election, always holds. It is safe for concurrent use.
type Tenure struct {
	// renewed is the time of sending the last request that renewed the Lease, nil for never.
	renewed atomic.Pointer[time.Time]
	// duration is the time for which a renewal is good, 0 for ever.
	duration time.Duration
	// seen is the last time at which a renewal was seen, of any replica, nil without an election.
	seen atomic.Pointer[time.Time]
}

// Holds reports whether this process may write.
func (t *Tenure) Holds() bool {
	if t.duration == 0 {
		return true
	}
	renewed := t.renewed.Load()
	return renewed != nil && time.Since(*renewed) < t.duration
}

// LeaderSeen returns the last time at which this process saw that some replica leads, or began to look for one. It
// is zero without an election.
func (t *Tenure) LeaderSeen() time.Time { return ptr.Deref(t.seen.Load(), time.Time{}) }

// NewLeader returns a Leader, which the caller adds to the manager. The lease is the name of the
// Lease. Without an election the work begins immediately.
func NewLeader(
	mgr ctrl.Manager, lease string, election *LeaderElection, tenure *Tenure, log logr.Logger,
	work ...manager.Runnable,
) (*Leader, error) {
	l := &Leader{work: work, name: lease, tenure: tenure, log: log}
	if election == nil {
		return l, nil
	}
	l.times = election.withDefaults()
	tenure.duration = l.times.RenewDeadline
	tenure.seen.Store(new(time.Now()))
	var err error
	if l.times.Namespace, err = LeaseNamespace(election); err != nil {
		return nil, err
	}
	// By RenewDeadline, a single request that hangs does not cost the Lease.
	l.lease, err = ctrlelection.NewResourceLock(mgr.GetConfig(), mgr, ctrlelection.Options{
		LeaderElection: true, LeaderElectionID: lease, LeaderElectionNamespace: l.times.Namespace,
		RenewDeadline: l.times.RenewDeadline,
	})
	if err != nil {
		return nil, fmt.Errorf("making a client for the Lease: %w", err)
	}
	return l, nil
}

func (e LeaderElection) withDefaults() LeaderElection {
	e.LeaseDuration = cmp.Or(e.LeaseDuration, 15*time.Second)
	e.RenewDeadline = cmp.Or(e.RenewDeadline, 10*time.Second)
	e.RetryPeriod = cmp.Or(e.RetryPeriod, 2*time.Second)
	return e
}

// LeaseNamespace returns the namespace of the Lease, or where it would be with an election. Its
// error says which flag to write.
func LeaseNamespace(election *LeaderElection) (string, error) {
	return leaseNamespaceIn(podNamespaceFile, election)
}

// leaseNamespaceIn finds the namespace of the Pod in the file.
func leaseNamespaceIn(file string, election *LeaderElection) (string, error) {
	if election != nil && election.Namespace != "" {
		return election.Namespace, nil
	}
	name, err := os.ReadFile(file)
	switch {
	case err == nil:
		return strings.TrimSpace(string(name)), nil
	case errors.Is(err, os.ErrNotExist):
		err = errors.New("the namespace of the Lease is unknown outside of a Pod")
	default:
		err = fmt.Errorf("finding the namespace of the Pod: %w", err)
	}
	flags := "--leader-election-namespace=NAMESPACE"
	if election == nil {
		flags = "--leader-elect and " + flags
	}
	return "", fmt.Errorf("%w: write %s", err, flags)
}

// Start competes for the Lease until the context ends, and again each time it is lost. It returns
// when the work has ended and the Lease is released.
func (l *Leader) Start(ctx context.Context) error {
	if l.lease == nil {
		return l.run(ctx)
	}
	ctx = klog.NewContext(ctx, electionLog(l.log))
	defer l.release(ctx)
	for ctx.Err() == nil {
		if err := l.term(ctx); err != nil {
			return err
		}
		if ctx.Err() == nil {
			l.log.Info("No longer the leader; this replica serves offers, but writes nothing until it holds the Lease again")
		}
	}
	return nil
}

func (l *Leader) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range l.work {
		group.Go(func() error { return w.Start(ctx) })
	}
	return group.Wait()
}

// term waits for the Lease and does the work until the Lease is lost or the context ends. The work
// has ended when it returns.
func (l *Leader) term(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	held := &heldLease{Interface: l.lease, tenure: l.tenure, lost: end}
	ended := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: held, Name: l.name,
		LeaseDuration: l.times.LeaseDuration, RenewDeadline: l.times.RenewDeadline, RetryPeriod: l.times.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				err := l.run(ctx)
				if err != nil {
					end()
				}
				ended <- err
			},
			OnStoppedLeading: func() {},
		},
		// The elector would release the Lease before the work has ended; release does so
		// afterwards.
		ReleaseOnCancel: false,
	})
	if err != nil {
		return fmt.Errorf("electing a leader: %w", err)
	}
	elector.Run(ctx)
	if !held.held {
		return nil // The work was not started.
	}
	return <-ended
}

// release gives up the Lease if this replica still holds it, so that the next leader need not wait
// for it to expire.
func (l *Leader) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.times.RenewDeadline)
	defer cancel()
	// A renewal that was cancelled may arrive in between.
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, _, err := l.lease.Get(ctx)
		if err != nil || record.HolderIdentity != l.lease.Identity() {
			return client.IgnoreNotFound(err)
		}
		now := metav1.Now()
		return l.lease.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now, LeaderTransitions: record.LeaderTransitions,
		})
	})
	if err != nil {
		l.log.Error(err, "Cannot release the Lease; the next leader must wait until it expires")
	}
}

// heldLease records whether the Lease was taken, and calls lost as soon as it sees another holder.
// LeaderElector alone would let the work continue until its deadline, concurrently with the other
// holder. It is used by one goroutine at a time.
type heldLease struct {
	resourcelock.Interface
	tenure *Tenure
	held   bool
	lost   func()
	// last is the Lease as it was last read.
	last []byte
}

// Create implements resourcelock.Interface.
func (l *heldLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.renew(func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l *heldLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.renew(func() error { return l.Interface.Update(ctx, record) })
}

func (l *heldLease) renew(write func() error) error {
	sent := time.Now()
	err := write()
	if err == nil {
		l.held = true
		l.tenure.renewed.Store(&sent)
		l.tenure.seen.Store(&sent)
	}
	return err
}

// Get implements resourcelock.Interface.
func (l *heldLease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && l.held && record.HolderIdentity != l.Identity() {
		l.lost()
	}
	if err == nil && record.HolderIdentity != "" && !bytes.Equal(raw, l.last) {
		l.last = raw
		l.tenure.seen.Store(new(time.Now()))
	}
	return record, raw, err
}
