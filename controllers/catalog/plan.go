package catalog

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/catalog"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/table"
)

// state is one state of the catalog. It never changes.
type state interface {
	// tenants are the peerings with consumers.
	tenants() []table.Tenant
	// classes returns the classes that are shown to a tenant, each once.
	classes(to table.Tenant) []string
	// offer returns the entry of a class as of now, and whether it is shown.
	offer(to table.Tenant, class string, now time.Time) (v1alpha1.OfferStatus, bool)
}

// published is the state of a catalog.
type published struct{ *catalog.Catalog }

func (p published) tenants() []table.Tenant { return p.Tenants() }

func (p published) classes(to table.Tenant) []string {
	entries := p.In(to)
	all := make([]string, len(entries))
	for i := range entries {
		all[i] = entries[i].Class
	}
	return all
}

func (p published) offer(to table.Tenant, class string, now time.Time) (v1alpha1.OfferStatus, bool) {
	entries := p.In(to)
	i := slices.IndexFunc(entries, func(e catalog.Entry) bool { return e.Class == class })
	if i < 0 {
		return v1alpha1.OfferStatus{}, false
	}
	return catalog.StatusOf(to.Consumer, &entries[i], now), true
}

// term holds the state of a Writer while it leads: what exists, what should exist, and what to write.
type term struct {
	cache   *cache
	watches watches
	events  *eventWriter
	pacers  map[kind]*restore.Pacer
	// changed wakes the dispatcher when the queue may have a new first object.
	changed chan struct{}

	mu sync.Mutex
	// state is the state that was compared last, and role the UID of the ClusterRole then.
	state    state
	role     types.UID
	subjects []Subject
	objects  map[id]*wantedObject
	queue    queue
}

// wantedObject is an object that exists or should exist.
type wantedObject struct {
	id
	// tenant and want are its owner and its content; present is unset for one that must not exist.
	tenant  table.Tenant
	want    fingerprint
	present bool
	// since is the time of the first change that is not written yet, zero for none.
	since time.Time
	// written is the time of the last write, failed the number of failures since, and retry the
	// earliest time of the next attempt.
	written, retry time.Time
	failures       int
	// sent is the content of the last write, and stored the content that the API server kept of it. An
	// older CRD drops fields that it does not know.
	sent, stored fingerprint
	// uid is the UID of the object when it was last seen to be ours: it stays ours without its label.
	uid types.UID
	// foreign is set while an object of this name exists that is not ours.
	foreign bool
	writing bool
	// due and place are its time and position in the queue. place counts from 1, and is 0 outside of
	// the queue.
	due   time.Time
	place int
}

