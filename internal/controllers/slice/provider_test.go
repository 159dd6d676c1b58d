package slice

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/internal/grant/holding"
	"proffer.dev/proffer/internal/grant/protocol"
)

// consumers are the consumers of a world. Each has a tenant namespace of its name, with at most one
// slice, which is named s.
var consumers = [...]string{"rome", "oslo"}

// pools are the classes of a world, each with a policy of its name, and a node, which it selects.
var pools = [...]string{"gold", "silver"}

// event is what others do in a world. A scene bounds how often.
type event int

const (
	asks    event = iota // A consumer asks for another amount.
	moves                // A consumer moves its slice to another class.
	hides                // A consumer removes the labels from its slice, or sets them again.
	strips               // A consumer removes the answer from its slice.
	forges               // A consumer writes an answer into its slice: all of the pool.
	deletes              // A consumer deletes its slice.
	creates              // A consumer creates a slice.
	bloats               // A consumer makes its slice too large for an answer.
	runs                 // A pod starts.
	ends                 // A pod ends.
	binds                // Pods that wait for a node get one.
	cordons              // A tenant is cordoned, or active again.
	drains               // A tenant is drained, or active again.
	removes              // The policy for gold is deleted, or created again.
	shrinks              // The policy for gold offers half as much, or all again.
	turns                // The policy for gold selects the node of silver, or its own again.
	passes               // Another policy decides for rome in gold, on the node of silver, or no longer.
	waits                // More time passes than a deleted slice keeps everything.
	touches              // Liqo writes something to a slice that no decision depends on.
	follows              // Liqo's Quota follows the answer. If it never does, it always has.
	fails                // A write is refused, or its outcome is not reported.
	terms                // Another replica leads, which has just started.
	returns              // What is missing of each pool is back, or goes away while another replica starts that leads.
	numEvents
)

// object is a ResourceSlice in the API server, with its Grant.
type object struct {
	owner               int
	uid                 types.UID
	class               string
	ask                 int64
	hidden, large, gone bool
	version             int
	status              sliceAnswer
	// quota follows promised.
	quota, promised          allowance
	record                   *protocol.Record
	recordVersion, recorded  int
	seenVersion, seenRecords int
}

// allowance is what Liqo lets the pods of a slice use: what the last accepted answer grants, on which node.
type allowance struct {
	class, on string
	amount    int64
}

// request is a write of the leader.
type request struct {
	task
	uid types.UID
	// waited is set while the leader waits for the outcome. sent is set once the API server has made
	// or refused the write, made if it was made.
	waited, sent, made bool
	// result is the slice, and version that of the record, as the API server had it after the write.
	result        slice
	resultVersion int
}

// world is a provider at one moment: what the API server has, the pods, and what the leader knows.
type world struct {
	*scene
	objects []object
	// pods are the amounts that pods use, by consumer and pool. coming is how much pods may come to use
	// that a slice was answered for which is deleted now.
	pods, coming [len(consumers)][len(pools)]int64
	// waiting is set where the pods have no node yet.
	waiting  [len(consumers)][len(pools)]bool
	tenants  [len(consumers)]gateState
	removed  bool
	shrunk   bool
	turned   bool
	passed   bool
	returned bool
	left     [numEvents]int
	now      time.Duration
	term     int
	leader   *leader
	// deciding is a decision that has begun. woken is set if another is due at once, and alarm if one is due
	// later although nothing happens.
	deciding     *decisions
	woken, alarm bool
	flight       []request
	// before is the world before the last step, fault what was wrong with that.
	before      *world
	step, fault string
}

func (w *world) clone(step string) *world {
	n := *w
	n.objects, n.flight, n.leader = slices.Clone(w.objects), slices.Clone(w.flight), w.leader.clone()
	n.before, n.step = w, step
	return &n
}

// trace lists the steps that led to the world.
func (w *world) trace() string {
	if w.before == nil {
		return ""
	}
	return w.before.trace() + "\n  " + w.step
}

// accuse records what is wrong.
func (w *world) accuse(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, args...)
	}
}

