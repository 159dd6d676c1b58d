package protocol

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"proffer.dev/proffer/internal/capacity"
)

// The exploration visits every order in which leaders, an API server and a consumer can act on a
// few slices, up to a number of steps. After each step it checks that no more is accepted than the
// pools have. The API server may make a write late, or never, or make it and lose the response.
//
// The steps, terms, edits of the consumer and requests in flight are bounded. The arithmetic is not
// modelled: every decision that fits into the pool is tried. In a scene with pods, these use all of an
// earlier share, so it stays on record; else it is given up as soon as that is allowed.

// depthEnv sets the number of steps.
const depthEnv = "PROFFER_EXPLORE_DEPTH"

// scene is one setting to explore.
type scene struct {
	slices int
	// granted is the number of slices that begin with the whole pool.
	granted int
	// classes is the number of classes. Their pools share no nodes, or all of them if overlap is
	// set.
	classes int
	overlap bool
	// policies is the number of policies, each with a pool of its own, among which a class changes. With 0, there is
	// one, without a name.
	policies int
	pods     bool
	capacity int64
	terms    int
	edits    int
	inFlight int
	depth    int
	// without is the rule that is switched off.
	without string
}

// request is a write in flight.
type request struct {
	term, slice int
	action      Action
	record      Record
	share       Share
	// version is that of the object to replace, empty to create it.
	version string
}

// stored is a slice and its record in the API server.
type stored struct {
	class, version int
	gone           bool
	accepted       Share
	record         *Record
	recordVersion  int
	// written counts all versions of the record.
	written int
}

// known is what the leader knows of one slice.
type known struct {
	entry    Entry
	class    int
	version  int
	accepted Share
	want     Share
	decided  bool
	// vouched is what a decision may keep of what is on record: what was when the term began, and
	// the last answer.
	vouched Shares
	// waits reports whether a request is in flight. base is the version of the slice that was
	// decided on.
	waits bool
	base  int
}

// world is one state of everything.
type world struct {
	server []stored
	// leader is what the present leader knows, term the number of its term.
	leader []known
	term   int
	edits  int
	flight []request
	// before is the state before the last step.
	before *world
	step   step
}

// step describes a step: a format and its arguments. Most steps are never printed.
type step struct {
	format string
	args   []any
}

func (w *world) clone(format string, args ...any) *world {
	next := *w
	next.server = append([]stored(nil), w.server...)
	next.leader = append([]known(nil), w.leader...)
	next.flight = append([]request(nil), w.flight...)
	next.before, next.step = w, step{format, args}
	return &next
}

// trace returns the steps that led here.
func (w *world) trace() []string {
	if w.before == nil {
		return nil
	}
	return append(w.before.trace(), fmt.Sprintf(w.step.format, w.step.args...))
}

// key identifies a state. Of versions only the order within one object matters.
func (w *world) key(s *scene) string {
	k := make(key, 0, 256)
	for i := range w.server {
		sv, l := &w.server[i], &w.leader[i]
		k = k.number(sv.class).flag(sv.gone).share(sv.accepted).record(sv.record)
		k = k.number(l.class).number(sv.version - l.version).share(l.accepted).share(l.want).flag(l.decided).flag(l.waits).number(sv.version - l.base)
		e := &l.entry
		k = k.record(e.record).behind(e.version, sv.written).number(int(e.authority)).share(e.planned).number(len(e.uncertain))
		for j := range e.uncertain {
			k = k.record(&e.uncertain[j])
		}
		k = k.shares(l.vouched)
		if k = k.flag(e.largestAnswer != nil); e.largestAnswer != nil {
			k = k.share(*e.largestAnswer)
		}
	}
	for _, r := range w.flight {
		written := w.server[r.slice].written
		if r.action == WriteAnswer {
			written = w.server[r.slice].version
		}
		k = k.number(r.slice).flag(r.term == w.term).number(int(r.action)).record(&r.record).share(r.share).behind(r.version, written)
	}
	return string(k.number(s.terms - w.term).number(w.edits))
}

// key is built from the parts of a state. Each part ends where the next begins, so states that
// differ have different keys.
type key []byte

