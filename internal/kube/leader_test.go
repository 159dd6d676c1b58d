package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// leaseName is the name of every test's Lease. Each test has its own namespace.
const leaseName = "test"

func TestMain(m *testing.M) { kubetest.Main(m) }

// longLease returns a configuration whose Lease does not expire, not even in a slow test.
func longLease(t *testing.T) *LeaderElection {
	t.Helper()
	return &LeaderElection{
		Namespace:     kubetest.LeaseNamespace(t),
		LeaseDuration: 2 * time.Hour,
		RenewDeadline: time.Hour,
		RetryPeriod:   100 * time.Millisecond,
	}
}

// holder returns the identity that holds the Lease, empty for none.
func holder(ctx context.Context, t *testing.T, namespace string) string {
	t.Helper()
	lease, err := kubetest.Leases(t, namespace).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil {
		t.Error(err)
		return ""
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// competitor is a running Leader.
type competitor struct {
	stop func()
	// err is the result of Start. It is set when stop returns.
	err error
}

func newCompetitor(t *testing.T, election *LeaderElection, work ...manager.RunnableFunc) *Leader {
	t.Helper()
	mgr, err := ctrl.NewManager(
		rest.CopyConfig(kubetest.Cluster(t).Config),
		ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}},
	)
	test.Must(t, err)
	var runnables []manager.Runnable
	for _, w := range work {
		runnables = append(runnables, w)
	}
	l, err := NewLeader(mgr, leaseName, election, &Tenure{}, mgr.GetLogger(), runnables...)
	test.Must(t, err)
	return l
}

// compete runs a Leader with this work until the test ends.
func compete(t *testing.T, election *LeaderElection, work ...manager.RunnableFunc) *competitor {
	t.Helper()
	l := newCompetitor(t, election, work...)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	c := &competitor{}
	wg.Go(func() { c.err = l.Start(ctx) })
	c.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(c.stop)
	return c
}

// await waits for a signal of the work.
func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(test.Timeout):
		t.Fatalf("timed out: %s", what)
	}
}

func TestTheLeaseIsReleasedOnlyAfterTheWorkHasEnded(t *testing.T) {
	election := longLease(t)
	working, next := make(chan struct{}), make(chan struct{})
	var running atomic.Int32
	first := compete(t, election, func(ctx context.Context) error {
		running.Add(1)
		defer running.Add(-1)
		me := holder(ctx, t, election.Namespace)
		close(working)
		<-ctx.Done()
		// The work ends slowly: a release that does not wait for it shows up within these reads.
		for range 50 {
			if now := holder(context.WithoutCancel(ctx), t, election.Namespace); now != me || now == "" {
				t.Errorf("%q holds the Lease while %q works", now, me)
			}
		}
		return nil
	})
	await(t, "the first replica works", working)
	compete(t, election, func(ctx context.Context) error {
		if running.Load() != 0 {
			t.Error("two replicas work at the same time")
		}
		close(next)
		<-ctx.Done()
		return nil
	})
	first.stop()
	if first.err != nil {
		t.Error(first.err)
	}
	// The Lease lasts for two hours, so the next replica cannot get it by waiting.
	await(t, "the next replica works", next)
}

func TestLosingTheLeaseEndsTheWorkImmediatelyAndNothingElse(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, namespace string){
		"overwritten": func(t *testing.T, namespace string) {
			kubetest.SetLease(t, namespace, leaseName, kubetest.HeldLease())
		},
		"deleted and created again": func(t *testing.T, namespace string) {
			held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName}, Spec: kubetest.HeldLease()}
			// The leader may create the Lease first. Then this function tries again.
			test.Eventually(t, func() string {
				_ = kubetest.Leases(t, namespace).Delete(t.Context(), leaseName, metav1.DeleteOptions{})
				_, err := kubetest.Leases(t, namespace).Create(t.Context(), held, metav1.CreateOptions{})
				if err != nil {
					return err.Error()
				}
				return ""
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			election := longLease(t)
			working, ended := make(chan struct{}, 10), make(chan struct{}, 10)
			c := compete(t, election, func(ctx context.Context) error {
				working <- struct{}{}
				<-ctx.Done()
				ended <- struct{}{}
				return nil
			})
			await(t, "the work started", working)
			me := holder(t.Context(), t, election.Namespace)
			lose(t, election.Namespace)
			// The wait is far shorter than RenewDeadline, which is an hour.
			await(t, "the work ended", ended)
			if now := holder(t.Context(), t, election.Namespace); now != "somebody" {
				t.Errorf("%q holds the Lease, want somebody", now)
			}
			kubetest.SetLease(t, election.Namespace, leaseName, coordinationv1.LeaseSpec{})
			await(t, "the work started again", working)
			if now := holder(t.Context(), t, election.Namespace); now != me {
				t.Errorf("%q holds the Lease, want %q again", now, me)
			}
			c.stop()
			if c.err != nil || holder(t.Context(), t, election.Namespace) != "" {
				t.Errorf("Start returned %v and %q holds the Lease", c.err, holder(t.Context(), t, election.Namespace))
			}
		})
	}
}

