package external

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/externaltest"
)

// knows returns a function that knows these consumers.
func knows(ids ...string) func(string) bool {
	known := map[string]bool{}
	for _, id := range ids {
		known[id] = true
	}
	return func(id string) bool { return known[id] }
}

// replica is a manager with a fake clock and a fake monitor that may be the leader.
type replica struct {
	*Manager
	*fake
	leads atomic.Bool
}

// follow makes the replica ask about these consumers, which are the known ones.
func (r *replica) follow(of capacity.Monitor, ids ...string) {
	r.Follow(map[capacity.Monitor][]string{of: ids})
	r.Depart(knows(ids...))
	test.Pass(time.Second)
}

// removed returns the calls about consumers that are gone.
func (r *replica) removed() []read {
	r.fake.mu.Lock()
	defer r.fake.mu.Unlock()
	return r.removes
}

// waiting returns the number of consumers that are to be removed.
func (r *replica) waiting() (n int) {
	r.Manager.mu.Lock()
	defer r.Manager.mu.Unlock()
	for _, pending := range r.removals {
		n += len(pending)
	}
	return n
}

// failing makes the calls about consumers that are gone fail.
func (r *replica) failing(err error) {
	r.fake.mu.Lock()
	defer r.fake.mu.Unlock()
	r.removing = func(string) error { return err }
}

// simulateReplica runs a manager that leads, and whose monitor is asked about oslo and rome.
func simulateReplica(t *testing.T, test func(r *replica, of capacity.Monitor)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &replica{fake: &fake{answer: always(four), notify: make(chan string)}}
		r.leads.Store(true)
		r.Manager = New(func() {}, r.leads.Load, RemoveAfter, logr.Discard())
		r.Manager.dial = r.fake.dial
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Start(ctx) }()
		of := capacity.Monitor{Address: "plugin:1", Timeout: timeout}
		r.follow(of, "oslo", "rome")
		test(r, of)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAConsumerIsRemovedOnceSomeMinutesAfterItIsGone(t *testing.T) {
	simulateReplica(t, func(r *replica, of capacity.Monitor) {
		left := time.Since(start)
		r.follow(of, "oslo")
		test.Pass(RemoveAfter - removeTick)
		if got := r.removed(); len(got) > 0 {
			t.Fatalf("removed early: %v", got)
		}
		test.Pass(24 * time.Hour)
		got := r.removed()
		if len(got) != 1 || got[0].id != "rome" || got[0].at < left+RemoveAfter || got[0].at > left+RemoveAfter+removeTick {
			t.Errorf("got the calls %v, want one about rome between %v and %v", got, left+RemoveAfter, left+RemoveAfter+removeTick)
		}
		if n := r.waiting(); n > 0 {
			t.Errorf("%d left in memory", n)
		}
	})
}

func TestAConsumerThatComesBackInTimeIsNotRemoved(t *testing.T) {
	simulateReplica(t, func(r *replica, of capacity.Monitor) {
		r.follow(of, "oslo")
		test.Pass(RemoveAfter - 2*removeTick)
		r.follow(of, "oslo", "rome")
		test.Pass(time.Hour)
		if got := r.removed(); len(got) > 0 {
			t.Errorf("got the calls %v", got)
		}
		// Its time begins again when it leaves again.
		r.follow(of, "oslo")
		test.Pass(RemoveAfter - removeTick)
		if got := r.removed(); len(got) > 0 {
			t.Errorf("got the calls %v after it has left again", got)
		}
	})
}

func TestARemovalKeepsItsTimeHoweverOftenItIsNoted(t *testing.T) {
	simulateReplica(t, func(r *replica, of capacity.Monitor) {
		left := time.Since(start)
		r.follow(of, "oslo")
		for range 4 { // As each term of a leader does.
			test.Pass(RemoveAfter / 5)
			r.Resume(map[string][]string{of.Address: {"rome"}})
			r.follow(of, "oslo")
		}
		test.Pass(time.Hour)
		got := r.removed()
		if len(got) != 1 || got[0].id != "rome" || got[0].at > left+RemoveAfter+removeTick {
			t.Errorf("got the calls %v, want one about rome before %v", got, left+RemoveAfter+removeTick)
		}
	})
}