func (k key) number(n int) key { return append(strconv.AppendInt(k, int64(n), 10), ' ') }

func (k key) flag(set bool) key {
	if set {
		return append(k, '+')
	}
	return append(k, '-')
}

// behind adds by how many versions an object is ahead of this one, empty for none.
func (k key) behind(version string, of int) key {
	if version == "" {
		return append(k, '-', ' ')
	}
	n, _ := strconv.Atoi(version)
	return k.number(of - n)
}

func (k key) share(s Share) key {
	return append(append(k, s.Class...), s.Policy...).number(int(s.Amounts["x"]))
}

func (k key) record(r *Record) key {
	if r == nil {
		return append(k, '-')
	}
	return k.flag(r.Released).share(r.Present).shares(r.Earlier)
}

func (k key) shares(all Shares) key {
	k = k.number(len(all))
	for _, s := range all {
		k = k.share(s)
	}
	return k
}

func classOf(i int) string { return string(rune('a' + i)) }

func shareOf(class int, amount int64) Share {
	return Share{Class: classOf(class), Amounts: capacity.Amounts{"x": amount}}
}

// granters lists the policies of the scene.
func (s *scene) granters() (all []string) {
	for i := range s.policies {
		all = append(all, strconv.Itoa(i))
	}
	if len(all) == 0 {
		return []string{""}
	}
	return all
}

// newWorld returns the state in which a leader begins with slices of class 0.
func newWorld(s *scene) *world {
	w := &world{server: make([]stored, s.slices), leader: make([]known, s.slices), edits: s.edits}
	for i := range w.server {
		w.server[i].version = 1
		if i < s.granted {
			all := shareOf(0, s.capacity)
			all.Policy = s.granters()[0]
			w.server[i].accepted, w.server[i].record = all, &Record{Present: all, Term: "before"}
			w.server[i].recordVersion, w.server[i].written = 1, 1
		}
	}
	w.begin(s)
	return w
}

// begin starts the next term with what the API server holds at this moment.
func (w *world) begin(s *scene) {
	w.term++
	for i := range w.leader {
		sv := &w.server[i]
		k := known{class: sv.class, version: sv.version, accepted: sv.accepted}
		if s.without == "a term begins with the records" {
			k.entry.Begin(nil, "")
		} else if sv.record != nil {
			k.entry.Begin(sv.record, strconv.Itoa(sv.recordVersion))
		}
		if s.without == "a record is owned only by a write of the term" {
			k.entry.authority = owning
		}
		k.vouched = k.entry.OnRecord()
		w.leader[i] = k
	}
}

// successors visits the states that one step leads to.
func (w *world) successors(s *scene, visit func(*world)) {
	for i := range w.leader {
		w.decisions(s, i, visit)
		w.writes(s, i, visit)
		w.news(i, visit)
		w.edit(s, i, visit)
	}
	for j := range w.flight {
		w.deliveries(s, j, visit)
	}
	if w.term < s.terms {
		next := w.clone("takeover")
		next.begin(s)
		visit(next)
	}
}

// counts returns what the leader counts as granted to all slices except one in the pool of a class on some nodes.
func (w *world) counts(s *scene, class int, on string, but int) int64 {
	var sum int64
	for i := range w.leader {
		if i == but {
			continue
		}
		for _, h := range w.leader[i].entry.Holds() {
			if l := &w.leader[i]; s.without == "what is on record counts" && h.Class != l.want.Class && l.entry.Settled(l.want.Class) {
				continue
			}
			if s.overlap || h.Class == classOf(class) && h.isWhere(Share{Policy: on}) {
				sum += h.Amounts["x"]
			}
		}
	}
	return sum
}

// decisions visits all amounts that the leader may decide on for a slice.
func (w *world) decisions(s *scene, i int, visit func(*world)) {
	k := &w.leader[i]
	if k.waits || k.version < w.server[i].version-2 {
		return
	}
	for _, on := range s.granters() {
		w.decisionsOn(s, i, on, visit)
	}
}

