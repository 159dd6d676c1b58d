package command

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

const (
	minKills = 12
	// killsEnv is the minimum number of times that the leader is killed, if it is above minKills.
	killsEnv = "PROFFER_CHAOS_KILLS"
	// adversaryEnv, if set, adds the hostile consumer, suspended leaders, drains, and policies,
	// Tenants and classes that come and go.
	adversaryEnv = "PROFFER_CHAOS_ADVERSARY"
	// seedEnv sets the seed, to repeat the decisions of a run. By default the long form takes
	// another seed each time. The short form always takes shortSeed, so that a failure in CI points
	// at the change.
	seedEnv = "PROFFER_CHAOS_SEED"
	// shortSeed covers, in step 2, two classes that start to overlap when together they have
	// granted more than the capacity of the larger one.
	shortSeed = 1795400972992973105
)

// chaos is a provider with two replicas of the operator, its consumers, and an auditor of all
// answers.
type chaos struct {
	t         *testing.T
	cluster   *controlplane.Cluster
	clock     *clock
	provider  *provider
	consumers *consumers
	hostile   *hostile
	replicas  *replicas
	auditor   *auditor
	random    *rand.Rand
	// adversary reports whether adversaryEnv is set.
	adversary bool
	// freezes, suspensions and drains count these faults.
	freezes, suspensions, drains int
}

// Consumers ask for more than there is and change their requests. Nodes, pods and policies change,
// policies share nodes, and consumers are cordoned. Meanwhile the leader is killed again and again,
// and the API server freezes.
//
// The long form (make soak-chaos) adds a consumer that does all that its role allows, policies and
// Tenants that come and go, drains of consumers, and suspended leaders.
//
// The auditor checks every answer that is ever written. After each step, no more is accepted than
// there is, and the operator has taken back what a consumer granted itself. In the end, without the
// hostile consumer, every other slice has the answer that internal/grant works out.
func TestNoCapacityIsGrantedTwiceUnderChaos(t *testing.T) {
	f := newChaos(t)
	t.Logf("%v: all slices are created", f.clock.now())
	f.replicas.leader()
	f.auditor.awaitWithinCapacity()
	t.Logf("%v: all slices are answered", f.clock.now())
	least := minKills
	if text := os.Getenv(killsEnv); text != "" {
		kills, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s=%q is not a number", killsEnv, text)
		}
		least = max(least, kills)
	}
	for step := 0; f.replicas.kills < least && !t.Failed(); step++ {
		f.step(step)
		f.auditor.awaitWithinCapacity()
		t.Logf("%v: step %d, %d kills", f.clock.now(), step, f.replicas.kills)
	}
	f.end()
	a := f.auditor
	a.mu.Lock()
	defer a.mu.Unlock()
	t.Logf("%d kills, %d freezes of the API server, %d suspensions of the leader, %d drains, %d pods bound late (%d only created then), %d answers with %d raises, %d checks",
		f.replicas.kills, f.freezes, f.suspensions, f.drains, f.provider.bound, f.provider.unannounced, a.writes, a.raises, a.checks)
	if late := f.provider.unannounced; late == 0 || late == f.provider.bound {
		t.Errorf("%d pods were bound after they had waited, and %d of them created only then: want some of both", f.provider.bound, late)
	}
	if f.adversary {
		t.Logf("actions of the hostile consumer: %s", f.hostile.summary(t))
	}
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	adversary, seed := os.Getenv(adversaryEnv) != "", uint64(shortSeed)
	if adversary {
		seed = uint64(time.Now().UnixNano())
	}
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s=%q is not a number", seedEnv, text)
		}
	}
	t.Logf("%s=%d", seedEnv, seed)

	cluster := controlplane.StartTest(t, controlplane.Options{CRDDirs: []string{
		filepath.Join("..", "..", "config", "crd", "bases"),
		controlplane.LiqoCRD(t, "authentication.liqo.io_resourceslices.yaml"),
		controlplane.LiqoCRD(t, "authentication.liqo.io_tenants.yaml"), shadowPodCRD(t),
	}})
	api, err := client.New(cluster.Config, client.Options{Scheme: newScheme(t)})
	test.Must(t, err)
	f := &chaos{t: t, cluster: cluster, clock: newClock(), random: rand.New(rand.NewPCG(seed, 0)), adversary: adversary}
	f.provider = newProvider(t, api, f.clock, f.adversary)
	for _, zone := range []string{"a", "a", "a", "shared", "shared", "b", "b", "c", "c", "c", "d"} {
		f.provider.addHost(zone, amounts{8000, 16 * 1024 * mib})
	}
	f.auditor = newAuditor(t, cluster.Config, f.provider, f.clock)
	f.consumers = newConsumers(t, api, f.auditor.foreignWrites)
	f.hostile = newHostile(t, cluster.Config, api, f.auditor.foreignWrites)
	f.replicas = startReplicas(t, cluster, api)
	f.consumers.createAll(seed)
	const stream = 100 // Of its own, so that the other decisions of a seed stay the same.
	f.provider.addWaiting(rand.New(rand.NewPCG(seed, stream)), f.consumers.ids[0])
	return f
}

