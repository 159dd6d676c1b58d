package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/controllers"
	"proffer.dev/proffer/hack/controlplane"
)

const (
	faultSteps = 20
	leastKills = 30
	// seedEnv repeats what a run did, as far as the test decides on it.
	seedEnv = "PROFFER_FAULTS_SEED"
)

// faults is a provider with two replicas of the operator, its consumers, and who keeps the account.
type faults struct {
	t         *testing.T
	cluster   *controlplane.Cluster
	clock     *clock
	provider  *provider
	consumers *consumers
	replicas  *replicas
	account   *account
	random    *rand.Rand
	freezes   int
}

// Consumers ask for more than there is, and change what they ask for; nodes, pods and policies come, go and change; the replica that writes
// is killed in the middle of all that, again and again; the API server stands still. What account checks holds of every answer that is ever
// written; after each step no more is accepted than there is; and in the end every slice is answered as internal/grant says by itself.
func TestNothingIsPromisedTwiceWhateverFails(t *testing.T) {
	f := newFaults(t)
	f.replicas.leader()
	f.account.within()
	for step := range faultSteps {
		f.step(step)
		f.account.within()
		if t.Failed() {
			break
		}
	}
	f.end()
	a := f.account
	a.mu.Lock()
	defer a.mu.Unlock()
	t.Logf("%d kills, %d freezes of the API server, %d answers seen, %d raises among them, %d checks",
		f.replicas.kills, f.freezes, a.writes, a.raises, a.checks)
	if f.replicas.kills < leastKills && !t.Failed() {
		t.Errorf("%d kills, want %d at least", f.replicas.kills, leastKills)
	}
}

func newFaults(t *testing.T) *faults {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s=%q is no number", seedEnv, text)
		}
	}
	t.Logf("%s=%d", seedEnv, seed)

	cluster := controlplane.StartTest(t, controlplane.Options{CRDDirs: []string{
		filepath.Join("..", "..", "config", "crd", "bases"),
		liqoCRD(t, "authentication.liqo.io_resourceslices.yaml"), liqoCRD(t, "authentication.liqo.io_tenants.yaml"),
	}})
	scheme := controllers.NewScheme()
	for _, add := range []func() error{
		func() error { return coordinationv1.AddToScheme(scheme) },
		func() error { return authv1beta1.AddToScheme(scheme) },
	} {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	watching, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	f := &faults{t: t, cluster: cluster, clock: newClock(), random: rand.New(rand.NewPCG(seed, 0))}
	f.provider = newProvider(t, api, f.clock)
	for _, zone := range []string{"a", "a", "a", "shared", "shared", "b", "b", "c", "c", "c", "d"} {
		f.provider.addHost(zone, amounts{8000, 16 * 1024 * mib})
	}
	f.account = newAccount(t, watching, f.provider, f.clock)
	f.consumers = newConsumers(t, api)
	f.replicas = startReplicas(t, cluster, api)
	f.consumers.createAll(seed)
	return f
}

// liqoCRD is the file of one of Liqo's own definitions.
func liqoCRD(t *testing.T, name string) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/liqotech/liqo").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "deployments", "liqo", "charts", "liqo-crds", "crds", name)
}

// step changes many things at once and kills the leader meanwhile; in every other step also the one that takes over, when it has only begun.
func (f *faults) step(step int) {
	f.t.Helper()
	leader := f.replicas.leader()
	changes := f.changes(step%3 > 0)
	if step%4 == 3 {
		f.freeze(leader)
	} else {
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
	if provider {
		wg.Go(func() {
			for range 2 + two.IntN(4) {
				f.provider.disturb(two, f.consumers.ids)
			}
		})
	}
	return &wg
}

// another is randomness for one goroutine.
func (f *faults) another() *rand.Rand {
	return rand.New(rand.NewPCG(f.random.Uint64(), f.random.Uint64()))
}

// pause waits for some time, of which nothing is expected but that much happens meanwhile.
func (f *faults) pause(most time.Duration) {
	select {
	case <-time.After(time.Duration(f.random.Int64N(int64(most)))):
	case <-f.t.Context().Done():
	}
}

// moment waits for some time or, mostly, for some answers: it is then that there is something to be broken off.
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

// end lets everything come to rest, and has two new replicas find nothing to change.
func (f *faults) end() {
	f.t.Helper()
	f.consumers.restore(f.another())
	standing := settled(f.t, f.consumers, f.provider)
	f.account.within()
	f.account.spent(standing)
	f.replicas.restart()
	leader := f.replicas.leader()
	eventually(f.t, func() error {
		if !strings.Contains(leader.Log(), "Answering slices") {
			return os.ErrNotExist
		}
		return nil
	})
	staysQuiet(f.t, f.consumers, standing)
	watched := f.account.standing()
	for key, s := range standing {
		if watched[key].version != s.version {
			f.t.Errorf("of %s the version %s was not seen, but %s", key, s.version, watched[key].version)
		}
	}
}