// newWorld returns the world at the beginning of the first term.
func newWorld(s *scene) *world {
	w := &world{scene: s, left: s.events, tenants: [...]gateState{active, active}}
	for owner := range consumers {
		for pool := range pools {
			w.start(owner, pool, s.pods[owner][pool])
		}
	}
	for owner, amount := range s.granted {
		w.objects = append(w.objects, object{owner: owner, uid: types.UID(consumers[owner] + "-1"), class: pools[0], ask: s.ask[owner], version: 1})
		if o := &w.objects[owner]; amount > 0 {
			share := shareOf(pools[0], amount)
			if s.events[turns] > 0 { // The record of an earlier version does not say from which nodes the policy turned.
				policy := policyOn(pools[0], pools[0], pools[0], 100, s.reclaim)
				share.Policy = policy.Granter()
			}
			o.status, o.promised = statusOf(reasonPrefix, amount), allowance{pools[0], pools[0], amount}
			o.status.nodeSelector = selecting(pools[0])
			o.quota = o.promised
			o.record, o.recordVersion, o.recorded = &protocol.Record{Present: share, Term: "before/1"}, 1, 1
		}
	}
	w.lead()
	if last := &w.objects[len(w.objects)-1]; s.late > 0 {
		record := protocol.Record{Present: shareOf(pools[0], s.late), Term: "before/1"}
		w.flight = []request{{task: task{step: protocol.Step{Action: protocol.WriteRecord, Record: record}}, uid: last.uid}}
	}
	return w
}

// lead begins a term with what the API server has.
func (w *world) lead() {
	w.term++
	w.leader, w.deciding, w.woken = newLeader(w), nil, true
	for i := range w.objects {
		o := &w.objects[i]
		o.seenVersion, o.seenRecords = o.version, o.recorded
	}
	w.flight = slices.DeleteFunc(w.flight, func(r request) bool { return r.sent })
	for i := range w.flight {
		w.flight[i].waited = false
	}
}

// mayUse returns how much of a pool the pods of a consumer use, or may come to use, whatever is written
// from now on.
func (w *world) mayUse(owner, pool int) int64 {
	amount := max(w.pods[owner][pool], w.coming[owner][pool])
	for i := range w.objects {
		if o := &w.objects[i]; o.owner == owner && o.quota.on == pools[pool] {
			amount = max(amount, o.quota.amount)
		}
	}
	return amount
}

// mustCount returns how much of a pool has to count for a consumer: what an answer grants, and what pods
// use, or may come to use, of what is on record. Slices of one name have the same pods.
func (w *world) mustCount(owner, pool int) (amount int64) {
	var recorded int64
	for i := range w.objects {
		o := &w.objects[i]
		if o.owner != owner {
			continue
		}
		if o.quota.class == pools[pool] {
			amount = o.quota.amount
		}
		if o.record != nil {
			recorded = max(recorded, o.record.Earlier.Add(o.record.Present).In(pools[pool]).Amounts[thing])
		}
	}
	return max(amount, min(recorded, max(w.pods[owner][pool], w.coming[owner][pool])))
}

// mayUseOf returns how much of a node the pods of all consumers may use.
func (w *world) mayUseOf(node string) (sum int64) {
	for owner := range consumers {
		sum += w.mayUse(owner, slices.Index(pools[:], node))
	}
	return sum
}

// check accuses the world if more is granted of a pool than it has.
func (w *world) check() {
	if w.events[shrinks] > 0 {
		return
	}
	for _, class := range pools {
		if sum := w.mayUseOf(class); sum > w.capacity {
			w.accuse("pods may use %d of the %d of %s", sum, w.capacity, class)
		}
	}
}

// checkCounted accuses a decision that counts too little.
func (w *world) checkCounted(d *decisions) {
	for pool, class := range pools {
		for owner, consumer := range consumers {
			if counted, least := d.Granted()[class][consumer][thing], w.mustCount(owner, pool); counted < least {
				w.accuse("%d of %s counts for %s, want at least %d", counted, class, consumer, least)
			}
		}
	}
}

// step is something that can happen next.
type step struct {
	what string
	do   func(*world)
}

