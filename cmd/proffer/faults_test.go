package main

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
)

const (
	leastKills = 30
	// killsEnv is how many times at least the leader is killed, where that is more.
	killsEnv = "PROFFER_FAULTS_KILLS"
	// adversaryEnv, where it is set, adds the hostile consumer, suspended leaders, drains, and policies, Tenants and classes that come and go.
	adversaryEnv = "PROFFER_FAULTS_ADVERSARY"
	// seedEnv repeats what a run did, as far as the test decides on it. The long form does something else each time; the short form does the same,
	// so that what CI says is about the change, and not about luck.
	seedEnv   = "PROFFER_FAULTS_SEED"
	shortSeed = 1795400972992973105 // In its step 2 two classes come to overlap that have granted more than the larger of them has.
)

// faults is a provider with two replicas of the operator, its consumers, and who keeps the account.
type faults struct {
	t         *testing.T
	cluster   *controlplane.Cluster
	clock     *clock
	provider  *provider
	consumers *consumers
	hostile   *hostile
	replicas  *replicas
	account   *account
	random    *rand.Rand
	// adversary is whether adversaryEnv is set.
	adversary bool
	freezes   int
	// suspensions and drains are how often each was done, as freezes is.
	suspensions, drains int
}

// Consumers ask for more than there is, and change what they ask for; nodes and pods come, go and change, policies change and share nodes,
// consumers are cordoned; the replica that writes is killed in the middle of all that, again and again; the API server stands still. In the
// long form (make soak-faults) one of the consumers does all that its role allows, policies and Tenants come and go, consumers are drained, and
// leaders are suspended. What account checks holds of every answer that is ever written; after each step no more is
// accepted than there is, and what a consumer has granted itself is taken back; and in the end, when the hostile one has gone, every slice of
// the others is answered as internal/grant says by itself.
func TestNothingIsPromisedTwiceWhateverFails(t *testing.T) {
	f := newFaults(t)
	t.Logf("%v: all asked", f.clock.now())
	f.replicas.leader()
	f.account.within()
	t.Logf("%v: all answered", f.clock.now())
	least := leastKills
	if text := os.Getenv(killsEnv); text != "" {
		kills, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s=%q is no number", killsEnv, text)
		}
		least = max(least, kills)
	}
	for step := 0; f.replicas.kills < least && !t.Failed(); step++ {
		f.step(step)
		f.account.within()
		t.Logf("%v: step %d, %d kills", f.clock.now(), step, f.replicas.kills)
	}
	f.end()
	a := f.account
	a.mu.Lock()
	defer a.mu.Unlock()
	t.Logf("%d kills, %d freezes of the API server, %d suspensions of the leader, %d drains, %d answers seen, %d raises among them, %d checks",
		f.replicas.kills, f.freezes, f.suspensions, f.drains, a.writes, a.raises, a.checks)
	if f.adversary {
		t.Logf("done by the hostile consumer %s", f.hostile.did(t))
	}
}

