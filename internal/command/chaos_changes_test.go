package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"proffer.dev/proffer/api/v1alpha1"
)

func patchOf(value any) client.Patch {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return client.RawPatch(types.MergePatchType, text)
}

type object = map[string]any

func (p *provider) addHost(zone string, allocatable amounts) {
	p.made++
	name := fmt.Sprintf("node-%s-%d", zone, p.made)
	resources := allocatable.list()
	resources[corev1.ResourcePods] = *resource.NewQuantity(hostPods, resource.DecimalSI)
	p.change(func() { p.hosts[name] = host{zone: zone, allocatable: allocatable} }, func(ctx context.Context) error {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
		if err := p.api.Create(ctx, n); err != nil {
			return err
		}
		// The API server taints each new node as not ready.
		if err := p.api.Patch(ctx, n, patchOf(object{"spec": object{"taints": nil}})); err != nil {
			return err
		}
		return p.api.Status().Patch(ctx, n, patchOf(object{"status": object{
			"allocatable": resources, "capacity": resources,
			"conditions": []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}}))
	})
}

func (p *provider) removeHost(name string) {
	for key, l := range maps.Clone(p.loads) {
		if l.node == name && !l.waits {
			p.removeLoad(key)
		}
	}
	p.change(func() { delete(p.hosts, name) }, func(ctx context.Context) error {
		return p.api.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
}

func (p *provider) resizeHost(name string, allocatable amounts) {
	h := p.hosts[name]
	h.allocatable = allocatable
	p.change(func() { p.hosts[name] = h }, func(ctx context.Context) error {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return p.api.Status().Patch(ctx, n, patchOf(object{"status": object{"allocatable": allocatable.list()}}))
	})
}

func (p *provider) cordonHost(name string, cordoned bool) {
	h := p.hosts[name]
	h.cordoned = cordoned
	p.change(func() { p.hosts[name] = h }, func(ctx context.Context) error {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return p.api.Patch(ctx, n, patchOf(object{"spec": object{"unschedulable": cordoned}}))
	})
}

func (p *provider) addLoad(l load) {
	p.made++
	name := fmt.Sprintf("pod-%d", p.made)
	// Of every other pod that waits there is only the ShadowPod: Liqo has accepted it.
	l.announced = l.waits && p.made%2 > 0
	p.change(func() { p.loads[name] = l }, func(ctx context.Context) error {
		pod := podOf(name, l)
		if !l.waits {
			pod.Spec.NodeName = l.node
		}
		if l.announced {
			return p.api.Create(ctx, shadowOf(p.t, pod))
		}
		return p.api.Create(ctx, pod)
	})
}

func podOf(name string, l load) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
	pod.Spec.Containers = []corev1.Container{
		{Name: "main", Image: "image", Resources: corev1.ResourceRequirements{Requests: l.requests.list()}},
	}
	if l.consumer != "" {
		pod.Labels = map[string]string{
			"offloading.liqo.io/origin": l.consumer, "liqo.io/creator-user": creatorOf(l.consumer, l.slice),
		}
	}
	return pod
}

// bindLoads binds the pods that have waited for long enough. Those whose node is gone wait on.
func (p *provider) bindLoads() {
	for name, l := range maps.Clone(p.loads) {
		if _, there := p.hosts[l.node]; !l.waits || p.changed < l.until || !there {
			continue
		}
		l.waits = false
		p.bound++
		p.change(func() { p.loads[name] = l }, func(ctx context.Context) error {
			pod := podOf(name, l)
			if l.announced {
				return p.makeOfShadow(ctx, pod, l.node)
			}
			return p.api.SubResource("binding").Create(ctx, pod, &corev1.Binding{
				Target: corev1.ObjectReference{Kind: "Node", Name: l.node},
			})
		})
	}
}

// makeOfShadow creates the pod of a ShadowPod on a node.
func (p *provider) makeOfShadow(ctx context.Context, pod *corev1.Pod, node string) error {
	p.unannounced++
	shadow := shadowOf(p.t, pod)
	if err := p.api.Get(ctx, client.ObjectKeyFromObject(pod), shadow); err != nil {
		return err
	}
	pod.Spec.NodeName = node
	return errors.Join(controllerutil.SetControllerReference(shadow, pod, p.api.Scheme()), p.api.Create(ctx, pod))
}

func (p *provider) removeLoad(name string) {
	l := p.loads[name]
	p.change(func() { delete(p.loads, name) }, func(ctx context.Context) error {
		pod := podOf(name, l)
		if l.announced {
			if err := p.api.Delete(ctx, shadowOf(p.t, pod)); err != nil || l.waits {
				return err
			}
		}
		return p.api.Delete(ctx, pod, client.GracePeriodSeconds(0))
	})
}

func (p *provider) editPolicy(class string, s share) {
	p.change(func() { p.shares[class] = s }, func(ctx context.Context) error {
		spec := object{
			"nodes": object{"selector": s.selector()}, "percent": s.percent, "reserve": s.reserve.quantities(),
			"max": nil,
		}
		if s.max != nil {
			spec["max"] = s.max.quantities()
		}
		policy := &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: class}}
		return p.api.Patch(ctx, policy, patchOf(object{"spec": object{"offer": spec, "reclaim": s.reclaim()}}))
	})
}

