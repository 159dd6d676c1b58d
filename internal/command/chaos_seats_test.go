package command

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/test"
)

const (
	// seatKills is the number of times that the leader is killed while slices have seats.
	seatKills = 5
	seatNodes = 8
	// seatSlices is the number of slices of each of seatConsumers consumers.
	seatSlices, seatConsumers = 6, 4
	hostnameLabel             = "kubernetes.io/hostname"
)

// Slices of a class with fit: Node and of one with fit: Pool share the nodes. Nodes are resized, cordoned and deleted,
// pods of the provider come and go, slices change their requests, and the leader is killed again and again. No answer
// ever raises what is granted from a node above what the node has had lately, no slice leaves a node that is usable,
// and in the end each Grant names the node of the answer.
func TestNoNodeIsGrantedTwiceUnderChaos(t *testing.T) {
	f := newSeatChaos(t)
	f.replicas.leader()
	for step := 0; f.replicas.kills < seatKills && !t.Failed(); step++ {
		leader := f.replicas.leader()
		var changes sync.WaitGroup
		one, two := f.newRandom(), f.newRandom()
		changes.Go(func() { inParallel(one, 2, 12, f.changeSlice) })
		changes.Go(func() {
			for range 4 {
				f.changeNode(two)
			}
		})
		f.awaitAnswers(f.random.IntN(10))
		f.replicas.kill(leader)
		f.replicas.leader()
		changes.Wait()
		t.Logf("%v: step %d, %d answers", f.clock.now(), step, f.answers())
	}
	f.end()
}

// seatChaos is a provider whose nodes are granted one by one.
type seatChaos struct {
	t        *testing.T
	api      client.Client
	clock    *clock
	replicas *replicas
	random   *rand.Rand
	keys     []client.ObjectKey

	mu sync.Mutex
	// nodes holds the states of each node, oldest first. pods numbers the provider's own pods.
	nodes map[string][]nodeState
	// slices has the present answers.
	slices         map[string]seatAnswer
	writes, raises int
	wrote          chan struct{}
}

// nodeState is what a node had from a time on: what its own pods leave of it, nothing if it is gone.
type nodeState struct {
	from, until    time.Duration
	size, local    amounts
	gone, cordoned bool
}

// seatAnswer is the answer to a slice: what it is granted, and the node, empty for a slice that is granted from the pool.
type seatAnswer struct {
	class, node string
	granted     amounts
}

func newSeatChaos(t *testing.T) *seatChaos {
	t.Helper()
	cluster := controlplane.StartTest(t, controlplane.Options{CRDDirs: []string{
		filepath.Join("..", "..", "config", "crd", "bases"),
		controlplane.LiqoCRD(t, "authentication.liqo.io_resourceslices.yaml"),
		controlplane.LiqoCRD(t, "authentication.liqo.io_tenants.yaml"), shadowPodCRD(t),
	}})
	api, err := client.New(cluster.Config, client.Options{Scheme: newScheme(t)})
	test.Must(t, err)
	f := &seatChaos{
		t: t, api: api, clock: newClock(), random: rand.New(rand.NewPCG(shortSeed, 0)),
		nodes: map[string][]nodeState{}, slices: map[string]seatAnswer{}, wrote: make(chan struct{}, 1),
	}
	for i := range seatNodes {
		f.setNode(fmt.Sprint("node-", i), nodeState{size: amounts{8000, 16 * 1024 * mib}})
	}
	for _, p := range []*v1alpha1.ResourcePolicy{seatPolicy("gold", v1alpha1.FitNode), seatPolicy("silver", v1alpha1.FitPool)} {
		test.Must(t, api.Create(t.Context(), p))
	}
	watcher, err := dynamic.NewForConfig(cluster.Config)
	test.Must(t, err)
	versions(t, watcher, f.clock.now, f.observe)
	f.replicas = startReplicas(t, cluster, api)
	f.createSlices()
	return f
}

func seatPolicy(class string, fit v1alpha1.SliceFit) *v1alpha1.ResourcePolicy {
	p := &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: v1alpha1.ResourcePolicySpec{
		Class: class, UpdateThresholdPercent: new(int32),
		Offer: v1alpha1.PolicyOffer{Nodes: &v1alpha1.Nodes{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}},
		}},
		Slices: &v1alpha1.Slices{Fit: fit, Defaults: v1alpha1.Quantities{}},
	}}
	p.Spec.Slices.EnforcePlacement = fit == v1alpha1.FitNode
	return p
}

