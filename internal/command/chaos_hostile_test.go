package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	corev1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test"
)

const (
	hostileID     = "hostile"
	hostileSlices = 12
	// hostileFinalizer is a finalizer that no controller handles.
	hostileFinalizer = "hostile.test/pending"
)

// hostile is a consumer that does everything its role allows, with the identity that Liqo gives it
// here.
type hostile struct {
	t *testing.T
	// api acts as the consumer, admin as Liqo.
	api, admin    client.Client
	foreignWrites *foreignWrites

	mu   sync.Mutex
	done map[string]int
}

func newHostile(t *testing.T, config *rest.Config, admin client.Client, f *foreignWrites) *hostile {
	t.Helper()
	for _, o := range append([]client.Object{tenantNamespaceOf(hostileID), tenantOf(hostileID)},
		consumerRole(t, hostileID)...) {
		test.Must(t, admin.Create(t.Context(), o))
	}
	return &hostile{t: t, api: asConsumer(t, config, hostileID), admin: admin, foreignWrites: f, done: map[string]int{}}
}

// objectEdits are changes of the metadata and spec of a slice.
var objectEdits = map[string]func(*rand.Rand, *authv1beta1.ResourceSlice){
	"strip":   func(_ *rand.Rand, s *authv1beta1.ResourceSlice) { withoutLabels(s) },
	"relabel": func(_ *rand.Rand, s *authv1beta1.ResourceSlice) { s.Labels = replicaOf(hostileID, "", "", "1").Labels },
	"unname":  func(_ *rand.Rand, s *authv1beta1.ResourceSlice) { s.Spec.ConsumerClusterID = nil },
	"name":    func(_ *rand.Rand, s *authv1beta1.ResourceSlice) { identify(hostileID)(s) },
	"rename": func(r *rand.Rand, s *authv1beta1.ResourceSlice) {
		identify(pick(r, []string{"nobody", "consumer-00", "consumer-01"}))(s)
	},
	"move": func(r *rand.Rand, s *authv1beta1.ResourceSlice) {
		movingTo(pick(r, []string{"gold", "silver", "bronze", "brass", "default", "nobodys", ""}))(s)
	},
	"more": func(r *rand.Rand, s *authv1beta1.ResourceSlice) { s.Spec.Resources = anyRequest(r).list() },
	"nonsense": func(r *rand.Rand, s *authv1beta1.ResourceSlice) {
		s.Spec.Resources["cpu"] = resource.MustParse(pick(r, []string{"-1", "9e18", "1n"}))
	},
	"many": func(r *rand.Rand, s *authv1beta1.ResourceSlice) {
		for i := range r.IntN(300) {
			s.Spec.Resources[corev1.ResourceName(fmt.Sprintf("hostile.test/r%d", i))] = resource.MustParse("1")
		}
	},
	"pad": func(r *rand.Rand, s *authv1beta1.ResourceSlice) {
		s.Spec.CSR = bytes.Repeat([]byte("x"), r.IntN(700_000))
	},
	"shrink": func(_ *rand.Rand, s *authv1beta1.ResourceSlice) { s.Spec.CSR = []byte("request") },
	"annotate": func(r *rand.Rand, s *authv1beta1.ResourceSlice) {
		s.Annotations = map[string]string{"hostile.test/noise": strings.Repeat("x", r.IntN(10_000))}
	},
	"hold":   func(_ *rand.Rand, s *authv1beta1.ResourceSlice) { s.Finalizers = []string{hostileFinalizer} },
	"unhold": func(_ *rand.Rand, s *authv1beta1.ResourceSlice) { s.Finalizers = nil },
	"provide": func(_ *rand.Rand, s *authv1beta1.ResourceSlice) {
		s.Spec.ProviderClusterID = new(corev1beta1.ClusterID("there"))
	},
}

