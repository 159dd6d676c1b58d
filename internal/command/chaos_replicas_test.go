package command

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/operator"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/process"
)

// clock stops while the API server is frozen: meanwhile the test and the operator cannot observe
// each other.
type clock struct {
	mu      sync.Mutex
	started time.Time
	// frozen is when the clock was stopped, zero while it runs.
	frozen time.Time
	lost   time.Duration
}

func newClock() *clock { return &clock{started: time.Now()} }

func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now()
	if !c.frozen.IsZero() {
		at = c.frozen
	}
	return at.Sub(c.started) - c.lost
}

func (c *clock) freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = time.Now()
}

func (c *clock) thaw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost += time.Since(c.frozen)
	c.frozen = time.Time{}
}

// replicas are the operator's processes.
type replicas struct {
	t       *testing.T
	cluster *controlplane.Cluster
	api     client.Client
	all     []*replica
	// dead has the identities of killed replicas, which the Lease may still name.
	dead  map[string]bool
	kills int
}

type replica struct {
	*process.Process
	// identity is the replica's holder identity in the Lease, empty until known.
	identity string
}

// shortGrace bounds the time for which a replica keeps grants whose nodes went while none ran.
const shortGrace = "--node-grace-period=2s"

func startReplicas(t *testing.T, cluster *controlplane.Cluster, api client.Client) *replicas {
	r := &replicas{t: t, cluster: cluster, api: api, dead: map[string]bool{}}
	for range 2 {
		r.all = append(r.all, &replica{Process: startProcess(t, cluster, shortGrace)})
	}
	return r
}

// holder returns the holder identity of the Lease, empty if there is none.
func (r *replicas) holder() string {
	var l coordinationv1.Lease
	if err := r.api.Get(r.t.Context(), client.ObjectKey{Namespace: "default", Name: operator.LeaderElectionID},
		&l); err != nil ||
		l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// leads reports whether the replica's log says that it leads.
func (r *replica) leads() bool {
	log := r.Log()
	return strings.LastIndex(log, "uccessfully acquired lease") > strings.LastIndex(log, "No longer the leader")
}

// leader waits until a replica leads, and returns it.
func (r *replicas) leader() *replica {
	r.t.Helper()
	var found *replica
	test.Eventually(r.t, func() error {
		holder := r.holder()
		if holder == "" || r.dead[holder] {
			return fmt.Errorf("no replica leads")
		}
		var unnamed []*replica
		for _, p := range r.all {
			requireAlive(r.t, p.Process)
			switch {
			case p.identity == holder:
				found = p
				return nil
			case p.identity == "" && p.leads():
				unnamed = append(unnamed, p)
			}
		}
		if len(unnamed) != 1 {
			return fmt.Errorf("%q leads; %d replicas may be it", holder, len(unnamed))
		}
		found = unnamed[0]
		found.identity = holder
		return nil
	})
	return found
}

// kill ends a replica with SIGKILL, and starts another in its place.
func (r *replicas) kill(victim *replica) {
	r.t.Helper()
	test.Must(r.t, victim.Kill())
	r.kills++
	r.dead[victim.identity] = true
	*victim = replica{Process: startProcess(r.t, r.cluster, shortGrace)}
}

// restart ends all replicas gracefully and starts new ones.
func (r *replicas) restart() {
	r.t.Helper()
	for _, p := range r.all {
		test.Check(r.t, p.Stop(time.Minute))
	}
	for _, p := range r.all {
		*p = replica{Process: startProcess(r.t, r.cluster, shortGrace)}
	}
}