func TestAReplicaThatNeverLedDoesNotReleaseTheLease(t *testing.T) {
	election := longLease(t)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName}, Spec: kubetest.HeldLease()}
	before, err := kubetest.Leases(t, election.Namespace).Create(t.Context(), lease, metav1.CreateOptions{})
	test.Must(t, err)
	c := compete(t, election, func(context.Context) error {
		t.Error("the work started without the Lease")
		return nil
	})
	c.stop()
	after, err := kubetest.Leases(t, election.Namespace).Get(t.Context(), leaseName, metav1.GetOptions{})
	test.Must(t, err)
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" || c.err != nil {
		t.Errorf("Start returned %v, the Lease changed: %s", c.err, diff)
	}
}

func TestFailedWorkEndsTheOtherWorkAndTheLeader(t *testing.T) {
	for name, election := range map[string]*LeaderElection{"elected": longLease(t), "alone": nil} {
		t.Run(name, func(t *testing.T) {
			broken, ended := errors.New("broken"), make(chan struct{})
			c := compete(t, election,
				func(context.Context) error { return broken },
				func(ctx context.Context) error { <-ctx.Done(); close(ended); return nil },
			)
			await(t, "the other work ended", ended)
			c.stop()
			if !errors.Is(c.err, broken) {
				t.Errorf("Start returned %v", c.err)
			}
			if election != nil && holder(t.Context(), t, election.Namespace) != "" {
				t.Errorf("%q still holds the Lease", holder(t.Context(), t, election.Namespace))
			}
		})
	}
}

func TestWithoutAnElectionWorkStartsImmediately(t *testing.T) {
	working := make(chan struct{})
	c := compete(t, nil, func(ctx context.Context) error { close(working); <-ctx.Done(); return nil })
	await(t, "the work started", working)
	c.stop()
	if c.err != nil {
		t.Error(c.err)
	}
}

func TestTheLeaseNamespaceIsTheFlagOrThatOfThePod(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	refused := func(file string, election *LeaderElection, want string) {
		t.Helper()
		if _, err := leaseNamespaceIn(file, election); err == nil || !strings.HasSuffix(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want an error that ends in %q", err, want)
		}
	}
	// The error does not ask for a flag that is already set.
	refused(file, &LeaderElection{}, "unknown outside of a Pod: write --leader-election-namespace=NAMESPACE")
	refused(file, nil, "unknown outside of a Pod: write --leader-elect and --leader-election-namespace=NAMESPACE")
	refused(filepath.Dir(file), &LeaderElection{}, "is a directory: write --leader-election-namespace=NAMESPACE")
	test.Must(t, os.WriteFile(file, []byte("proffer-system\n"), 0o600))
	for election, want := range map[*LeaderElection]string{
		nil: "proffer-system", {}: "proffer-system", {Namespace: "other"}: "other",
	} {
		if name, err := leaseNamespaceIn(file, election); name != want || err != nil {
			t.Errorf("in a Pod, with %+v: %q, %v; want %q", election, name, err, want)
		}
	}
}

func TestLeaseDurationsHaveDefaultsAndMustFitTogether(t *testing.T) {
	want := LeaderElection{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second}
	if diff := cmp.Diff(want, LeaderElection{RetryPeriod: time.Second}.withDefaults()); diff != "" {
		t.Error(diff)
	}
	// Durations that do not fit together are an error, not a panic.
	l := newCompetitor(t, &LeaderElection{Namespace: metav1.NamespaceDefault, RenewDeadline: time.Minute})
	const conflict = "leaseDuration must be greater than renewDeadline"
	if err := l.Start(t.Context()); !strings.Contains(fmt.Sprint(err), conflict) {
		t.Errorf("Start returned %v, want %q", err, conflict)
	}
}

// otherLease is a Lease that others hold.
type otherLease struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	err    error
}

func (l *otherLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	raw, err := json.Marshal(l.record)
	return &l.record, raw, errors.Join(err, l.err)
}

func (l *otherLease) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

func TestALeaderIsSeenWhenItRenewsTheLease(t *testing.T) {
	if seen := (&Tenure{}).LeaderSeen(); !seen.IsZero() {
		t.Errorf("without an election, %v", seen)
	}
	synctest.Test(t, func(t *testing.T) {
		lease := &otherLease{}
		held := &heldLease{Interface: lease, tenure: &Tenure{}}
		for _, step := range []struct {
			name   string
			change func()
			seen   bool
		}{
			{"nobody holds it", func() {}, false},
			{"another replica takes it", func() { lease.record.HolderIdentity = "other" }, true},
			{"it is as it was", func() {}, false},
			{"it is renewed", func() { lease.record.RenewTime = metav1.Now() }, true},
			{"the API server is away", func() { lease.err, lease.record.RenewTime = errors.New("away"), metav1.Now() }, false},
			{"it is released", func() { lease.err, lease.record.HolderIdentity = nil, "" }, false},
		} {
			time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble
			step.change()
			_, _, _ = held.Get(t.Context())
			if seen := held.tenure.LeaderSeen(); seen.Equal(time.Now()) != step.seen {
				t.Errorf("%s: a leader was seen at %v, now it is %v", step.name, seen, time.Now())
			}
		}
		time.Sleep(time.Minute) //nolint:forbidigo // the clock of the bubble
		test.Must(t, held.Update(t.Context(), resourcelock.LeaderElectionRecord{}))
		if seen := held.tenure.LeaderSeen(); !seen.Equal(time.Now()) {
			t.Errorf("its own renewal is not seen: %v", seen)
		}
	})
}