// statusEdits are changes of the status of a slice.
var statusEdits = map[string]func(*rand.Rand, *authv1beta1.ResourceSlice){
	"grant all": func(_ *rand.Rand, s *authv1beta1.ResourceSlice) { grants("999")(s) },
	"grant some": func(r *rand.Rand, s *authv1beta1.ResourceSlice) {
		grants("1")(s)
		s.Status.Resources = anyRequest(r).list()
	},
	"grant more": func(_ *rand.Rand, s *authv1beta1.ResourceSlice) {
		grants("5")(s)
		s.Status.Resources["hostile.test/more"] = resource.MustParse("8")
	},
	"unanswer": func(_ *rand.Rand, s *authv1beta1.ResourceSlice) { withoutAnswer(s) },
	"deny": func(_ *rand.Rand, s *authv1beta1.ResourceSlice) {
		grants("0")(s)
		s.Status.Conditions[resourcesConditionOf(s)].Status = authv1beta1.ResourceSliceConditionDenied
	},
	"stuff": func(r *rand.Rand, s *authv1beta1.ResourceSlice) {
		grants("999")(s)
		s.Status.NodeLabels = map[string]string{}
		for i := range r.IntN(300) {
			s.Status.NodeLabels[fmt.Sprintf("label-%d", i)] = strings.Repeat("x", 1000)
		}
	},
	"unauthenticate": func(_ *rand.Rand, s *authv1beta1.ResourceSlice) { s.Status.Conditions = nil },
	"authenticate": func(_ *rand.Rand, s *authv1beta1.ResourceSlice) {
		withoutAnswer(s)
		s.Status.Conditions = []authv1beta1.ResourceSliceCondition{
			conditionOf(authv1beta1.ResourceSliceConditionTypeAuthentication, "Because"),
		}
	},
}

// burst does several things concurrently, each to a random slice of its own.
func (h *hostile) burst(r *rand.Rand, times int) {
	inParallel(r, 3, times, func(r *rand.Rand) { h.act(h.t.Context(), r) })
}

func (h *hostile) act(ctx context.Context, r *rand.Rand) {
	s := &authv1beta1.ResourceSlice{}
	key := client.ObjectKey{Namespace: namespaceOf(hostileID), Name: fmt.Sprintf("slice-%02d", r.IntN(hostileSlices))}
	if err := h.api.Get(ctx, key, s); err != nil {
		if apierrors.IsNotFound(err) {
			h.note("create", h.create(ctx, r, key.Name))
		} else {
			h.note("get", err)
		}
		return
	}
	switch r.IntN(8) {
	case 0:
		h.note("delete", h.api.Delete(ctx, s))
	case 1, 2, 3:
		name := pick(r, slices.Sorted(maps.Keys(statusEdits)))
		statusEdits[name](r, s)
		h.note(name, h.foreignWrites.by(forger, keyOf(s), func() (string, error) {
			err := h.api.Status().Update(ctx, s)
			return s.ResourceVersion, err
		}))
	default:
		name := pick(r, slices.Sorted(maps.Keys(objectEdits)))
		objectEdits[name](r, s)
		h.note(name, h.api.Update(ctx, s))
	}
}

// create creates a slice. Liqo authenticates five in six.
func (h *hostile) create(ctx context.Context, r *rand.Rand, name string) error {
	s := replicaOf(hostileID, name, pick(r, []string{"gold", "silver", "bronze", "brass"}), "1")
	s.Spec.Resources = anyRequest(r).list()
	if err := h.api.Create(ctx, s); err != nil || r.IntN(6) == 0 {
		return err
	}
	return h.foreignWrites.by(others, keyOf(s), func() (string, error) {
		s.Status.Conditions = append(s.Status.Conditions,
			conditionOf(authv1beta1.ResourceSliceConditionTypeAuthentication, "Because"))
		err := h.admin.Status().Update(ctx, s)
		return s.ResourceVersion, err
	})
}

// note counts a successful action. Conflicts and oversized objects are expected; a Forbidden error
// is not.
func (h *hostile) note(what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var refused apierrors.APIStatus
	switch {
	case err == nil:
		h.done[what]++
	case apierrors.IsForbidden(err) || !errors.As(err, &refused) && h.t.Context().Err() == nil:
		h.t.Errorf("the hostile consumer cannot %s: %v", what, err)
	}
}