// steps lists what can happen next.
func (w *world) steps() (all []step) {
	add := func(do func(*world), format string, args ...any) {
		all = append(all, step{fmt.Sprintf(format, args...), do})
	}
	// once adds an event of which some are left.
	once := func(e event, do func(*world), format string, args ...any) {
		if w.left[e] > 0 {
			add(func(w *world) { w.left[e]--; do(w) }, format, args...)
		}
	}
	w.leaderSteps(add)
	for i := range w.objects {
		if w.objects[i].owner < w.acting {
			w.sliceSteps(i, once)
		}
	}
	for owner, consumer := range consumers[:w.acting] {
		for pool, class := range pools {
			if pods := w.pods[owner][pool]; pods < w.mayUse(owner, pool) {
				once(runs, func(w *world) { w.start(owner, pool, 1) }, "a pod of %s starts on %s", consumer, class)
			}
			if w.pods[owner][pool] > 0 && w.waiting[owner][pool] {
				once(binds, func(w *world) { w.waiting[owner][pool], w.woken = false, true }, "pods of %s get a node of %s", consumer, class)
			}
			if w.pods[owner][pool] > 0 {
				once(ends, func(w *world) { w.pods[owner][pool]--; w.woken = true }, "a pod of %s ends on %s", consumer, class)
			}
		}
		cordon, drain := cordoned, drained
		if w.tenants[owner] != active {
			cordon, drain = active, active
		}
		once(cordons, func(w *world) { w.setTenant(owner, cordon) }, "the tenant %s: %s", consumer, cordon)
		once(drains, func(w *world) { w.setTenant(owner, drain) }, "the tenant %s: %s", consumer, drain)
	}
	once(removes, func(w *world) { w.removed, w.woken = !w.removed, true }, "the policy of gold is gone: %t", !w.removed)
	once(shrinks, func(w *world) { w.shrunk, w.woken = !w.shrunk, true }, "the policy of gold offers half: %t", !w.shrunk)
	once(turns, func(w *world) { w.turned, w.woken = !w.turned, true }, "the policy of gold selects the node of silver: %t", !w.turned)
	once(passes, func(w *world) { w.passed, w.woken = !w.passed, true }, "another policy decides for rome: %t", !w.passed)
	once(waits, func(w *world) { w.pass() }, "time passes")
	once(returns, func(w *world) {
		if w.returned, w.woken = !w.returned, true; !w.returned {
			w.lead()
		}
	}, "what is missing is back: %t", !w.returned)
	once(terms, func(w *world) { w.lead() }, "another replica leads")
	return all
}

// start adds what pods use of a pool. With unbound, the first wait for a node, and the others join them.
func (w *world) start(owner, pool int, amount int64) {
	if w.pods[owner][pool] == 0 {
		w.waiting[owner][pool] = w.unbound
	}
	w.pods[owner][pool] += amount
	w.woken = true
}

// pass lets more time pass than any grace takes.
func (w *world) pass() {
	w.now += holding.ReleaseGrace + time.Second
	w.coming = [len(consumers)][len(pools)]int64{}
	w.woken = w.woken || w.alarm
}

// setTenant changes the state of a tenant. Liqo takes everything back from a drained one.
func (w *world) setTenant(owner int, state gateState) {
	w.woken = true
	if w.tenants[owner] = state; state == drained {
		w.coming[owner] = [len(pools)]int64{}
	}
	for i := range w.objects {
		o := &w.objects[i]
		if o.owner != owner || o.gone {
			continue
		}
		if w.answerByLiqo(o); state == drained {
			o.quota, o.promised, o.status = allowance{}, allowance{}, sliceAnswer{verdict: denied, reason: "Drained"}
			w.changed(o)
		}
	}
	w.news()
}

// sliceSteps lists what a consumer can do with a slice.
func (w *world) sliceSteps(i int, once func(event, func(*world), string, ...any)) {
	o := &w.objects[i]
	edit := func(e event, do func(*world, *object), format string, args ...any) {
		once(e, func(w *world) { do(w, &w.objects[i]); w.changed(&w.objects[i]) }, "%s: "+format, append([]any{o.uid}, args...)...)
	}
	if o.quota != o.promised {
		once(follows, func(w *world) { w.follow(&w.objects[i], true) }, "%s: its Quota follows", o.uid)
	}
	if o.gone {
		if i == len(w.objects)-1 || w.objects[i+1].owner != o.owner {
			once(creates, func(w *world) { w.create(i) }, "%s creates a slice again", consumers[o.owner])
		}
		return
	}
	for ask := range w.capacity + 1 {
		if ask != o.ask {
			edit(asks, func(_ *world, o *object) { o.ask = ask }, "asks for %d", ask)
		}
	}
	for _, class := range append(w.elsewhere, pools[:]...) {
		if class != o.class {
			edit(moves, func(_ *world, o *object) { o.class = class }, "moves to %s", class)
		}
	}
	edit(hides, func(_ *world, o *object) { o.hidden = !o.hidden }, "is hidden: %t", !o.hidden)
	edit(touches, func(*world, *object) {}, "gets another version")
	edit(strips, func(_ *world, o *object) { o.status = sliceAnswer{} }, "the answer is removed")
	edit(forges, func(w *world, o *object) { o.status = statusOf(reasonPrefix, w.capacity) }, "an answer is forged")
	if !o.large {
		edit(bloats, func(_ *world, o *object) { o.large = true }, "becomes too large")
	}
	edit(deletes, func(w *world, o *object) {
		for pool, class := range pools {
			if o.promised.on == class {
				w.coming[o.owner][pool] = max(w.coming[o.owner][pool], o.promised.amount)
			}
		}
		if o.gone, o.promised = true, (allowance{}); w.events[follows] == 0 {
			o.quota = allowance{}
		}
	}, "is deleted")
}