func (p *provider) cordonTenant(id string, cordoned bool) {
	p.change(func() { p.cordoned[id] = cordoned }, func(ctx context.Context) error {
		condition := "Active"
		if cordoned {
			condition = "Cordoned"
		}
		return p.api.Patch(ctx, tenantOf(id), patchOf(object{"spec": object{"tenantCondition": condition}}))
	})
}

// waitingLoads is the number of pods of addWaiting.
const waitingLoads = chaosSlices / chaosConsumers

// addWaiting creates a pod for each slice of a consumer, as large as any request. They are bound one
// after the other, long after the consumer has asked for less: see shrinkAll.
func (p *provider) addWaiting(r *rand.Rand, consumer string) {
	p.changing.Lock()
	defer p.changing.Unlock()
	for i := range waitingLoads {
		p.addLoad(load{
			node: pick(r, slices.Sorted(maps.Keys(p.hosts))), consumer: consumer, slice: fmt.Sprintf("slice-%02d", i),
			requests: mostRequested, waits: true, until: 12 + i/2,
		})
	}
}

func anySlice(r *rand.Rand) string {
	return fmt.Sprintf("slice-%02d", r.IntN(chaosSlices/chaosConsumers))
}

// changeAtRandom makes one random change.
func (p *provider) changeAtRandom(r *rand.Rand, consumers []string) {
	p.changing.Lock()
	defer p.changing.Unlock()
	p.changed++
	p.bindLoads()
	size := func() amounts { return amounts{4000 + r.Int64N(7)*500, (8 + r.Int64N(12)) * 1024 * mib} }
	zone := pick(r, []string{"a", "b", "c", "d", "shared"})
	name := pick(r, slices.Sorted(maps.Keys(p.hosts)))
	kinds := 12
	if p.adversary {
		kinds = 15
	}
	switch r.IntN(kinds) {
	case 0, 1:
		if len(p.hosts) < 14 {
			p.addHost(zone, size())
		}
	case 2, 3:
		if len(p.hosts) > 8 {
			p.removeHost(name)
		}
	case 4, 5:
		p.resizeHost(name, size())
	case 6:
		p.cordonHost(name, !p.hosts[name].cordoned)
	case 7, 8:
		l := load{node: name, requests: amounts{100 + r.Int64N(8)*100, (1 + r.Int64N(8)) * 256 * mib}}
		if r.IntN(3) > 0 {
			l.consumer, l.slice = pick(r, consumers), anySlice(r)
			l.waits, l.until = p.made%2 == 0, p.changed+5+p.made%7*3
		}
		if len(p.loads) < 25+waitingLoads {
			p.addLoad(l)
		}
	case 9:
		if len(p.loads) > 0 {
			p.removeLoad(pick(r, slices.Sorted(maps.Keys(p.loads))))
		}
	case 10:
		p.editShare(r)
	case 11:
		if id := pick(r, consumers); !p.absent[id] && !p.drained[id] {
			p.cordonTenant(id, !p.cordoned[id])
		}
	case 12:
		p.deleteOrRecreatePolicy(r)
	case 13, 14:
		if id := pick(r, consumers); !p.drained[id] {
			p.setTenantExists(id, p.absent[id])
		}
	}
}

