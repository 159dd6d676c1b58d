package devices

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/source/devices/inventory"
)

// Sink takes what the devices of nodes are. Its functions return whether the account changed.
type Sink struct {
	// SetDevices sets the numbers of devices of a node, by pool and resource.
	SetDevices func(node string, devices map[string]capacity.Amounts) bool
	// SetClaim, DeleteClaim and SetUncounted are those of capacity.Ledger.
	SetClaim     func(capacity.Claim) bool
	DeleteClaim  func(key string) bool
	SetUncounted func(source string, all []capacity.Uncounted)
}

// book is what is known of classes, pools, claims and rules. Each change counts the pools again that it touches:
// most pools are of one node, with some ten devices.
type book struct {
	sink    Sink
	bounds  *bounds
	compile func(map[string]inventory.Class) *inventory.Selectors
	// reselected is called, and must not block, when slices have to be listed again.
	reselected func()
	// selectors are those of the classes. Slices are decoded by them.
	selectors atomic.Pointer[inventory.Selectors]

	mu        sync.Mutex
	classes   map[string]inventory.Class
	resources map[string]inventory.Class
	rules     map[string]*inventory.TaintRule
	pools     map[inventory.PoolID]*pool
	// poolOf maps the names of slices to their pool.
	poolOf map[string]inventory.PoolID
	// nodes maps nodes to what pools have on them, by the text of the pool.
	nodes  map[string]map[string]inventory.Node
	claims map[string]*claimEntry
	// dirty are the pools to be counted again.
	dirty map[inventory.PoolID]struct{}
}

// pool is a pool with slices, or with devices that are allocated.
type pool struct {
	slices map[string]inventory.Slice
	// nodes are those on which it had something at the last count.
	nodes map[string]struct{}
	// places are the devices of the last count of a complete pool.
	places map[string]inventory.Place
	// allocated counts the claims of each device, claims holds them.
	allocated map[string]int
	claims    map[string]struct{}
}

// claimEntry is an allocated claim. Its places stay when the slices of a device are gone.
type claimEntry struct {
	claim
	places map[deviceID]inventory.Place
}

func newBook(sink Sink, b *bounds, reselected func()) *book {
	out := &book{
		sink: sink, bounds: b, compile: inventory.Compile, reselected: reselected, classes: map[string]inventory.Class{},
		rules: map[string]*inventory.TaintRule{}, pools: map[inventory.PoolID]*pool{},
		poolOf: map[string]inventory.PoolID{}, nodes: map[string]map[string]inventory.Node{},
		claims: map[string]*claimEntry{}, dirty: map[inventory.PoolID]struct{}{},
	}
	out.selectors.Store(&inventory.Selectors{})
	return out
}

func (b *book) presentSelectors() *inventory.Selectors { return b.selectors.Load() }

// change makes a change, counts the pools again that it touches, and reports whether the account changed. The setters
// below report what they have changed besides: nothing, but for claims.
func (b *book) change(apply func() bool) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed = apply()
	return b.recount() || changed
}

func (b *book) setClass(c inventory.Class) bool {
	if _, known := b.classes[c.Name]; !known && len(b.classes) == maxClasses {
		b.bounds.refuse("class", c.Name)
		return false
	}
	b.classes[c.Name] = c
	b.selectByClasses()
	return false
}

func (b *book) deleteClass(name string) bool {
	delete(b.classes, name)
	b.selectByClasses()
	return false
}

// selectByClasses has slices decoded by the present classes, and the slices that are known listed again if that makes
// a difference.
func (b *book) selectByClasses() {
	resources := inventory.Resources(slices.Collect(maps.Values(b.classes)))
	same := maps.EqualFunc(resources, b.resources, func(x, y inventory.Class) bool {
		return slices.Equal(x.Selectors, y.Selectors)
	})
	if same {
		return
	}
	b.resources = resources
	b.selectors.Store(b.compile(resources))
	b.reselected()
}

