package catalog

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/catalog"
	"proffer.dev/proffer/internal/kube/leading"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/table"
)

// state is one state of the catalog. It never changes.
type state interface {
	// Tenants are the peerings with consumers.
	Tenants() []table.Tenant
	// classes returns the classes that are shown to a tenant, each once, and Kept those of a consumer whose Offers
	// stay as they are.
	classes(to table.Tenant) []string
	Kept(consumer string) []string
	// offer returns the entry of a class as of now, and whether it is shown.
	offer(to table.Tenant, class string, now time.Time) (v1alpha1.OfferStatus, bool)
}

// published is the state of a catalog.
type published struct{ *catalog.Catalog }

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

// peerings is a state without a catalog: only RoleBindings are written.
type peerings struct{ *table.Snapshot }

// Tenants implements state.
func (p peerings) Tenants() []table.Tenant {
	if p.Peers == nil {
		return nil
	}
	return p.Peers.Tenants()
}

// Kept implements state.
func (peerings) Kept(string) []string { return nil }

func (peerings) classes(table.Tenant) []string { return nil }

func (peerings) offer(table.Tenant, string, time.Time) (v1alpha1.OfferStatus, bool) {
	return v1alpha1.OfferStatus{}, false
}

// plan holds what exists, what should exist, and when each object may be written.
type plan struct {
	cache    cache
	events   *eventWriter
	pacers   map[kind]*restore.Pacer
	subjects []Subject
	bindings []Binding
	// requests has the objects to reconcile, by kind.
	requests map[kind]*leading.Trigger

	mu sync.Mutex
	// state is the state that was compared last, nil while nothing may be written, and roles the UIDs of the
	// ClusterRoles then, by name.
	state   state
	roles   map[string]types.UID
	objects map[id]*wantedObject
}

func newPlan(
	pacers map[kind]*restore.Pacer, events *eventWriter, subjects []Subject, roleBindings ...Binding,
) *plan {
	p := &plan{
		cache: newCache(), events: events, pacers: pacers, subjects: subjects, bindings: roleBindings,
		requests: map[kind]*leading.Trigger{}, objects: map[id]*wantedObject{},
	}
	for _, k := range []kind{offers, bindings} {
		p.requests[k] = leading.NewTrigger(0, func() []reconcile.Request { return p.all(k) })
	}
	return p
}

// all returns the requests of all objects of a kind.
func (p *plan) all(k kind) (all []reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.cache.all(k)
	for i := range known {
		all = append(all, i.request())
	}
	for i := range p.objects {
		if _, listed := known[i]; i.kind == k && !listed {
			all = append(all, i.request())
		}
	}
	return all
}

// enqueue has an object reconciled after this time. It does not block.
func (p *plan) enqueue(i id, after time.Duration) {
	p.requests[i.kind].EnqueueAfter(after, i.request())
}

// wantedObject is an object that exists or should exist.
type wantedObject struct {
	id
	// tenant and want are its owner and its content; present is unset for one that must not exist. One that is
	// kept stays as it is, if it exists.
	tenant  table.Tenant
	want    fingerprint
	present bool
	kept    bool
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
	// writing is set while the object waits for its turn in a write.
	writing bool
}

// compare works out what should exist, if the state has changed, and enqueues all objects that this
// concerns. The changes of others are enqueued by the watches.
func (p *plan) compare(latest state, roles map[string]types.UID, now time.Time) {
	p.mu.Lock()
	before, same := p.state, p.state == latest && maps.Equal(p.roles, roles)
	p.mu.Unlock()
	if same {
		return
	}
	p.replace(before == nil, p.desired(latest, roles), latest, roles, now)
}

// replace makes this what should exist, and enqueues the objects that this concerns: all of them if they are
// the first ones.
func (p *plan) replace(
	first bool, want map[id]*wantedObject, latest state, roles map[string]types.UID, now time.Time,
) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.roles = latest, roles
	changed := map[id]*wantedObject{}
	if first { // What exists and is ours must go unless it is wanted.
		for k := range p.cache {
			for i, have := range p.cache.all(k) {
				if have.Ours {
					changed[i] = p.object(i)
				}
			}
		}
	}
	for i, o := range p.objects {
		if want[i] == nil && (o.present || o.kept) {
			o.present, o.kept, changed[i] = false, false, o
		}
	}
	for i, o := range want {
		known := p.object(i)
		if o.kept {
			known.kept = true
			continue
		}
		if first || !known.present || known.kept || known.want != o.want || known.tenant != o.tenant {
			changed[i] = known
		}
		known.tenant, known.want, known.present, known.kept = o.tenant, o.want, true, false
	}
	for i, o := range changed {
		if o.writing {
			continue // It is looked at after the write. Before, it would come ahead of others that are due.
		}
		if due := p.due(o, now); !due.IsZero() {
			p.enqueue(i, due.Sub(now))
		}
	}
}

// object returns the object of this ID, which is created if it is not known.
func (p *plan) object(i id) *wantedObject {
	o := p.objects[i]
	if o == nil {
		o = &wantedObject{id: i}
		p.objects[i] = o
	}
	return o
}