func (p *provider) editShare(r *rand.Rand) {
	if len(p.shares) == 0 {
		return
	}
	class := pick(r, slices.Sorted(maps.Keys(p.shares)))
	s := p.shares[class]
	s.retains = p.adversary && !s.evicts && r.IntN(4) == 0
	s.percent = 70 + r.Int64N(4)*10
	s.reserve = amounts{r.Int64N(4) * 250, r.Int64N(3) * 512 * mib}
	s.max = nil
	if r.IntN(2) == 0 {
		s.max = &amounts{2000 + r.Int64N(6)*1000, (4 + r.Int64N(8)) * 1024 * mib}
	}
	if class == "bronze" {
		s.zones = [][]string{{"c"}, {"c", "d"}}[r.IntN(2)]
	}
	p.editPolicy(class, s)
}

// deleteOrRecreatePolicy recreates a deleted policy or, if there is none, deletes one.
func (p *provider) deleteOrRecreatePolicy(r *rand.Rand) {
	if len(p.deletedPolicies) > 0 {
		p.recreatePolicy(pick(r, slices.Sorted(maps.Keys(p.deletedPolicies))))
		return
	}
	class := pick(r, slices.Sorted(maps.Keys(p.shares)))
	p.change(func() {
		p.deletedPolicies[class] = p.shares[class]
		delete(p.shares, class)
	}, func(ctx context.Context) error {
		return p.api.Delete(ctx, &v1alpha1.ResourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: class}})
	})
}

func (p *provider) recreatePolicy(class string) {
	p.change(func() {
		p.shares[class] = p.deletedPolicies[class]
		delete(p.deletedPolicies, class)
	}, func(ctx context.Context) error { return p.api.Create(ctx, p.policy(class)) })
}

// setTenantExists creates a Tenant that was deleted, or deletes it.
func (p *provider) setTenantExists(id string, exists bool) {
	p.change(func() { p.absent[id], p.cordoned[id] = !exists, false }, func(ctx context.Context) error {
		if exists {
			return p.api.Create(ctx, tenantOf(id))
		}
		return p.api.Delete(ctx, tenantOf(id))
	})
}

func (p *provider) drainTenant(id string, drained bool) {
	p.change(func() { p.drained[id], p.cordoned[id] = drained, false }, func(ctx context.Context) error {
		condition := "Active"
		if drained {
			condition = "Drained"
		}
		return p.api.Patch(ctx, tenantOf(id), patchOf(object{"spec": object{"tenantCondition": condition}}))
	})
}

func (p *provider) isDrained(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drained[id]
}

// restoreAll recreates everything that was deleted. It ends the pods of slices: the end of the test
// cannot tell which of them belong to deleted slices.
func (p *provider) restoreAll() {
	p.changing.Lock()
	defer p.changing.Unlock()
	for _, class := range slices.Sorted(maps.Keys(p.deletedPolicies)) {
		p.recreatePolicy(class)
	}
	for id, absent := range p.now().absent {
		if absent {
			p.setTenantExists(id, true)
		}
	}
	for name, l := range maps.Clone(p.loads) {
		if l.consumer != "" {
			p.removeLoad(name)
		}
	}
}