// compare works out what should exist, if the state has changed, and queues all differences.
func (t *term) compare(latest state, subjects []Subject, now time.Time) {
	role := t.watches.role.get()
	t.mu.Lock()
	same := t.state == latest && t.role == role
	t.mu.Unlock()
	var want map[id]*wantedObject
	if !same {
		want = t.desired(latest, role, subjects)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !same {
		t.state, t.role, t.subjects = latest, role, subjects
		for i, o := range t.objects {
			if want[i] == nil {
				o.present = false
			}
		}
		for i, o := range want {
			known := t.object(i)
			known.tenant, known.want, known.present = o.tenant, o.want, true
		}
	}
	// What exists and is ours must go unless it is wanted.
	t.cache.each(func(i id, have observed) {
		if have.ours {
			t.object(i)
		}
	})
	for _, o := range t.objects {
		t.check(o, now)
	}
	t.wake()
}

// object returns the object of this ID, which is created if it is not known.
func (t *term) object(i id) *wantedObject {
	o := t.objects[i]
	if o == nil {
		o = &wantedObject{id: i}
		t.objects[i] = o
	}
	return o
}

// desired returns what should exist.
func (t *term) desired(latest state, role types.UID, subjects []Subject) map[id]*wantedObject {
	all := map[id]*wantedObject{}
	tenants, others := usable(latest.tenants())
	t.events.unpublished(others)
	add := func(j job) {
		o := &wantedObject{id: j.id, tenant: j.tenant}
		if u, err := j.object(time.Time{}); err == nil { // Otherwise the write fails, and says why.
			o.want = fingerprintOf(u)
		}
		all[j.id] = o
	}
	for _, tenant := range tenants {
		j := job{tenant: tenant, state: latest, role: role, subjects: subjects}
		for _, class := range latest.classes(tenant) {
			j.id = id{offers, tenant.Namespace, class}
			add(j)
		}
		if role != "" {
			j.id = id{bindings, tenant.Namespace, RoleBinding}
			add(j)
		}
	}
	return all
}

// usable returns the Tenants to publish for: each that is not drained, is the only one of its
// consumer and in its namespace, and has a cluster ID that Liqo v1 allows. Nothing is published for
// the others: another reading could show the offers to one consumer to another.
func usable(all []table.Tenant) (tenants, others []table.Tenant) {
	all = slices.DeleteFunc(slices.Clone(all), func(t table.Tenant) bool { return t.State == table.TenantDrained })
	consumers, namespaces := map[string]int{}, map[string]int{}
	for _, t := range all {
		consumers[t.Consumer]++
		namespaces[t.Namespace]++
	}
	for _, t := range all {
		if consumers[t.Consumer] == 1 && namespaces[t.Namespace] == 1 && validClusterID(t.Consumer) {
			tenants = append(tenants, t)
		} else {
			others = append(others, t)
		}
	}
	return tenants, others
}

// check compares one object with what exists under its name, and queues it or takes it out of the
// queue. The caller holds the lock.
func (t *term) check(o *wantedObject, now time.Time) {
	if o.writing {
		return // It is checked after the write.
	}
	have, exists := t.cache.get(o.id)
	if have.ours {
		o.uid = have.uid
	}
	o.foreign = exists && !have.ours && have.uid != o.uid
	if o.foreign {
		t.events.foreign(o, have)
	}
	switch {
	case !o.present && (!exists || o.foreign):
		o.since = time.Time{}
		t.queue.remove(o)
		if now.Sub(o.written) >= interval { // Until then, the object must not be created again.
			delete(t.objects, o.id)
			t.events.forget(o.id)
		}
	case o.foreign || have.deleting:
		o.since = time.Time{}
		t.queue.remove(o)
	case !o.present || !exists || !o.stands(have, now):
		if o.since.IsZero() {
			o.since = now
		}
		due := newest(o.since, o.lastWrite(have, now).Add(interval), o.retry)
		if left := t.pacers[o.kind].Wait(o.id.String(), content(o.present, o.want), now); left > 0 {
			due = newest(due, now.Add(left))
		}
		t.queue.put(o, due)
	case o.kind == offers:
		o.since = time.Time{}
		t.queue.put(o, newest(have.written.Add(renewAfter), o.retry))
	default:
		o.since = time.Time{}
		t.queue.remove(o)
	}
}

// stands reports whether what exists is as it should be.
func (o *wantedObject) stands(have observed, now time.Time) bool {
	if !have.ours || have.print != o.want && (o.sent != o.want || o.stored != have.print) {
		return false
	}
	return o.kind != offers || !have.written.IsZero() && have.written.Before(now.Add(clockSkew))
}

// lastWrite returns when the object was last written, by this leader or the one before.
func (o *wantedObject) lastWrite(have observed, now time.Time) time.Time {
	if have.written.After(now) {
		return o.written // Somebody else wrote that time.
	}
	return newest(o.written, have.written)
}

func newest(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// wake has the dispatcher look at the queue.
func (t *term) wake() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// pause empties the queue. The next comparison fills it again.
func (t *term) pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) > 0 {
		t.queue.remove(t.queue.first())
	}
	for _, o := range t.objects {
		o.since = time.Time{}
	}
	t.state = nil
}

// next returns how long the first object in the queue has to wait, and whether there is one.
func (t *term) next(now time.Time) (left time.Duration, some bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.queue.first()
	if first == nil {
		return 0, false
	}
	return max(0, first.due.Sub(now)), true
}

// job is one write: what was found, and what to write.
type job struct {
	id
	tenant  table.Tenant
	present bool
	want    fingerprint
	// have is the existing object, nil for none. Renews is set if it is as it should be, apart from its
	// age.
	have   *observed
	renews bool
	// state, role and subjects are the inputs of the object.
	state    state
	role     types.UID
	subjects []Subject
}

// content returns the content after a write, for the pacer: a deletion leaves nothing.
func content(exists bool, want fingerprint) string {
	if !exists {
		return ""
	}
	return string(want[:])
}

// manager returns who else has changed the object last, empty if that is not known.
func (j job) manager() string {
	if j.have == nil {
		return ""
	}
	return j.have.manager
}

// take takes the first object out of the queue, if one is due.
func (t *term) take(now time.Time) (job, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.queue.first()
	if o == nil || o.due.After(now) {
		return job{}, false
	}
	t.queue.remove(o)
	o.writing = true
	j := job{
		id: o.id, tenant: o.tenant, present: o.present, want: o.want, state: t.state, role: t.role, subjects: t.subjects,
	}
	if have, exists := t.cache.get(o.id); exists {
		j.have, j.renews = &have, o.present && o.stands(have, now)
	}
	return j, true
}

// wrote records a write, with the object as it is now, nil for one that was deleted.
func (t *term) wrote(j job, after *observed, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.object(j.id)
	o.writing, o.written, o.failures, o.retry, o.since = false, now, 0, time.Time{}, time.Time{}
	switch {
	case after != nil:
		t.cache.set(j.id, *after)
		o.uid, o.sent, o.stored = after.uid, j.want, after.print
	case j.have != nil:
		t.cache.remove(j.id, *j.have)
	}
	if !j.renews {
		t.pacers[o.kind].Wrote(o.id.String(), content(after != nil, j.want), j.manager(), now)
	}
	t.check(o, now)
	t.wake()
}

// failed schedules a retry.
func (t *term) failed(j job, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.object(j.id)
	o.writing = false
	o.retry = now.Add(min(retryAtMost, retryAfter<<min(o.failures, 10)))
	o.failures++
	t.check(o, now)
	t.wake()
}