func (f *seatChaos) createSlices() {
	c := &consumers{t: f.t, api: f.api, exists: map[client.ObjectKey]bool{}}
	for i := range seatConsumers {
		id := fmt.Sprintf("consumer-%02d", i)
		for _, o := range []client.Object{tenantNamespaceOf(id), tenantOf(id)} {
			test.Must(f.t, f.api.Create(f.t.Context(), o))
		}
		for j := range seatSlices {
			key := client.ObjectKey{Namespace: namespaceOf(id), Name: fmt.Sprintf("slice-%02d", j)}
			f.keys = append(f.keys, key)
			c.create(f.t.Context(), key, map[bool]string{true: "silver", false: "gold"}[j == 0], anyRequest(f.random))
		}
	}
}

func (f *seatChaos) newRandom() *rand.Rand {
	return rand.New(rand.NewPCG(f.random.Uint64(), f.random.Uint64()))
}

func (f *seatChaos) must(err error) {
	if err != nil && f.t.Context().Err() == nil {
		f.t.Errorf("the test cannot change the provider: %v", err)
	}
}

// changeSlice lets a slice ask for something else.
func (f *seatChaos) changeSlice(r *rand.Rand) {
	key, more := pick(r, f.keys), anyRequest(r)
	if r.IntN(3) == 0 {
		more[cpu] *= 3
	}
	s := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	f.must(f.api.Patch(f.t.Context(), s, patchOf(object{"spec": object{"resources": more.list()}})))
}

// changeNode resizes, cordons, deletes or restores a node, or changes what the provider's own pods use of it.
func (f *seatChaos) changeNode(r *rand.Rand) {
	name := fmt.Sprint("node-", r.IntN(seatNodes))
	next := f.state(name)
	switch r.IntN(6) {
	case 0:
		next.cordoned = !next.cordoned
	case 1:
		next = nodeState{gone: !next.gone, size: amounts{8000, 16 * 1024 * mib}}
	case 2, 3:
		next.size = amounts{2000 + 1000*r.Int64N(8), (4 + r.Int64N(12)) * 1024 * mib}
	default:
		next.local = amounts{500 * r.Int64N(8), 0}
	}
	if next.gone {
		next.local = amounts{}
	}
	f.setNode(name, next)
}

func (f *seatChaos) state(name string) nodeState {
	f.mu.Lock()
	defer f.mu.Unlock()
	if all := f.nodes[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nodeState{gone: true}
}

// setNode makes a node so. During the change, the states before and after it are both in force.
func (f *seatChaos) setNode(name string, next nodeState) {
	was := f.state(name)
	next.from, next.until = f.clock.now(), time.Duration(1<<62)
	f.mu.Lock()
	f.nodes[name] = append(f.nodes[name], next)
	last := len(f.nodes[name]) - 2
	f.mu.Unlock()
	f.must(f.applyNode(f.t.Context(), name, was, next))
	f.mu.Lock()
	defer f.mu.Unlock()
	if last >= 0 {
		f.nodes[name][last].until = f.clock.now()
	}
}

func (f *seatChaos) applyNode(ctx context.Context, name string, was, next nodeState) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "a", hostnameLabel: name}}}
	pod := podOf("local-"+name, load{node: name, requests: next.local})
	pod.Spec.NodeName = name
	if was.local != next.local && was.local != (amounts{}) {
		if err := f.api.Delete(ctx, pod.DeepCopy(), client.GracePeriodSeconds(0)); err != nil {
			return fmt.Errorf("deleting the pod of %s: %w", name, err)
		}
	}
	if next.gone {
		return client.IgnoreNotFound(f.api.Delete(ctx, n))
	}
	if was.gone {
		if err := f.api.Create(ctx, n.DeepCopy()); err != nil {
			return fmt.Errorf("creating %s: %w", name, err)
		}
	}
	if was.local != next.local && next.local != (amounts{}) {
		if err := f.api.Create(ctx, pod); err != nil {
			return fmt.Errorf("creating the pod of %s: %w", name, err)
		}
	}
	spec := object{"taints": nil, "unschedulable": next.cordoned} // The API server taints each new node as not ready.
	if err := f.api.Patch(ctx, n.DeepCopy(), patchOf(object{"spec": spec})); err != nil {
		return fmt.Errorf("changing %s: %w", name, err)
	}
	list := next.size.list()
	list[corev1.ResourcePods] = *resource.NewQuantity(hostPods, resource.DecimalSI)
	return f.api.Status().Patch(ctx, n, patchOf(object{"status": object{
		"allocatable": list, "capacity": list,
		"conditions": []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}))
}

// recent returns the states of a node that were in force at some time since lag before.
func (f *seatChaos) recent(name string, at time.Duration) []nodeState {
	return slices.DeleteFunc(slices.Clone(f.nodes[name]), func(s nodeState) bool { return s.from > at || s.until < at-lag })
}