func (w *world) decisionsOn(s *scene, i int, on string, visit func(*world)) {
	k := &w.leader[i]
	own := k.entry.Holds()
	for amount := range s.capacity + 1 {
		want := shareOf(k.class, amount)
		want.Policy = on
		if k.decided && k.want.Same(want) && k.want.Policy == on || amount == 0 && on != s.granters()[0] {
			continue
		}
		held, vouched, kept := own.In(want.Class), k.vouched.In(want.Class), int64(0)
		if vouched.Policy == on {
			kept = held.Least(vouched.Amounts).Amounts["x"]
		}
		if s.without == "a record that comes during the term vouches for nothing" {
			kept = held.Amounts["x"]
		}
		others := w.counts(s, k.class, on, i)
		if s.overlap {
			// What the slice holds in another class is in the same pool until given up.
			for _, h := range own.Without(classOf(k.class)) {
				others += h.Amounts["x"]
			}
		}
		if amount > kept && others+amount > s.capacity {
			continue
		}
		next := w.clone("term %d decides %s for slice %d", w.term, want, i)
		n := &next.leader[i]
		n.want, n.decided, n.base = want, true, n.version
		if s.without != "what is decided counts" {
			n.entry.Plan(want)
		}
		visit(next)
	}
}

// writes sends the next write for a slice.
func (w *world) writes(s *scene, i int, visit func(*world)) {
	k := &w.leader[i]
	if !k.decided || k.waits || k.base != k.version || len(w.flight) == s.inFlight {
		return
	}
	want := Want{Share: k.want, Stands: k.accepted.Same(k.want) && k.accepted.Policy == k.want.Policy || k.accepted.Empty() && k.want.Empty()}
	if s.pods {
		want.Earlier = k.entry.OnRecord().Without(k.want.Class)
	}
	next := w.clone("")
	n := &next.leader[i]
	switch s.without {
	case "the record comes before the answer":
		if !want.Stands {
			r := Record{Present: k.want, Term: fmt.Sprint("skipped", len(w.trace()))}
			n.entry.record, n.entry.authority, n.entry.uncertain = &r, owning, nil
		}
	case "an answer is confirmed before its record is lowered":
		n.entry.largestAnswer = &n.want
	case "a record names all policies until an answer of one is confirmed":
		if n.entry.record != nil {
			r := *n.entry.record
			r.Present.Policy, n.entry.record = k.want.Policy, &r
		}
	}
	write := n.entry.Next(fmt.Sprint("t", w.term), want)
	if write.Action == Nothing {
		return
	}
	r := request{term: w.term, slice: i, action: write.Action, record: write.Record, share: k.want, version: write.Version}
	if r.action == WriteAnswer {
		r.version = strconv.Itoa(k.version)
	}
	n.waits = true
	next.flight = append(next.flight, r)
	next.step = step{"term %d sends %s", []any{w.term, r}}
	visit(next)
}

func (r request) String() string {
	what := ""
	switch r.action {
	case Nothing:
	case WriteRecord:
		what = fmt.Sprint("record ", r.record)
	case DeleteRecord:
		what = "no record"
	case WriteAnswer:
		what = fmt.Sprint("answer ", r.share)
	}
	return fmt.Sprintf("%s of slice %d at %q", what, r.slice, r.version)
}

// news delivers events of the watch to the leader: a slice, or its record.
func (w *world) news(i int, visit func(*world)) {
	sv, k := &w.server[i], &w.leader[i]
	if k.version != sv.version {
		next := w.clone("term %d sees slice %d", w.term, i)
		next.see(i)
		visit(next)
	}
	if sv.record == nil && k.entry.record != nil || sv.record != nil && k.entry.version != strconv.Itoa(sv.recordVersion) {
		next := w.clone("term %d sees the record of slice %d", w.term, i)
		next.seeRecord(i)
		visit(next)
	}
}

func (w *world) see(i int) {
	n := &w.leader[i]
	n.version, n.class, n.accepted = w.server[i].version, w.server[i].class, w.server[i].accepted
}

func (w *world) seeRecord(i int) {
	sv, e := &w.server[i], &w.leader[i].entry
	if sv.record == nil {
		e.RecordSeen(nil, "")
		return
	}
	e.RecordSeen(sv.record, strconv.Itoa(sv.recordVersion))
}