// A replica may start while the policy is replaced.
func TestTheRecordWaitsForAMonitorForTheGrace(t *testing.T) {
	simulateReplica(t, func(r *replica, of capacity.Monitor) {
		r.Grace = 10 * time.Second
		without := func() {
			r.Follow(nil)
			r.Depart(knows("oslo"))
		}
		without()
		r.Resume(map[string][]string{of.Address: {"lima"}})
		without()
		test.Pass(r.Grace - time.Second)
		without()
		r.follow(of, "oslo")
		test.Pass(RemoveAfter + removeTick)
		if got := r.removed(); len(got) != 1 || got[0].id != "lima" {
			t.Errorf("got the calls %v, want one about lima", got)
		}
		without()
		r.Resume(map[string][]string{of.Address: {"rome"}})
		test.Pass(r.Grace)
		without()
		if asked := r.Asked(); len(asked) > 0 {
			t.Errorf("after the grace, the record still lists %v", asked)
		}
	})
}

// A policy that is for fewer consumers, or a monitor that is asked about its first 10,000 only, does not
// end a consumer.
func TestAConsumerThatIsStillKnownIsNotRemovedUntilItIsGone(t *testing.T) {
	simulateReplica(t, func(r *replica, of capacity.Monitor) {
		r.Follow(map[capacity.Monitor][]string{of: {"oslo"}})
		r.Depart(knows("oslo", "rome"))
		test.Pass(time.Hour)
		if got := r.removed(); len(got) > 0 {
			t.Fatalf("got the calls %v", got)
		}
		r.Depart(knows("oslo"))
		test.Pass(RemoveAfter + removeTick)
		if got := r.removed(); len(got) != 1 || got[0].id != "rome" {
			t.Errorf("got the calls %v", got)
		}
	})
}

func TestAProgramThatSeveralPoliciesNameIsToldOnce(t *testing.T) {
	simulateReplica(t, func(r *replica, of capacity.Monitor) {
		gold := of
		gold.Class, gold.Timeout = "gold", time.Second
		r.Follow(map[capacity.Monitor][]string{of: {"oslo", "rome"}, gold: {"oslo", "rome"}})
		test.Pass(time.Second)
		r.Follow(map[capacity.Monitor][]string{of: {"oslo"}, gold: {"oslo", "rome"}})
		r.Depart(knows("oslo"))
		test.Pass(time.Hour)
		if got := r.removed(); len(got) > 0 {
			t.Fatalf("removed while a policy asks about it: %v", got)
		}
		// Another timeout makes another source, and forgets nobody.
		r.Follow(map[capacity.Monitor][]string{gold: {"oslo"}})
		r.Depart(knows("oslo"))
		test.Pass(time.Hour)
		if got := r.removed(); len(got) != 1 || got[0].id != "rome" {
			t.Errorf("got the calls %v, want one about rome", got)
		}
	})
}

func TestTheCallsAboutOneConsumerAreBounded(t *testing.T) {
	for name, err := range map[string]error{"refused": errors.New("it fails"), "lost": lost{error: errors.New("connection refused")}} {
		t.Run(name, func(t *testing.T) {
			simulateReplica(t, func(r *replica, of capacity.Monitor) {
				r.failing(err)
				r.follow(of, "oslo")
				test.Pass(24 * time.Hour)
				got := r.removed()
				if len(got) != maxTries {
					t.Fatalf("got %d calls, want %d: %v", len(got), maxTries, got)
				}
				for i := 1; i < len(got); i++ {
					if d, want := got[i].at-got[i-1].at, firstPause<<(i-1); d < want || d > want+2*removeTick {
						t.Errorf("call %d came %v after the one before, want %v", i, d, want)
					}
				}
				if n := r.waiting(); n > 0 {
					t.Errorf("%d left in memory", n)
				}
			})
		})
	}
}

func TestOnlyTheLeaderRemovesAndItsSuccessorGoesOn(t *testing.T) {
	simulateReplica(t, func(r *replica, of capacity.Monitor) {
		r.leads.Store(false)
		r.follow(of, "oslo")
		test.Pass(RemoveAfter + inheritance/2)
		if got := r.removed(); len(got) > 0 {
			t.Fatalf("a follower has made the calls %v", got)
		}
		r.leads.Store(true)
		test.Pass(removeTick)
		if got := r.removed(); len(got) != 1 || got[0].id != "rome" {
			t.Fatalf("the new leader has made the calls %v", got)
		}
		// What another leader has had the time for is its matter.
		r.leads.Store(false)
		r.follow(of)
		test.Pass(RemoveAfter + inheritance + 2*removeTick)
		r.leads.Store(true)
		test.Pass(time.Hour)
		if got := r.removed(); len(got) != 1 || r.waiting() > 0 {
			t.Errorf("got the calls %v, and %d in memory", got, r.waiting())
		}
	})
}

