package capacity

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gpuNode is a node with so many GPUs of a driver, in one pool.
func gpuNode(name string, gpus int64) Node {
	return node(name, func(n *Node) { n.Devices = map[string]Amounts{"driver/" + name: {gpu: gpus}} })
}

func gpuPod(key, node, consumer string, gpus int64) Pod {
	return Pod{Key: key, Node: node, Consumer: consumer, Creator: "slice", Requests: Amounts{gpu: gpus}}
}

// gpus are the GPUs of a pool: the free ones, those that consumers' pods use, and those of rome, its creator and
// oslo.
type gpus struct{ Free, InUse, Rome, OfSlice, Oslo int64 }

func gpusOf(l *Ledger) gpus {
	v := l.View([]Selection{{}}, gpu)
	c := slices.Index(v.Columns, gpu)
	used := func(id string) int64 {
		if u := v.Used.Of(id); u != nil {
			return u.Everywhere.At(c)
		}
		return 0
	}
	rome := v.Used.Of("rome").By("slice")
	return gpus{v.Pools[0].Free.At(c), v.Pools[0].InUse.At(c), used("rome"), rome.At(c), used("oslo")}
}

func wantGPUs(t *testing.T, l *Ledger, when string, want gpus) {
	t.Helper()
	if diff := cmp.Diff(want, gpusOf(l)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestAClaimCountsForWhomItIsReserved(t *testing.T) {
	l := NewLedger()
	l.SetNode(gpuNode("n", 8))
	claim := Claim{Key: ClaimKey("ns", "c"), Node: "n", Pods: []string{"p"}, Devices: Amounts{gpu: 2}}
	l.SetClaim(claim)
	wantGPUs(t, l, "before its pod is known", gpus{Free: 6})
	l.SetPod(gpuPod("p", "n", "rome", 0))
	wantGPUs(t, l, "of a consumer's pod", gpus{Free: 8, InUse: 2, Rome: 2, OfSlice: 2})
	l.DeletePod("p")
	wantGPUs(t, l, "after the pod has finished", gpus{Free: 8, InUse: 2, Rome: 2, OfSlice: 2})
	claim.Pods = nil
	l.SetClaim(claim)
	wantGPUs(t, l, "while it is reserved for none", gpus{Free: 8, InUse: 2, Rome: 2, OfSlice: 2})
	claim.Pods = []string{"p", "q"}
	l.SetPod(gpuPod("p", "n", "rome", 0))
	l.SetPod(gpuPod("q", "n", "oslo", 0))
	l.SetClaim(claim)
	wantGPUs(t, l, "shared by two consumers", gpus{Free: 6})
	l.DeletePod("q")
	wantGPUs(t, l, "after one of them has finished", gpus{Free: 8, InUse: 2, Rome: 2, OfSlice: 2})
	l.ReplacePods(slices.Values([]Pod{gpuPod("local", "n", "", 0)}))
	wantGPUs(t, l, "after a list of pods without its pod", gpus{Free: 8, InUse: 2, Rome: 2, OfSlice: 2})
	l.DeleteClaim(claim.Key)
	wantGPUs(t, l, "after its deletion", gpus{Free: 8})
}

func TestAClaimThatTheSchedulerMadeForARequestCountsOnce(t *testing.T) {
	for _, consumer := range []string{"", "rome"} {
		l, key := NewLedger(), ClaimKey("ns", "made")
		l.SetNode(gpuNode("n", 8))
		claim := Claim{Key: key, Node: "n", Pods: []string{"p"}, Devices: Amounts{gpu: 2}}
		by := func(used int64) gpus {
			if consumer == "" {
				return gpus{Free: 8 - used}
			}
			return gpus{Free: 8, InUse: used, Rome: used, OfSlice: used}
		}
		l.SetClaim(claim)
		p := gpuPod("p", "n", consumer, 2)
		p.Claim = key
		l.SetPod(p)
		wantGPUs(t, l, "a pod that requests by name", by(2))
		p.Requests = Amounts{"deviceclass.resource.kubernetes.io/gpu": 2}
		l.SetPod(p)
		wantGPUs(t, l, "a pod that requests by another name of the class", by(2))
		p.Requests = Amounts{gpu: 2}
		l.SetPod(p)
		claim.Devices = Amounts{gpu: 3}
		l.SetClaim(claim)
		wantGPUs(t, l, "a claim with more than the pod requests", by(3))
		p.Claim = ""
		l.SetPod(p)
		wantGPUs(t, l, "a claim that only names itself so", by(5))
		l.DeletePod("p")
		wantGPUs(t, l, "a claim whose pod has finished", by(3))
		l.DeleteClaim(key)
		wantGPUs(t, l, "no claim", gpus{Free: 8})
	}
}

func TestAClaimIsNoPod(t *testing.T) {
	l := NewLedger()
	l.SetNode(gpuNode("n", 8))
	l.SetPod(gpuPod("p", "n", "rome", 0))
	l.SetClaim(Claim{Key: ClaimKey("ns", "c"), Node: "n", Pods: []string{"p"}, Devices: Amounts{gpu: 2}})
	for what, l := range map[string]*Ledger{"the ledger": l, "its copy": l.Copy().Ledger()} {
		v := l.View([]Selection{{}})
		if got := v.Used.Of("rome").Everywhere.At(slices.Index(v.Columns, Pods)); got != 1 {
			t.Errorf("rome has %d pods in %s, want 1", got, what)
		}
	}
}

// TestClaimsAndPodsInAnyOrderCountAlike compares a ledger after many events with one that got the last states.
func TestClaimsAndPodsInAnyOrderCountAlike(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	keys := []string{"a", "b", "c"}
	for range 300 {
		l, pods, all := NewLedger(), map[string]Pod{}, map[string]Claim{}
		l.SetNode(gpuNode("n", 20))
		for range 30 {
			key := keys[r.IntN(len(keys))]
			switch r.IntN(5) {
			case 0, 1:
				p := gpuPod(key, "n", []string{"", "rome", "oslo"}[r.IntN(3)], r.Int64N(3))
				if r.IntN(2) == 0 {
					p.Claim = ClaimKey("ns", key)
				}
				pods[key] = p
				l.SetPod(p)
			case 2, 3:
				c := Claim{Key: ClaimKey("ns", key), Node: "n", Devices: Amounts{gpu: r.Int64N(4)}}
				c.Pods = keys[r.IntN(2) : 2+r.IntN(2)]
				all[key] = c
				l.SetClaim(c)
			default:
				delete(all, key)
				l.DeleteClaim(ClaimKey("ns", key))
			}
		}
		want := NewLedger()
		for _, c := range all {
			want.SetClaim(c)
		}
		for _, p := range pods {
			want.SetPod(p)
		}
		want.SetNode(gpuNode("n", 20))
		wantGPUs(t, l, "after events in any order", gpusOf(want))
	}
}

func TestDevicesCountWhereTheNodeListsNone(t *testing.T) {
	n := gpuNode("n", 4)
	n.Devices["driver/more"] = Amounts{gpu: 2, "example.com/nic": 1}
	l := NewLedger()
	for _, c := range []struct {
		when   string
		listed Amounts
		want   int64
	}{
		{"nothing is listed", Amounts{}, 6}, {"0 is listed", Amounts{gpu: 0}, 6}, {"3 are listed", Amounts{gpu: 3}, 3},
	} {
		n.Allocatable = c.listed
		l.SetNode(n)
		if got := gpusOf(l).Free; got != c.want {
			t.Errorf("%s: %d GPUs, want %d", c.when, got, c.want)
		}
		if raw, _ := l.Node("n"); !cmp.Equal(c.listed, raw.Allocatable) {
			t.Errorf("%s: the node lists %v", c.when, raw.Allocatable)
		}
	}
	n.Virtual = true
	l.SetNode(n)
	if got := l.Copy().Nodes[0].Allocatable[gpu]; got != 3 {
		t.Errorf("a virtual node has %d GPUs, want the 3 that it lists", got)
	}
}

func TestWhatIsNotCountedIsListedForNodesThatLackIt(t *testing.T) {
	l := NewLedger()
	l.SetNode(node("lists", allocatable(Amounts{gpu: 1})))
	l.SetNode(node("lacks"))
	no := func(node string) Uncounted { return Uncounted{node, gpu, "why"} }
	l.SetUncounted("pool 1", []Uncounted{no(""), no("lacks"), no("lists"), no("unknown")})
	l.SetUncounted("pool 2", []Uncounted{no("lacks")})
	if diff := cmp.Diff([]Uncounted{no(""), no("lacks")}, l.Uncounted()); diff != "" {
		t.Error(diff)
	}
	l.SetUncounted("pool 1", nil)
	l.SetUncounted("pool 2", nil)
	if got := l.Uncounted(); len(got) > 0 {
		t.Errorf("after the pools are gone: %v", got)
	}
}