// edit lets the consumer change a slice: its version, and perhaps its class.
func (w *world) edit(s *scene, i int, visit func(*world)) {
	if w.edits == 0 {
		return
	}
	for class := range s.classes {
		next := w.clone("slice %d is edited, class %s", i, classOf(class))
		next.edits--
		next.server[i].version++
		next.server[i].class = class
		visit(next)
	}
}

// deliveries visits the possible outcomes of a request: it is made, refused or lost, and the leader
// learns of it or gives up waiting.
func (w *world) deliveries(s *scene, j int, visit func(*world)) {
	r := w.flight[j]
	waited := w.leader[r.slice].waits && r.term == w.term
	without := func(what string) *world {
		next := w.clone("%s: %s", what, r)
		next.flight = append(next.flight[:j:j], next.flight[j+1:]...)
		return next
	}
	if waited {
		// The leader gives up waiting. The request may still be made.
		next := w.clone("gives up waiting for %s", r)
		n := &next.leader[r.slice]
		n.waits = false
		if r.action == WriteRecord && s.without == "a write of unknown outcome counts" {
			n.entry.RecordRefused()
		}
		next.flight[j].term = 0
		visit(next)
	} else {
		visit(without("lost"))
	}
	next := without("made")
	made := next.make(s, &r)
	if !waited {
		visit(next)
		return
	}
	n := &next.leader[r.slice]
	n.waits = false
	next.outcome(&r, made)
	visit(next)
}

// make applies a request in the API server, and reports whether its version was current.
func (w *world) make(s *scene, r *request) bool {
	sv := &w.server[r.slice]
	if r.action == WriteAnswer {
		if r.version != strconv.Itoa(sv.version) && s.without != "an answer replaces the version that it was decided on" {
			return false
		}
		sv.version++
		sv.accepted = r.share
		return true
	}
	now := ""
	if sv.record != nil {
		now = strconv.Itoa(sv.recordVersion)
	}
	if r.version != now {
		return false
	}
	if r.action == DeleteRecord {
		sv.record = nil
		return true
	}
	if sv.record != nil && s.without == "no two writes of a record are the same" && sv.record.same(&r.record) {
		return true // The API server creates no version for a write without a change.
	}
	sv.written++
	sv.record, sv.recordVersion = &r.record, sv.written
	return true
}

// outcome reports the outcome of a write to the leader. After a conflict the leader reads.
func (w *world) outcome(r *request, made bool) {
	sv, n := &w.server[r.slice], &w.leader[r.slice]
	switch {
	case r.action == WriteAnswer && made:
		n.entry.AnswerWritten(r.share)
		n.vouched = n.vouched.Without(r.share.Class).Add(r.share)
		w.see(r.slice)
		n.base = n.version
	case r.action == WriteAnswer:
		w.see(r.slice)
	case r.action == DeleteRecord && made:
		n.entry.RecordDeleted()
	case made && n.entry.version == strconv.Itoa(sv.recordVersion):
		// The write created no new version, so it proves nothing, but the leader believes it.
		n.entry.authority, n.entry.uncertain = owning, nil
	case made:
		n.entry.RecordWritten(strconv.Itoa(sv.recordVersion))
	default:
		w.seeRecord(r.slice)
	}
}

// exceeded describes a pool of which more is accepted than it has, empty for none.
func (w *world) exceeded(s *scene) string {
	sums := map[string]int64{}
	for i := range w.server {
		if a := w.server[i].accepted; !a.Empty() {
			pool := a.Class + a.Policy
			if s.overlap {
				pool = "all"
			}
			sums[pool] += a.Amounts["x"]
		}
	}
	for pool, sum := range sums {
		if sum > s.capacity {
			return fmt.Sprintf("%d of %d accepted in pool %s", sum, s.capacity, pool)
		}
	}
	return ""
}

// explore visits every state up to the depth. It returns their number, and a trace to a state in
// which too much is accepted.
func explore(s *scene) (states int, excess string) {
	seen := map[string]struct{}{}
	level := []*world{newWorld(s)}
	for depth := 0; depth <= s.depth && len(level) > 0; depth++ {
		var next []*world
		for _, w := range level {
			states++
			if why := w.exceeded(s); why != "" {
				return states, why + ":\n  " + strings.Join(w.trace(), "\n  ")
			}
			if depth == s.depth {
				continue
			}
			w.successors(s, func(n *world) {
				key := n.key(s)
				if _, known := seen[key]; known {
					return
				}
				seen[key] = struct{}{}
				next = append(next, n)
			})
		}
		level = next
	}
	return states, ""
}