func TestTheNextLeaderGoesOnWithTheConsumersThatAreRecorded(t *testing.T) {
	simulateReplica(t, func(r *replica, of capacity.Monitor) {
		var changes atomic.Int64
		r.Changed = func() { changes.Add(1) }
		expect := func(asked map[string][]string, changed bool) {
			t.Helper()
			if diff := cmp.Diff(asked, r.Asked()); diff != "" || changes.Swap(0) > 0 != changed {
				t.Errorf("changed: %v; consumers (-want +got):\n%s", !changed, diff)
			}
		}
		expect(map[string][]string{of.Address: {"oslo", "rome"}}, false)
		// What an earlier leader recorded counts before it is known who is gone.
		r.Resume(map[string][]string{of.Address: {"lima", "oslo"}, "other:1": {"lima"}})
		expect(map[string][]string{of.Address: {"lima", "oslo", "rome"}, "other:1": {"lima"}}, false)
		r.follow(of, "oslo", "rome")
		expect(map[string][]string{of.Address: {"lima", "oslo", "rome"}}, true)
		r.follow(of, "oslo")
		expect(map[string][]string{of.Address: {"lima", "rome", "oslo"}}, true)
		r.follow(of, "oslo")
		expect(map[string][]string{of.Address: {"lima", "rome", "oslo"}}, false)
		test.Pass(RemoveAfter + removeTick)
		expect(map[string][]string{of.Address: {"oslo"}}, true)
		var ids []string
		for _, call := range r.removed() {
			ids = append(ids, call.id)
		}
		if diff := cmp.Diff([]string{"lima", "rome"}, ids); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestNobodyIsRemovedWhomTheMonitorWasNotAskedAbout(t *testing.T) {
	simulateReplica(t, func(r *replica, of capacity.Monitor) {
		r.fake.set(silent)
		test.Pass(refresh) // From now on all readers wait.
		r.Follow(map[capacity.Monitor][]string{of: {"lima", "oslo", "rome"}})
		r.follow(of, "oslo", "rome")
		test.Pass(time.Hour)
		if got := r.removed(); len(got) > 0 {
			t.Errorf("got the calls %v", got)
		}
	})
}

func TestRemovalsAreBounded(t *testing.T) {
	at, pending := endpoint{address: "plugin:1"}, removals{}
	var ids []string
	for i := range MaxConsumers + 7 {
		ids = append(ids, fmt.Sprintf("consumer-%05d", i))
	}
	if dropped := pending.addDeparted(at, ids); dropped != 7 || len(pending[at]) != MaxConsumers {
		t.Errorf("%d dropped, %d kept", dropped, len(pending[at]))
	}
	if dropped := pending.addDeparted(at, ids[:MaxConsumers]); dropped != 0 {
		t.Errorf("%d dropped that are kept already", dropped)
	}
	now := time.Unix(0, 0)
	asked := map[endpoint][]*book{at: {newBook()}}
	pending.update(asked, knows(), now)
	if due := pending.dueAt(at, now); len(due) != maxRemovals || due[0] != ids[0] {
		t.Errorf("%d are due at a time", len(due))
	}
	// Without a policy nobody can be told.
	pending.update(nil, knows(), now)
	if len(pending) > 0 {
		t.Errorf("left: %d", len(pending))
	}
}

func TestAMonitorIsToldOverItsProtocolInBothForms(t *testing.T) {
	for name, flat := range map[string]bool{"pools": externaltest.Pools, "flat": externaltest.Flat} {
		t.Run(name, func(t *testing.T) {
			monitor := externaltest.Start(t, flat)
			monitor.Offer("cpu", "4")
			m, of := runManager(t, New(func() {}, leads, 50*time.Millisecond, testr.New(t))), at(monitor, inTime(30*time.Second))
			of.Flat = flat
			m.Follow(map[capacity.Monitor][]string{of: {"lima", "oslo", "rome"}})
			m.Settled(t.Context(), test.Timeout)
			m.Follow(map[capacity.Monitor][]string{of: {"oslo"}})
			m.Depart(knows("oslo"))
			test.Eventually(t, func() string { return cmp.Diff([]string{"lima", "rome"}, monitor.Removals()) })

			// A monitor without the method, or without the consumer, is told once too.
			monitor.Removing(func(id string) error { return status.Error(codes.NotFound, "no cluster "+id) })
			m.Follow(map[capacity.Monitor][]string{of: {}})
			m.Depart(knows())
			test.Eventually(t, func() string {
				return cmp.Diff([]float64{3, 0}, []float64{gathered(t, m)["removals_total removed"], gathered(t, m)["removals_total given_up"]})
			})
			if diff := cmp.Diff([]string{"lima", "rome", "oslo"}, monitor.Removals()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