// deleteSlices deletes all its slices, as an admin can.
func (h *hostile) deleteSlices() {
	h.t.Helper()
	test.EventuallyWithin(h.t, time.Minute, func() error {
		var list authv1beta1.ResourceSliceList
		if err := h.admin.List(h.t.Context(), &list, client.InNamespace(namespaceOf(hostileID))); err != nil ||
			len(list.Items) == 0 {
			return err
		}
		for i := range list.Items {
			if err := remove(h.t.Context(), h.admin, &list.Items[i]); err != nil {
				return err
			}
		}
		return fmt.Errorf("%d slices are left", len(list.Items))
	})
}

// summary returns how often each action succeeded, and fails the test if one never did.
func (h *hostile) summary(t *testing.T) string {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := 0
	for _, n := range h.done {
		sum += n
	}
	for _, all := range []map[string]func(*rand.Rand, *authv1beta1.ResourceSlice){objectEdits, statusEdits} {
		for name := range all {
			if h.done[name] == 0 && !t.Failed() {
				t.Errorf("the hostile consumer never did %q", name)
			}
		}
	}
	return fmt.Sprintf("%d: %v", sum, h.done)
}

// drain makes Liqo drain a consumer and activate it again. The slices are denied and deleted, and
// come back only when the consumer changes them.
func (c *consumers) drain(p *provider, f *foreignWrites, id string) {
	p.changing.Lock()
	skip := p.absent[id] || p.drained[id]
	if !skip {
		p.drainTenant(id, true)
	}
	p.changing.Unlock()
	if skip {
		return
	}
	keys := c.reserveAll(id)
	for _, key := range keys {
		c.must(c.denyAndDelete(f, key))
	}
	c.mu.Lock()
	for _, key := range keys {
		c.exists[key] = false
	}
	c.mu.Unlock()
	c.free(keys...)
	p.changing.Lock()
	defer p.changing.Unlock()
	p.drainTenant(id, false)
}

// reserveAll reserves all slices of a consumer.
func (c *consumers) reserveAll(id string) []client.ObjectKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []client.ObjectKey
	for _, key := range slices.SortedFunc(maps.Keys(c.exists), byKey) {
		if key.Namespace != namespaceOf(id) {
			continue
		}
		for c.busy[key] {
			c.freed.Wait()
		}
		c.busy[key] = true
		keys = append(keys, key)
	}
	return keys
}

func (c *consumers) denyAndDelete(f *foreignWrites, key client.ObjectKey) error {
	s, err := c.answerAsLiqo(f, key, func(s *authv1beta1.ResourceSlice) {
		statusEdits["deny"](nil, s)
		s.Status.Conditions[resourcesConditionOf(s)].Reason = "ResourceSliceResourcesDenied"
	})
	if err != nil || s == nil {
		return err
	}
	return client.IgnoreNotFound(c.api.Delete(c.t.Context(), s))
}

// answerAsLiqo writes the status of a slice as Liqo does, and returns the slice, nil if it is gone.
func (c *consumers) answerAsLiqo(
	f *foreignWrites, key client.ObjectKey, edit func(*authv1beta1.ResourceSlice),
) (*authv1beta1.ResourceSlice, error) {
	ctx := c.t.Context()
	for {
		s := &authv1beta1.ResourceSlice{}
		if err := c.api.Get(ctx, key, s); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		err := f.by(others, keyOf(s), func() (string, error) {
			edit(s)
			err := c.api.Status().Update(ctx, s)
			return s.ResourceVersion, err
		})
		if !apierrors.IsConflict(err) {
			return s, err
		}
	}
}

// acceptAsLiqo grants a slice of Liqo's own class everything that it requests, as Liqo does.
func (c *consumers) acceptAsLiqo(key client.ObjectKey) {
	_, err := c.answerAsLiqo(c.writes, key, func(s *authv1beta1.ResourceSlice) {
		withoutAnswer(s)
		s.Status.Conditions = append(s.Status.Conditions,
			conditionOf(authv1beta1.ResourceSliceConditionTypeResources, "ResourceSliceResourcesAccepted"))
		s.Status.Resources = s.Spec.Resources
	})
	c.must(err)
}