// desired returns what should exist.
func (p *plan) desired(latest state, roles map[string]types.UID) map[id]*wantedObject {
	all := map[id]*wantedObject{}
	tenants, others := usable(latest.Tenants())
	p.events.unpublished(others)
	add := func(j job) {
		o := &wantedObject{id: j.id, tenant: j.tenant}
		if u, err := j.object(time.Time{}); err == nil { // Otherwise the write fails, and says why.
			o.want = fingerprintOf(u)
		}
		all[j.id] = o
	}
	for _, tenant := range tenants {
		j := job{tenant: tenant, state: latest, roles: roles, subjects: p.subjects}
		for _, class := range latest.classes(tenant) {
			j.id = id{offers, tenant.Namespace, class}
			add(j)
		}
		for _, class := range latest.Kept(tenant.Consumer) {
			i := id{offers, tenant.Namespace, class}
			all[i] = &wantedObject{id: i, kept: true}
		}
		for _, b := range p.bindings {
			if roles[b.ClusterRole] != "" {
				j.id = id{bindings, tenant.Namespace, b.Name}
				add(j)
			}
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

// due compares one object with what exists under its name. It returns when to look at it next, zero for
// not before it changes: if it is not as it should be, or if it is old, it may be written then. The
// caller holds the lock.
func (p *plan) due(o *wantedObject, now time.Time) time.Time {
	have, exists := p.cache.get(o.id)
	if have.Ours {
		o.uid = have.UID
	}
	o.foreign = exists && !have.Ours && have.UID != o.uid
	if o.foreign {
		p.events.foreign(o, have)
	}
	since := o.since
	o.since = time.Time{} // Unless it waits for a write.
	switch {
	case o.kept:
	case !o.present && (!exists || o.foreign):
		if forget := o.written.Add(interval); now.Before(forget) {
			return forget // Until then, the object must not be created again.
		}
		delete(p.objects, o.id)
		p.events.forget(o.id)
	case o.foreign || have.Deleting:
	case !o.present || !exists || !o.stands(have, now):
		if o.since = since; since.IsZero() {
			o.since = now
		}
		due := newest(o.since, o.lastWrite(have, now).Add(interval), o.retry)
		if left := p.pacers[o.kind].Wait(o.id.String(), content(o.present, o.want), now); left > 0 {
			due = newest(due, now.Add(left))
		}
		return due
	case o.kind == offers:
		return newest(have.Written.Add(renewAfter), o.retry)
	}
	return time.Time{}
}

// stands reports whether what exists is as it should be.
func (o *wantedObject) stands(have observed, now time.Time) bool {
	if !have.Ours || have.Print != o.want && (o.sent != o.want || o.stored != have.Print) {
		return false
	}
	return o.kind != offers || !have.Written.IsZero() && have.Written.Before(now.Add(clockSkew))
}

// lastWrite returns when the object was last written, by this leader or the one before.
func (o *wantedObject) lastWrite(have observed, now time.Time) time.Time {
	if have.Written.After(now) {
		return o.written // Somebody else wrote that time.
	}
	return newest(o.written, have.Written)
}

func newest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// pause has nothing written until the next comparison, which enqueues everything again.
func (p *plan) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.objects {
		o.since, o.writing = time.Time{}, false
	}
	p.state = nil
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
	// state, roles and subjects are the inputs of the object.
	state    state
	roles    map[string]types.UID
	subjects []Subject
}

// content returns the content after a write, for the pacer: a deletion leaves nothing.
func content(exists bool, want fingerprint) string {
	if !exists {
		return ""
	}
	return string(want)
}

// manager returns who else has changed the object last, empty if that is not known.
func (j job) manager() string {
	if j.have == nil {
		return ""
	}
	return j.have.Manager
}

// next returns the write of an object that is due, or how long it has to wait, 0 for as long as nothing
// changes. A write ends with wrote or failed, or with another call of next.
func (p *plan) next(i id, now time.Time) (j *job, left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	have, exists := p.cache.get(i)
	o := p.objects[i]
	switch {
	case p.state == nil || o == nil && !have.Ours:
		return nil, 0
	case o == nil: // What is ours must go unless it is wanted.
		o = p.object(i)
	}
	due := p.due(o, now)
	o.writing = !due.IsZero() && !due.After(now)
	if !o.writing {
		return nil, max(0, due.Sub(now))
	}
	j = &job{
		id: i, tenant: o.tenant, present: o.present, want: o.want, state: p.state, roles: p.roles, subjects: p.subjects,
	}
	if exists {
		j.have, j.renews = &have, o.present && o.stands(have, now)
	}
	return j, 0
}

// wrote records a write, with the object as it is now, nil for one that was deleted. It returns when to
// look at the object next, as next does.
func (p *plan) wrote(j *job, after *observed, now time.Time) (left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.object(j.id)
	o.writing, o.written, o.failures, o.retry, o.since = false, now, 0, time.Time{}, time.Time{}
	switch {
	case after != nil:
		p.cache.set(j.id, *after)
		o.uid, o.sent, o.stored = after.UID, j.want, after.Print
	case j.have != nil:
		p.cache.remove(j.id, *j.have)
	}
	if !j.renews {
		p.pacers[o.kind].Wrote(o.id.String(), content(after != nil, j.want), j.manager(), now)
	}
	if p.state == nil {
		return 0
	}
	return max(0, p.due(o, now).Sub(now))
}

// failed returns how long the object has to wait before the next attempt: twice as long after each, up to
// atMost.
func (p *plan) failed(i id, now time.Time, atMost time.Duration) (left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.object(i)
	left = min(atMost, retryAfter<<min(o.failures, 10))
	o.writing, o.retry = false, now.Add(left)
	o.failures++
	return left
}