// create creates a slice of the same name as one that is gone. Both have one Quota.
func (w *world) create(after int) {
	gone := &w.objects[after]
	o := object{owner: gone.owner, uid: gone.uid + "+", class: pools[0], ask: w.ask[gone.owner], version: gone.version}
	o.quota, gone.quota = gone.quota, allowance{}
	w.objects = slices.Insert(w.objects, after+1, o)
	w.changed(&w.objects[after+1])
}

// changed gives a slice a new version.
func (w *world) changed(o *object) {
	o.version++
	w.answerByLiqo(o)
	w.news()
}

// answerByLiqo has Liqo answer its own class at once, unless the tenant is cordoned: then it leaves any answer as it
// is (RemoteResourceSliceReconciler.handleResourcesStatus).
func (w *world) answerByLiqo(o *object) {
	if o.class == holding.LiqoClass && !o.gone && w.tenants[o.owner] == active {
		o.version++
		o.status, o.promised = statusOf("Liqo", o.ask), allowance{holding.LiqoClass, "", o.ask}
		w.follow(o, false)
	}
}

// follow has Liqo write the Quota of what is promised: at once, if Quotas do not lag in the scene. A Quota has no
// class, so it has followed an answer in another class already that is no smaller.
func (w *world) follow(o *object, late bool) {
	if late || w.events[follows] == 0 || o.promised.amount >= o.quota.amount {
		o.quota, w.woken = o.promised, w.woken || late
	}
}

// news lets the leader know everything unless the scene has it learn late.
func (w *world) news() {
	for i := range w.objects {
		if o := &w.objects[i]; !w.slow {
			w.tell(o)
			w.tellRecord(o)
		}
	}
}

func (w *world) tell(o *object) {
	if o.seenVersion == o.version {
		return
	}
	if o.seenVersion = o.version; o.gone {
		w.woken = w.leader.remove(w, o) || w.woken
	} else {
		w.woken = w.leader.see(w, o) || w.woken
	}
}

func (w *world) tellRecord(o *object) {
	if o.seenRecords != o.recorded {
		o.seenRecords = o.recorded
		w.woken = w.leader.seeRecord(o) || w.woken
	}
}

// leaderSteps lists what the leader can do, and what it can learn.
func (w *world) leaderSteps(add func(func(*world), string, ...any)) {
	switch {
	case w.deciding != nil:
		add((*world).commit, "the decision is assumed")
	case w.split:
		add((*world).decide, "a decision begins")
	default:
		add(func(w *world) { w.decide(); w.commit() }, "the leader decides")
	}
	for i := range w.objects {
		o := &w.objects[i]
		if w.leader.hasTask(o.uid) && w.deciding == nil {
			add(func(w *world) { w.write(i) }, "the leader begins to write %s", o.uid)
		}
		if o.seenVersion != o.version {
			add(func(w *world) { w.tell(&w.objects[i]) }, "the leader sees %s", o.uid)
		}
		if o.seenRecords != o.recorded {
			add(func(w *world) { w.tellRecord(&w.objects[i]) }, "the leader sees the record of %s", o.uid)
		}
	}
	for j := range w.flight {
		w.requestSteps(j, add)
	}
}

func (w *world) requestSteps(j int, add func(func(*world), string, ...any)) {
	r := &w.flight[j]
	if !r.sent {
		add(func(w *world) { w.send(j) }, "sent: %s", r)
	}
	if r.waited && r.sent {
		add(func(w *world) { w.respond(j) }, "reported: %s", r)
	}
	if r.waited && !r.sent && w.left[fails] > 0 {
		add(func(w *world) { w.left[fails]--; w.refuse(j) }, "refused: %s", r)
	}
	if r.waited && w.left[fails] > 0 {
		add(func(w *world) { w.left[fails]--; w.giveUp(j) }, "not reported: %s", r)
	}
	if !r.waited && !r.sent {
		add(func(w *world) { w.flight = slices.Delete(w.flight, j, j+1) }, "lost: %s", r)
	}
}