func (b *book) poolWith(id inventory.PoolID) *pool {
	p := b.pools[id]
	if p == nil {
		p = &pool{
			slices: map[string]inventory.Slice{}, nodes: map[string]struct{}{}, allocated: map[string]int{},
			claims: map[string]struct{}{},
		}
		b.pools[id] = p
	}
	return p
}

func (b *book) setSlice(s inventory.Slice) bool {
	b.deleteSlice(s.Name)
	if !b.bounds.admit(b, &s) {
		return false
	}
	b.poolOf[s.Name] = s.Pool
	b.poolWith(s.Pool).slices[s.Name] = s
	b.dirty[s.Pool] = struct{}{}
	return false
}

func (b *book) deleteSlice(name string) bool {
	if id, known := b.poolOf[name]; known {
		s := b.pools[id].slices[name]
		b.bounds.release(&s)
		delete(b.poolOf, name)
		delete(b.pools[id].slices, name)
		b.dirty[id] = struct{}{}
	}
	return false
}

func (b *book) setClaim(c claim) bool {
	before := b.claims[c.key]
	if len(c.devices) == 0 || before == nil && !b.bounds.admitClaim(b) {
		return b.deleteClaim(c.key)
	}
	next := &claimEntry{claim: c, places: map[deviceID]inventory.Place{}}
	if before != nil {
		next.places = before.places
		b.allocate(before, -1)
	}
	b.claims[c.key] = next
	b.allocate(next, 1)
	b.recount() // So that the places of its devices are those of the present slices.
	return b.place(next)
}

func (b *book) deleteClaim(key string) bool {
	c := b.claims[key]
	if c == nil {
		return false
	}
	b.allocate(c, -1)
	delete(b.claims, key)
	return b.sink.DeleteClaim(key)
}

// allocate adds a claim to the claims of its devices, or subtracts it.
func (b *book) allocate(c *claimEntry, claims int) {
	for _, d := range c.devices {
		p := b.poolWith(d.pool)
		if p.allocated[d.name] += claims; p.allocated[d.name] <= 0 {
			delete(p.allocated, d.name)
		}
		if claims > 0 {
			p.claims[c.key] = struct{}{}
		} else {
			delete(p.claims, c.key)
		}
		b.dirty[d.pool] = struct{}{}
	}
}

// place counts the devices of a claim, and reports whether the account changed. All are of the node of the pod.
func (b *book) place(c *claimEntry) bool {
	out := capacity.Claim{Key: c.key, Pods: c.pods, Devices: capacity.Amounts{}}
	places := make(map[deviceID]inventory.Place, len(c.devices))
	for _, d := range c.devices {
		at, known := b.pools[d.pool].places[d.name]
		if !known {
			at, known = c.places[d]
		}
		if !known {
			continue
		}
		if places[d] = at; out.Node == "" {
			out.Node = at.Node
		}
		if at.Node == out.Node {
			out.Devices[at.Resource]++
		}
	}
	c.places = places
	return b.sink.SetClaim(out)
}

func (b *book) setRule(r taintRule) bool {
	if r.rule == nil {
		return b.deleteRule(r.name)
	}
	if _, known := b.rules[r.name]; !known && !b.bounds.admitRule(b) {
		return false
	}
	b.rules[r.name] = r.rule
	b.recountAll()
	return false
}

func (b *book) deleteRule(name string) bool {
	if _, known := b.rules[name]; known {
		delete(b.rules, name)
		b.recountAll()
	}
	return false
}

// servesResources reports whether a class serves a resource.
func (b *book) servesResources() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.resources) > 0
}

// forget drops all slices, claims and rules, and reports whether the account changed.
func (b *book) forget() bool {
	return b.change(func() (changed bool) {
		for _, name := range slices.Collect(maps.Keys(b.poolOf)) {
			b.deleteSlice(name)
		}
		for _, key := range slices.Collect(maps.Keys(b.claims)) {
			changed = b.deleteClaim(key) || changed
		}
		clear(b.rules)
		return changed
	})
}

func (b *book) recountAll() {
	for id := range b.pools {
		b.dirty[id] = struct{}{}
	}
}