// step makes many changes at once and kills the leader meanwhile. Every other step also kills its
// successor, right after it has begun to lead.
func (f *chaos) step(step int) {
	f.t.Helper()
	leader := f.replicas.leader()
	changes := f.changes(step%3 > 0)
	if step == 3 { // Without changes of the provider, which make the auditor's bounds wider.
		changes.Go(func() { f.consumers.shrinkAll(f.consumers.ids[0]) })
	}
	switch {
	case step%4 == 3:
		f.freeze(leader)
	case step%4 == 1 && f.adversary:
		f.suspend(leader)
	default:
		f.awaitSomeAnswers(40)
		f.replicas.kill(leader)
	}
	next := f.replicas.leader()
	if step%2 == 0 {
		more := f.changes(false)
		f.awaitSomeAnswers(20)
		f.replicas.kill(next)
		f.replicas.leader()
		more.Wait()
	}
	changes.Wait()
}

// changes starts many concurrent changes. The caller waits for them with the returned group.
func (f *chaos) changes(provider bool) *sync.WaitGroup {
	var wg sync.WaitGroup
	one, two := f.newRandom(), f.newRandom()
	wg.Go(func() { f.consumers.burst(one, 40) })
	if three := f.newRandom(); f.adversary {
		wg.Go(func() { f.hostile.burst(three, 40) })
	}
	if !provider {
		return &wg
	}
	everybody := append(slices.Clone(f.consumers.ids), hostileID)
	wg.Go(func() {
		for range 2 + two.IntN(4) {
			f.provider.changeAtRandom(two, everybody)
		}
	})
	if four := f.newRandom(); f.adversary && four.IntN(3) == 0 {
		f.drains++
		wg.Go(func() { f.consumers.drain(f.provider, f.auditor.foreignWrites, pick(four, f.consumers.ids)) })
	}
	return &wg
}

// newRandom returns a new source of randomness, for one goroutine.
func (f *chaos) newRandom() *rand.Rand {
	return rand.New(rand.NewPCG(f.random.Uint64(), f.random.Uint64()))
}

// pause waits for a random time of at most most, and fails the test if a replica ends meanwhile.
func (f *chaos) pause(most time.Duration) {
	f.t.Helper()
	test.Consistently(f.t, time.Duration(f.random.Int64N(int64(most))), func() error {
		for _, r := range f.replicas.all {
			if err := r.Alive(); err != nil {
				return err
			}
		}
		return nil
	})
}

// awaitSomeAnswers waits for some answers or, one time in five, for a random time, so that the next
// fault interrupts a write.
func (f *chaos) awaitSomeAnswers(answers int) {
	if f.random.IntN(5) == 0 {
		f.pause(500 * time.Millisecond)
		return
	}
	f.auditor.awaitWrites(f.random.IntN(answers), 2*time.Second)
}

// freeze stops the API server for a random time, which may exceed the duration of a Lease, and
// kills the leader before, during or after the freeze.
func (f *chaos) freeze(leader *replica) {
	f.t.Helper()
	f.freezes++
	f.awaitSomeAnswers(20)
	at := f.random.IntN(3)
	if at == 0 {
		f.replicas.kill(leader)
	}
	f.clock.freeze()
	test.Must(f.t, f.cluster.FreezeAPIServer())
	f.pause(2 * time.Second)
	if at == 1 {
		f.replicas.kill(leader)
	}
	f.pause(2 * time.Second)
	test.Must(f.t, f.cluster.ThawAPIServer())
	f.clock.thaw()
	if at == 2 {
		next := f.replicas.leader()
		f.awaitSomeAnswers(20)
		f.replicas.kill(next)
	}
}

// suspend stops the leader until another replica leads and has written something. Then it resumes
// the old leader for a while and kills it: whatever the old leader still writes belongs to a term
// that is over.
func (f *chaos) suspend(leader *replica) {
	f.t.Helper()
	f.suspensions++
	f.awaitSomeAnswers(20)
	test.Must(f.t, leader.Suspend())
	f.replicas.dead[leader.identity] = true // No test waits for its leadership again.
	f.replicas.leader()
	f.awaitSomeAnswers(20)
	test.Must(f.t, leader.Resume())
	f.awaitSomeAnswers(20)
	f.replicas.kill(leader)
}

// end waits until everything has settled, and checks that two new replicas find nothing to change.
func (f *chaos) end() {
	f.t.Helper()
	f.hostile.deleteSlices()
	f.provider.restoreAll()
	f.consumers.recreateDeleted(f.newRandom())
	latest, used := awaitSettled(f.t, f.consumers, f.provider)
	test.Eventually(f.t, func() error { return f.auditor.hasSeen(latest) })
	f.auditor.awaitWithinCapacity()
	f.auditor.requireAllSpent(latest, used)
	f.replicas.restart()
	leader := f.replicas.leader()
	test.Eventually(f.t, func() error {
		if !strings.Contains(leader.Log(), "Answering slices") {
			return os.ErrNotExist
		}
		return nil
	})
	requireQuiet(f.t, f.consumers, latest)
	test.Check(f.t, f.auditor.hasSeen(latest))
}