func (r *request) String() string {
	switch r.step.Action {
	case protocol.WriteRecord:
		return fmt.Sprint("record of ", r.uid, ": ", r.step.Record)
	case protocol.DeleteRecord:
		return fmt.Sprint("no record of ", r.uid)
	default:
		return fmt.Sprint("answer to ", r.uid, ": ", r.want.Share)
	}
}

func (w *world) decide() {
	w.woken, w.alarm = false, false
	w.deciding = w.leader.decide(w)
	w.checkCounted(w.deciding)
}

func (w *world) commit() {
	w.alarm = w.leader.commit(w, w.deciding)
	w.deciding = nil
}

// end lets the worker leave a slice, and wakes the leader.
func (w *world) end(uid types.UID) {
	w.leader.end(uid)
	w.woken = true
}

// write lets a worker begin with a slice.
func (w *world) write(i int) {
	if uid := w.objects[i].uid; w.leader.start(uid) {
		w.next(uid)
	}
}

// next lets the worker that has a slice send its next write.
func (w *world) next(uid types.UID) {
	t, ok := w.leader.next(uid)
	if !ok {
		w.end(uid)
		return
	}
	w.flight = append(w.flight, request{task: t, uid: uid, waited: true})
	if j := len(w.flight) - 1; !w.async {
		w.send(j)
		w.respond(j)
	}
}

// send has the API server make a write.
func (w *world) send(j int) {
	r := &w.flight[j]
	o := w.object(r.uid)
	r.sent = true
	switch at := ""; r.step.Action {
	case protocol.WriteAnswer:
		if r.made = !o.gone && !o.large && r.version == strconv.Itoa(o.version); r.made {
			w.answered(o, r)
			r.result = o.slice()
		}
	default:
		if o.record != nil {
			at = strconv.Itoa(o.recordVersion)
		}
		if r.made = r.step.Version == at; r.made {
			o.recorded++
			if o.record, o.recordVersion = nil, o.recorded; r.step.Action == protocol.WriteRecord {
				o.record = new(r.step.Record)
			}
			r.resultVersion = o.recorded
		}
	}
	if !r.waited {
		w.flight = slices.Delete(w.flight, j, j+1)
	}
	w.news()
}

// answered writes an answer. A denial leaves the Quota in place.
func (w *world) answered(o *object, r *request) {
	now := allowance{r.want.Class, cmp.Or(r.answer.nodeSelector["pool"], r.want.Class), r.want.Amounts[thing]}
	keeps := w.events[shrinks]+w.events[turns]+w.events[passes]+w.events[removes]+w.events[strips]+w.events[forges] == 0
	if fell := min(o.promised.amount, o.ask); keeps && o.promised.class == o.class && o.promised.on == now.on && now.amount < fell {
		w.accuse("%s falls from %d to %d and asks for %d", o.uid, o.promised.amount, now.amount, o.ask)
	}
	raised := now.amount > o.promised.amount
	if o.status = *r.answer; o.status.verdict == accepted {
		o.promised = now
		w.follow(o, false)
	}
	o.version++
	// An earlier leader may have granted what has gone away since.
	if known := w.events[returns] < 2; raised && known && w.missing > 0 && !w.returned && w.mayUseOf(now.on) > w.capacity-w.missing {
		w.accuse("%s is raised to %d although %d are missing", o.uid, now.amount, w.missing)
	}
}

// respond reports the outcome of a write to the leader, who continues with the slice.
func (w *world) respond(j int) {
	r := w.flight[j]
	w.flight = slices.Delete(w.flight, j, j+1)
	if w.leader.outcome(&r, w.object(r.uid)) {
		w.next(r.uid)
	} else {
		w.end(r.uid)
	}
}

// giveUp ends the wait for the outcome of a write, which can still be made.
func (w *world) giveUp(j int) {
	r := &w.flight[j]
	w.end(r.uid)
	if r.waited = false; r.sent {
		w.flight = slices.Delete(w.flight, j, j+1)
	}
}

// refuse has the API server refuse a write for good.
func (w *world) refuse(j int) {
	r := w.flight[j]
	w.flight = slices.Delete(w.flight, j, j+1)
	if r.step.Action == protocol.WriteRecord {
		w.leader.refused(r.uid)
	}
	w.end(r.uid)
}

func (w *world) object(uid types.UID) *object {
	return &w.objects[slices.IndexFunc(w.objects, func(o object) bool { return o.uid == uid })]
}