func newFaults(t *testing.T) *faults {
	t.Helper()
	adversary, seed := os.Getenv(adversaryEnv) != "", uint64(shortSeed)
	if adversary {
		seed = uint64(time.Now().UnixNano())
	}
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s=%q is no number", seedEnv, text)
		}
	}
	t.Logf("%s=%d", seedEnv, seed)

	cluster := controlplane.StartTest(t, controlplane.Options{CRDDirs: []string{
		filepath.Join("..", "..", "config", "crd", "bases"),
		controlplane.LiqoCRD(t, "authentication.liqo.io_resourceslices.yaml"), controlplane.LiqoCRD(t, "authentication.liqo.io_tenants.yaml"),
	}})
	api, err := client.New(cluster.Config, client.Options{Scheme: newFaultScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	f := &faults{t: t, cluster: cluster, clock: newClock(), random: rand.New(rand.NewPCG(seed, 0)), adversary: adversary}
	f.provider = newProvider(t, api, f.clock, f.adversary)
	for _, zone := range []string{"a", "a", "a", "shared", "shared", "b", "b", "c", "c", "c", "d"} {
		f.provider.addHost(zone, amounts{8000, 16 * 1024 * mib})
	}
	f.account = newAccount(t, cluster.Config, f.provider, f.clock)
	f.consumers = newConsumers(t, api)
	f.hostile = newHostile(t, cluster.Config, api, f.account.forgeries)
	f.replicas = startReplicas(t, cluster, api)
	f.consumers.createAll(seed)
	return f
}

// step changes many things at once and kills the leader meanwhile; in every other step also the one that takes over, when it has only begun.
func (f *faults) step(step int) {
	f.t.Helper()
	leader := f.replicas.leader()
	changes := f.changes(step%3 > 0)
	switch {
	case step%4 == 3:
		f.freeze(leader)
	case step%4 == 1 && f.adversary:
		f.suspend(leader)
	default:
		f.moment(40)
		f.replicas.kill(leader)
	}
	next := f.replicas.leader()
	if step%2 == 0 {
		more := f.changes(false)
		f.moment(20)
		f.replicas.kill(next)
		f.replicas.leader()
		more.Wait()
	}
	changes.Wait()
}

// changes begins to change many things.
func (f *faults) changes(provider bool) *sync.WaitGroup {
	var wg sync.WaitGroup
	one, two := f.another(), f.another()
	wg.Go(func() { f.consumers.burst(one, 40) })
	if three := f.another(); f.adversary {
		wg.Go(func() { f.hostile.burst(three, 40) })
	}
	if !provider {
		return &wg
	}
	everybody := append(slices.Clone(f.consumers.ids), hostileID)
	wg.Go(func() {
		for range 2 + two.IntN(4) {
			f.provider.disturb(two, everybody)
		}
	})
	if four := f.another(); f.adversary && four.IntN(3) == 0 {
		f.drains++
		wg.Go(func() { f.consumers.drain(f.provider, f.account.forgeries, pick(four, f.consumers.ids)) })
	}
	return &wg
}

// another is randomness for one goroutine.
func (f *faults) another() *rand.Rand {
	return rand.New(rand.NewPCG(f.random.Uint64(), f.random.Uint64()))
}

// pause lets a random time pass, in which every replica must live on.
func (f *faults) pause(most time.Duration) {
	f.t.Helper()
	consistently(f.t, time.Duration(f.random.Int64N(int64(most))), func() error {
		for _, r := range f.replicas.all {
			if err := r.Alive(); err != nil {
				return err
			}
		}
		return nil
	})
}

// moment waits for some answers or, one time in five, for a random time, so that the next fault
// interrupts a write.
func (f *faults) moment(answers int) {
	if f.random.IntN(5) == 0 {
		f.pause(500 * time.Millisecond)
		return
	}
	f.account.awaitWrites(f.random.IntN(answers), 2*time.Second)
}

// freeze has the API server stand still for a time, shorter or longer than a Lease lasts, and kills the leader before, during or after it.
func (f *faults) freeze(leader *replica) {
	f.t.Helper()
	f.freezes++
	f.moment(20)
	at := f.random.IntN(3)
	if at == 0 {
		f.replicas.kill(leader)
	}
	f.clock.freeze()
	if err := f.cluster.FreezeAPIServer(); err != nil {
		f.t.Fatal(err)
	}
	f.pause(2 * time.Second)
	if at == 1 {
		f.replicas.kill(leader)
	}
	f.pause(2 * time.Second)
	if err := f.cluster.ThawAPIServer(); err != nil {
		f.t.Fatal(err)
	}
	f.clock.thaw()
	if at == 2 {
		next := f.replicas.leader()
		f.moment(20)
		f.replicas.kill(next)
	}
}

// suspend has the leader stand still until another leads and has written something, and kills it when it has gone on for a while: what it was
// about to write then is of a term that is over.
func (f *faults) suspend(leader *replica) {
	f.t.Helper()
	f.suspensions++
	f.moment(20)
	if err := leader.Suspend(); err != nil {
		f.t.Fatal(err)
	}
	f.replicas.dead[leader.identity] = true // It is never waited for again.
	f.replicas.leader()
	f.moment(20)
	if err := leader.Resume(); err != nil {
		f.t.Fatal(err)
	}
	f.moment(20)
	f.replicas.kill(leader)
}

// end lets everything come to rest, and has two new replicas find nothing to change.
func (f *faults) end() {
	f.t.Helper()
	f.hostile.leave()
	f.provider.heal()
	f.consumers.restore(f.another())
	standing, used := settled(f.t, f.consumers, f.provider)
	eventually(f.t, func() error { return f.account.hasSeen(standing) })
	f.account.within()
	f.account.spent(standing, used)
	f.replicas.restart()
	leader := f.replicas.leader()
	eventually(f.t, func() error {
		if !strings.Contains(leader.Log(), "Answering slices") {
			return os.ErrNotExist
		}
		return nil
	})
	staysQuiet(f.t, f.consumers, standing)
	if err := f.account.hasSeen(standing); err != nil {
		f.t.Error(err)
	}
}
