package command

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test"
)

const (
	chaosConsumers = 12
	chaosSlices    = 300
)

// consumers are the clusters that request resources. The test writes their objects as
// crd-replicator and Liqo would.
type consumers struct {
	t      *testing.T
	api    client.Client
	writes *foreignWrites
	ids    []string

	mu sync.Mutex
	// freed is broadcast when slices are no longer being changed.
	freed *sync.Cond
	// exists has every slice by key and whether it currently exists. busy has those that are being
	// changed.
	exists map[client.ObjectKey]bool
	busy   map[client.ObjectKey]bool
}

func namespaceOf(id string) string { return "liqo-tenant-" + id }

func tenantOf(id string) *authv1beta1.Tenant {
	return &authv1beta1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: namespaceOf(id)},
		Spec: authv1beta1.TenantSpec{
			ClusterID: corev1beta1.ClusterID(id), TenantCondition: authv1beta1.TenantConditionActive,
		},
	}
}

func newConsumers(t *testing.T, api client.Client, writes *foreignWrites) *consumers {
	c := &consumers{
		t: t, api: api, writes: writes, exists: map[client.ObjectKey]bool{}, busy: map[client.ObjectKey]bool{},
	}
	c.freed = sync.NewCond(&c.mu)
	for i := range chaosConsumers {
		id := fmt.Sprintf("consumer-%02d", i)
		c.ids = append(c.ids, id)
		namespace := tenantNamespaceOf(id)
		for _, o := range []client.Object{namespace, tenantOf(id)} {
			test.Must(t, api.Create(t.Context(), o))
		}
		for j := range chaosSlices / chaosConsumers {
			c.exists[client.ObjectKey{Namespace: namespace.Name, Name: fmt.Sprintf("slice-%02d", j)}] = false
		}
	}
	return c
}

func (c *consumers) must(err error) {
	if err != nil && c.t.Context().Err() == nil {
		c.t.Errorf("the test cannot change a slice: %v", err)
	}
}

// mostRequested is the most that a slice requests.
var mostRequested = amounts{8 * 200, 8 * 128 * mib}

func anyRequest(r *rand.Rand) amounts {
	return amounts{200 + r.Int64N(8)*200, (1 + r.Int64N(8)) * 128 * mib}
}

// servedClasses returns the classes that the operator serves.
func servedClasses() []string {
	served := []string{"gold", "silver", "bronze"}
	if os.Getenv(adversaryEnv) != "" {
		served = append(served, "brass")
	}
	return served
}

// anyClass returns mostly a class that the operator serves, and sometimes the one that Liqo itself
// answers.
func anyClass(r *rand.Rand) string {
	return pick(r, append(slices.Repeat(servedClasses(), 2), "default"))
}

// createAll creates all slices, a few at a time.
func (c *consumers) createAll(seed uint64) {
	keys := slices.SortedFunc(maps.Keys(c.exists), byKey)
	var wg sync.WaitGroup
	const workers = 4
	for w := range workers {
		r := rand.New(rand.NewPCG(seed, uint64(w)))
		wg.Go(func() {
			for i := w; i < len(keys); i += workers {
				c.create(c.t.Context(), keys[i], pick(r, servedClasses()), anyRequest(r))
			}
		})
	}
	wg.Wait()
}

func byKey(a, b client.ObjectKey) int {
	return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
}

func (c *consumers) create(ctx context.Context, key client.ObjectKey, class string, request amounts) {
	id := key.Namespace[len(namespaceOf("")):]
	s := &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{
			"liqo.io/replicated": "true", "liqo.io/originID": id, "liqo.io/remote-cluster-id": id,
		}},
		Spec: authv1beta1.ResourceSliceSpec{
			ConsumerClusterID: new(corev1beta1.ClusterID(id)), ProviderClusterID: new(corev1beta1.ClusterID("here")),
			Class: authv1beta1.ResourceSliceClass(class), Resources: request.list(), CSR: []byte("request"),
		},
	}
	if err := c.api.Create(ctx, s); err != nil {
		c.must(err)
		return
	}
	s.Status.Conditions = []authv1beta1.ResourceSliceCondition{{
		Type: authv1beta1.ResourceSliceConditionTypeAuthentication, Status: authv1beta1.ResourceSliceConditionAccepted,
		Reason: "Because", LastTransitionTime: metav1.NewTime(time.Now()),
	}}
	c.must(c.api.Status().Update(ctx, s))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exists[key] = true
}

// reserve reserves a random slice for a change.
func (c *consumers) reserve(r *rand.Rand) (key client.ObjectKey, exists bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(c.exists), byKey)
	for {
		if key = pick(r, keys); !c.busy[key] {
			c.busy[key] = true
			return key, c.exists[key]
		}
	}
}

// free ends the reservation of slices.
func (c *consumers) free(keys ...client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		delete(c.busy, key)
	}
	c.freed.Broadcast()
}

// change changes one random slice.
func (c *consumers) change(r *rand.Rand) {
	key, exists := c.reserve(r)
	defer c.free(key)
	ctx := c.t.Context()
	if !exists {
		class := anyClass(r)
		if c.create(ctx, key, class, anyRequest(r)); isLiqoClass(class) {
			c.acceptAsLiqo(key)
		}
		return
	}
	s := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	switch r.IntN(10) {
	case 0, 1:
		if err := c.api.Delete(ctx, s); err != nil {
			c.must(err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.exists[key] = false
	case 2:
		class := anyClass(r)
		if c.must(c.api.Patch(ctx, s, patchOf(object{"spec": object{"class": class}}))); isLiqoClass(class) {
			c.acceptAsLiqo(key)
		}
	default:
		c.must(c.api.Patch(ctx, s, patchOf(object{"spec": object{"resources": anyRequest(r).list()}})))
	}
}

// shrinkAll lets all slices of a consumer ask for the least.
func (c *consumers) shrinkAll(id string) {
	keys := c.reserveAll(id)
	for _, key := range keys {
		s := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		least := amounts{200, 128 * mib}
		c.must(client.IgnoreNotFound(
			c.api.Patch(c.t.Context(), s, patchOf(object{"spec": object{"resources": least.list()}}))))
	}
	c.free(keys...)
}

// burst changes many slices concurrently.
func (c *consumers) burst(r *rand.Rand, changes int) { inParallel(r, 4, changes, c.change) }

// inParallel calls do times/workers times from each of the workers, each with its own randomness.
func inParallel(r *rand.Rand, workers, times int, do func(*rand.Rand)) {
	var wg sync.WaitGroup
	for range workers {
		r := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		wg.Go(func() {
			for range times / workers {
				do(r)
			}
		})
	}
	wg.Wait()
}

// recreateDeleted recreates the slices that were deleted.
func (c *consumers) recreateDeleted(r *rand.Rand) {
	for _, key := range slices.SortedFunc(maps.Keys(c.exists), byKey) {
		if !c.exists[key] {
			c.create(c.t.Context(), key, pick(r, servedClasses()), anyRequest(r))
		}
	}
}