// scenes are each explored to a depth that takes seconds. PROFFER_EXPLORE_DEPTH adds to the depth.
var scenes = map[string]scene{
	"two slices, one pool, two terms":              {slices: 2, classes: 1, capacity: 1, terms: 2, edits: 0, inFlight: 2, depth: 16},
	"two slices, one pool, an edit, three terms":   {slices: 2, classes: 1, capacity: 1, terms: 3, edits: 1, inFlight: 2, depth: 11},
	"two slices, two separate pools, moves":        {slices: 2, classes: 2, capacity: 1, terms: 2, edits: 2, inFlight: 2, depth: 11},
	"two slices, two classes on one pool, moves":   {slices: 2, classes: 2, overlap: true, capacity: 1, terms: 2, edits: 1, inFlight: 2, depth: 11},
	"two slices, two pools, moves that leave pods": {slices: 2, granted: 1, classes: 2, pods: true, capacity: 1, terms: 2, edits: 2, inFlight: 1, depth: 12},
	"three slices, one pool, partial amounts":      {slices: 3, classes: 1, capacity: 2, terms: 2, edits: 0, inFlight: 2, depth: 9},
	"one slice has all, another asks, three terms": {slices: 2, granted: 1, classes: 1, capacity: 1, terms: 3, edits: 0, inFlight: 2, depth: 14},
	"two slices, two policies":                     {slices: 2, granted: 1, classes: 1, policies: 2, capacity: 1, terms: 2, edits: 0, inFlight: 1, depth: 13},
	"two slices, two policies, two in flight":      {slices: 2, granted: 1, classes: 1, policies: 2, capacity: 1, terms: 1, edits: 1, inFlight: 2, depth: 12},
	"two slices, three requests in flight":         {slices: 2, classes: 1, capacity: 1, terms: 2, edits: 0, inFlight: 3, depth: 12},
}

func depthOf(t *testing.T, s scene) scene {
	t.Helper()
	if text := os.Getenv(depthEnv); text != "" {
		more, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s=%q is not a number", depthEnv, text)
		}
		s.depth += more
	}
	return s
}

func TestNoOrderOfEventsHasMoreAcceptedThanThereIs(t *testing.T) {
	for name, s := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := depthOf(t, s)
			states, excess := explore(&s)
			t.Logf("%d states to a depth of %d", states, s.depth)
			if excess != "" {
				t.Error(excess)
			}
			if states < 1000 {
				t.Errorf("only %d states were explored", states)
			}
		})
	}
}

// Without any one of the rules, some order of events leads to more accepted than there is.
func TestEachRuleIsNeeded(t *testing.T) {
	base := scene{slices: 2, classes: 1, capacity: 1, terms: 2, inFlight: 2, depth: 17}
	granted := base
	granted.granted, granted.terms = 1, 3
	returning := granted
	returning.classes, returning.pods, returning.edits, returning.terms, returning.inFlight, returning.depth = 2, true, 2, 1, 1, 24
	passing := granted
	passing.policies, passing.terms = 2, 2
	for rule, s := range map[string]scene{
		"the record comes before the answer":                              base,
		"an answer is confirmed before its record is lowered":             granted,
		"a term begins with the records":                                  base,
		"a record is owned only by a write of the term":                   granted,
		"a write of unknown outcome counts":                               base,
		"what is decided counts":                                          base,
		"an answer replaces the version that it was decided on":           base,
		"no two writes of a record are the same":                          granted,
		"what is on record counts":                                        returning,
		"a record that comes during the term vouches for nothing":         base,
		"a record names all policies until an answer of one is confirmed": passing,
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			s.without = rule
			if _, excess := explore(&s); excess == "" {
				t.Error("no pool is exceeded without the rule")
			} else {
				t.Log(excess)
			}
		})
	}
}