func seatAnswerOf(s *authv1beta1.ResourceSlice) seatAnswer {
	is := sliceStateOf(s)
	out := seatAnswer{class: is.class, node: s.Status.NodeSelector[hostnameLabel], granted: is.granted}
	if is.status != authv1beta1.ResourceSliceConditionAccepted {
		out.node = ""
	}
	return out
}

// observe checks one version of a slice.
func (f *seatChaos) observe(v sliceVersion) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v.err != nil {
		f.t.Errorf("reading a slice: %v", v.err)
		return
	}
	key := v.slice.Namespace + "/" + v.slice.Name
	if v.event == watch.Deleted {
		delete(f.slices, key)
		return
	}
	was, is := f.slices[key], seatAnswerOf(v.slice)
	f.slices[key] = is
	if was == is {
		return
	}
	f.writes++
	select {
	case f.wrote <- struct{}{}:
	default:
	}
	states := f.recent(is.node, v.at)
	if was.node != is.node {
		f.checkMove(key, was, is, v.at)
		was.granted = amounts{}
	}
	if is.class != "gold" || len(f.nodes[is.node]) == 0 || is.granted.within(was.granted) {
		return
	}
	f.raises++
	var sum, most amounts
	for _, s := range f.slices {
		if s.node == is.node && s.class == "gold" {
			sum = sum.plus(s.granted)
		}
	}
	for _, s := range states {
		for i := range most {
			most[i] = max(most[i], s.size[i]-s.local[i])
		}
	}
	for i := range sum {
		if is.granted[i] > was.granted[i] && sum[i] > most[i] {
			f.t.Errorf("%v: %s was raised from %d to %d on %s: %d of resource %d are granted there, which had at most %d: %+v",
				v.at, key, was.granted, is.granted, is.node, sum[i], i, most[i], f.slices)
		}
	}
}

// checkMove checks that a slice leaves only a node that was not usable for a moment.
func (f *seatChaos) checkMove(key string, was, is seatAnswer, at time.Duration) {
	if was.class != "gold" || was.granted == (amounts{}) || len(f.nodes[was.node]) == 0 {
		return
	}
	if !slices.ContainsFunc(f.recent(was.node, at), func(s nodeState) bool { return s.gone }) {
		f.t.Errorf("%v: %s was moved from %s to %q, although its node was there: %v to %v", at, key, was.node, is.node, was, is)
	}
}

func (f *seatChaos) answers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// awaitAnswers waits for some answers, but not for long.
func (f *seatChaos) awaitAnswers(more int) {
	over := time.NewTimer(2 * time.Second)
	defer over.Stop()
	for until := f.answers() + more; f.answers() < until; {
		select {
		case <-f.wrote:
		case <-over.C:
			return
		case <-f.t.Context().Done():
			return
		}
	}
}

// end restores all nodes, and waits until every slice has a seat on a node and on record, and no node is exceeded.
func (f *seatChaos) end() {
	f.t.Helper()
	for i := range seatNodes {
		f.setNode(fmt.Sprint("node-", i), nodeState{size: amounts{16000, 32 * 1024 * mib}})
	}
	test.Eventually(f.t, func() error {
		var list authv1beta1.ResourceSliceList
		var grants v1alpha1.GrantList
		if err := f.api.List(f.t.Context(), &list); err != nil {
			return err
		}
		if err := f.api.List(f.t.Context(), &grants); err != nil {
			return err
		}
		seats, sums := map[string]string{}, map[string]amounts{}
		for i := range list.Items {
			s := &list.Items[i]
			a := seatAnswerOf(s)
			if a.class == "gold" {
				seats[string(s.UID)], sums[a.node] = a.node, sums[a.node].plus(a.granted)
				if !a.granted.within(amountsIn(s.Spec.Resources)) || !amountsIn(s.Spec.Resources).within(a.granted) {
					return fmt.Errorf("%s asks for %d and has %d on %q", s.Name, amountsIn(s.Spec.Resources), a.granted, a.node)
				}
			}
		}
		recorded := map[string]string{}
		for i := range grants.Items {
			if g := &grants.Items[i].Spec; g.Class == "gold" {
				recorded[g.Slice.UID] = g.Seat
			}
		}
		if !maps.Equal(seats, recorded) {
			return fmt.Errorf("the answers name the nodes %v, the Grants %v", seats, recorded)
		}
		for node, sum := range sums {
			if !sum.within(amounts{16000, 32 * 1024 * mib}) {
				return fmt.Errorf("%d are granted from %s", sum, node)
			}
		}
		return nil
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.raises == 0 {
		f.t.Error("no answer raised anything on a node")
	}
}
