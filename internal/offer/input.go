package offer

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"proffer.dev/proffer/internal/capacity"
)

// Input is everything that an evaluation depends on. The caller must not change any of it
// afterwards.
type Input struct {
	// Policies are all valid policies, in any order. An invalid policy takes no part.
	Policies []Policy
	// Former are policies as they were before an edit of their nodes or their deletion, for what they have granted and
	// has not been answered since: see FormerPolicies.
	Former []Policy
	// Consumers are the known consumers, each once, in any order. Consumers that a policy names, also one that is
	// awaited, those with pods or grants, and those that give nodes of a pool are known without being listed.
	Consumers []Consumer
	// View is the account of nodes and pods. Its Pools answer Selections(Policies, Former), in the same order;
	// its Columns include ResourceNames(Policies) and the names of Recorded.
	View capacity.View
	// Grants maps classes and consumer IDs to what ResourceSlices were granted.
	Grants map[string]map[string]capacity.Amounts
	// GrantedBy maps them to the granters that granted it, where no policy decides in the class, or another granter
	// than granted it. Where none decides, it may be on any nodes if none is named, or the nodes of one are not known.
	GrantedBy map[string]map[string][]string
	// Levels maps policies and resources to the levels at which pools are given out: see Stabilizer. A
	// resource without a level is given out as it is.
	Levels map[string]capacity.Amounts
	// External maps policies to what their external sources have answered: see LastAnswers. The Columns
	// of the View include AnsweredNames.
	External map[string]capacity.Answers
	// Previous are the offers of the evaluation before, the zero value in the first evaluation.
	Previous Offers
	// Recorded holds the records of an earlier process. It matters only in the first evaluation.
	Recorded []PreviousOffers
	// Now is the time of the evaluation.
	Now time.Time
	// Grace is the time for which a policy that is gone is awaited, 0 to withdraw its offers at once.
	Grace time.Duration
	// Awaited are the policies that are awaited, by name: see Awaiting. An offer of one of them stays as it is
	// if no other policy decides on it.
	Awaited map[string]Awaited
}

// Awaited is a policy that is gone since less than Input.Grace: it may be about to be applied again.
type Awaited struct {
	*Policy
	// Left is the time for which the policy is still awaited.
	Left time.Duration
}

// Awaiting finds the policies that are gone, from one evaluation to the next. The zero value awaits none. It is
// not safe for concurrent use. A copy goes on by itself.
type Awaiting struct {
	// policies were in the latest evaluation. gone is replaced and never changed.
	policies []Policy
	gone     []absence
}

// absence is a policy that was found gone at a time.
type absence struct {
	*Policy
	since time.Time
}

// Update sets in.Awaited.
func (a *Awaiting) Update(in *Input) {
	before := *a
	*a = Awaiting{policies: in.Policies}
	in.Awaited = map[string]Awaited{}
	exists := make(map[string]struct{}, len(in.Policies))
	for i := range in.Policies {
		exists[in.Policies[i].Name] = struct{}{}
	}
	await := func(p *Policy, since time.Time) {
		if in.Now.Before(since) {
			since = in.Now // A clock that was set back lets nothing wait for longer than the grace again.
		}
		left := in.Grace - in.Now.Sub(since)
		if _, applied := exists[p.Name]; applied || left <= 0 {
			return
		}
		a.gone = append(a.gone, absence{p, since})
		in.Awaited[p.Name] = Awaited{Policy: p, Left: left}
	}
	for _, x := range before.gone {
		await(x.Policy, x.since)
	}
	for i := range before.policies {
		await(&before.policies[i], in.Now)
	}
}

// FormerPolicies remembers the nodes that policies have granted from, from one evaluation to the next, as long as
// records of grants name them. The zero value remembers none. It is not safe for concurrent use. A copy goes on by
// itself.
type FormerPolicies struct {
	// byGranter holds the policies with nodes of the latest evaluation, and the former ones. It is replaced and never
	// changed.
	byGranter map[string]rememberedPolicy
}

// rememberedPolicy is a policy of the latest evaluation, or a former one.
type rememberedPolicy struct {
	*Policy
	former bool
}

// Resume remembers policies as an earlier process knew them. It is called before the first Update.
func (f *FormerPolicies) Resume(policies []Policy) {
	f.byGranter = make(map[string]rememberedPolicy, len(policies))
	for i := range policies {
		f.byGranter[policies[i].Granter()] = rememberedPolicy{&policies[i], true}
	}
}

// Update sets in.Former. Granters returns what records name; it is called only if it matters, and nil if there are no
// records. What the evaluation before decided may be recorded meanwhile, so its policies are remembered in any case.
func (f *FormerPolicies) Update(in *Input, granters func() map[string]struct{}) {
	before := f.byGranter
	f.byGranter = make(map[string]rememberedPolicy, len(in.Policies))
	for i := range in.Policies {
		if p := &in.Policies[i]; p.Nodes != nil {
			f.byGranter[p.Granter()] = rememberedPolicy{Policy: p}
		}
	}
	if granters == nil {
		return
	}
	named := sync.OnceValue(granters)
	for _, by := range slices.Sorted(maps.Keys(before)) {
		if _, present := f.byGranter[by]; present {
			continue
		}
		if before[by].former {
			if _, granted := named()[by]; !granted {
				continue
			}
		}
		former := *before[by].Policy
		in.Former = append(in.Former, former)
		f.byGranter[by] = rememberedPolicy{&former, true}
	}
}

// AnsweredNames returns the resources, sorted, that external sources have answered with. A View must
// include them, like the names of ResourceNames.
func AnsweredNames(external map[string]capacity.Answers) []string {
	var names []string
	for _, answers := range external {
		names = append(names, answers.Names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// LastAnswers keeps the answers that count for each policy from one evaluation to the next: what a
// policy offers outlives a restart of this process, an edit of the address and a replacement of the policy,
// until the monitor has answered for the consumer. The zero value has none. It is not safe for concurrent use.
// A copy goes on by itself.
type LastAnswers struct {
	// byPolicy is replaced and never changed, as is all that it holds.
	byPolicy map[string]capacity.Answers
}

// LastAnswersAt returns LastAnswers with these answers, by policy.
func LastAnswersAt(external map[string]capacity.Answers) LastAnswers {
	return LastAnswers{byPolicy: external}
}

// Update sets in.External, for the policies and those that are awaited. The answersOf returns what a monitor has
// answered so far. Before the first evaluation, what in.Recorded says that a policy offered counts as its last
// answers.
func (l *LastAnswers) Update(in *Input, answersOf func(capacity.Monitor) capacity.Answers) {
	before := l.byPolicy
	if before == nil {
		before = recordedAnswers(in.Recorded)
	}
	l.byPolicy = map[string]capacity.Answers{}
	note := func(p *Policy) {
		if p.External == nil {
			return
		}
		answers := answersOf(p.External.Monitor)
		if last := before[p.Name]; !p.External.Zero && len(last.Of) > 0 {
			answers = withLast(answers, last)
		}
		l.byPolicy[p.Name] = answers
	}
	for i := range in.Policies {
		note(&in.Policies[i])
	}
	for _, p := range in.Awaited {
		note(p.Policy)
	}
	in.External = l.byPolicy
}

// withLast adds to answers the last ones, for consumers for which there is none yet. They are stale.
func withLast(a, last capacity.Answers) capacity.Answers {
	if a.Asked && len(a.Awaited) == 0 {
		return a
	}
	of := make(map[string]capacity.Answered, len(last.Of)+len(a.Of))
	distinct := slices.Clone(a.Distinct)
	moved := map[int]int{}
	for _, id := range slices.Sorted(maps.Keys(last.Of)) {
		if _, newer := a.Of[id]; newer {
			continue
		}
		if _, awaited := slices.BinarySearch(a.Awaited, id); a.Asked && !awaited {
			continue
		}
		answered := last.Of[id]
		to, ok := moved[answered.Index]
		if !ok {
			to = len(distinct)
			moved[answered.Index] = to
			distinct = append(distinct, capacity.Answer{Amounts: last.Distinct[answered.Index].Amounts, Stale: true})
		}
		of[id] = capacity.Answered{Index: to, At: answered.At, Kept: true}
	}
	maps.Copy(of, a.Of)
	a.Distinct, a.Of = distinct, of
	return a
}

// recordedAnswers returns what policies offered before this process started, by policy.
func recordedAnswers(records []PreviousOffers) map[string]capacity.Answers {
	byPolicy := map[string]capacity.Answers{}
	for _, r := range records {
		answers := capacity.Answers{Of: make(map[string]capacity.Answered, len(r.Offers))}
		for _, id := range slices.Sorted(maps.Keys(r.Offers)) {
			same := func(a capacity.Answer) bool { return maps.Equal(a.Amounts, r.Offers[id]) }
			at := slices.IndexFunc(answers.Distinct, same)
			if at < 0 {
				at = len(answers.Distinct)
				answers.Distinct = append(answers.Distinct, capacity.Answer{Amounts: r.Offers[id], Stale: true})
			}
			answers.Of[id] = capacity.Answered{Index: at}
		}
		byPolicy[r.Policy] = answers
	}
	return byPolicy
}

// PreviousOffers is a written record of what one policy offered. In the first evaluation of a process
// the records replace Input.Previous: a restart neither takes an offer from under a consumer's pods
// nor drops a resource without an explicit 0.
type PreviousOffers struct {
	// Policy is the name of the policy, Class the class of the offers. Reclaim applies if no policy
	// decides any longer.
	Policy, Class string
	Reclaim       Reclaim
	// Offers maps consumer IDs to what they were offered.
	Offers map[string]capacity.Amounts
	// Complete is set if Offers lists every consumer for which the policy decided. If not, every other
	// consumer, known or not, is taken to have been offered all of Names.
	Complete bool
	// Names are the resources that the policy has offered.
	Names []string
	// Withdrawn is the time at which the offers were withdrawn, in Unix seconds, 0 for offers that were
	// in force. Every other consumer has then been offered 0 of Names.
	Withdrawn int64
	// Earlier holds the time for consumers whose offers were withdrawn earlier, by ID, empty for the default offer.
	Earlier map[string]int64
	// Anyone is set if the default offer was withdrawn, too.
	Anyone bool
}

// withdrawn returns the time at which the offer to a consumer was withdrawn, 0 for one that was in force.
func (r *PreviousOffers) withdrawn(id string) int64 {
	if at, listed := r.Earlier[id]; listed {
		return at
	}
	return r.Withdrawn
}

// others returns what consumers that are not listed have been offered.
func (r *PreviousOffers) others() capacity.Amounts {
	amounts := make(capacity.Amounts, len(r.Names))
	for _, name := range r.Names {
		amounts[name] = unknownAmount
		if r.Withdrawn != 0 {
			amounts[name] = 0
		}
	}
	return amounts
}

// restoredPolicy is the policy of restored offers. No policy has this name, so a restored offer is
// never published as it is.
const restoredPolicy = "\x00restored"

// restoreOffers returns the offers that the records describe, and the entry of a known consumer that is not
// among them. If two records list the same class for a consumer, as happens right after one policy took
// over from another, the larger of each amount counts.
func restoreOffers(records []PreviousOffers, now int64) (before Offers, others *Entry) {
	records = slices.Clone(records)
	slices.SortFunc(records, func(a, b PreviousOffers) int { return cmp.Compare(a.Policy, b.Policy) })
	entries, anyone := map[string]*Entry{}, &Entry{}
	others = &Entry{}
	for _, r := range records {
		for id, amounts := range r.Offers {
			if entries[id] == nil {
				entries[id] = &Entry{}
			}
			entries[id].restore(r, r.withdrawn(id), amounts)
		}
	}
	for _, r := range records {
		amounts := r.others()
		if r.Anyone || !r.Complete && r.Withdrawn == 0 {
			anyone.restore(r, r.withdrawn(""), amounts)
		}
		if !r.Complete || r.Anyone && !elapsed(now, r.withdrawn(""), InheritedFor) {
			others.restore(r, r.withdrawn(""), amounts)
		}
		if r.Complete {
			continue
		}
		for id, entry := range entries {
			if _, listed := r.Offers[id]; !listed {
				entry.restore(r, r.Withdrawn, amounts)
			}
		}
	}
	return Offers{Entries: EntriesOf(entries), Default: anyone}, others
}

// restore adds what a record says that the policy offered, until the time at which that was withdrawn, 0 for
// never. The larger of two amounts counts.
func (e *Entry) restore(r PreviousOffers, withdrawn int64, amounts capacity.Amounts) {
	if len(amounts) == 0 {
		return
	}
	i, found := slices.BinarySearchFunc(e.Offers, r.Class, func(o *Offer, class string) int {
		return cmp.Compare(o.Class, class)
	})
	if found {
		both := maps.Clone(amounts)
		for _, a := range e.Offers[i].Amounts {
			if value, listed := both[a.Resource]; !listed || value < a.Value {
				both[a.Resource] = a.Value
			}
		}
		amounts = both
	} else {
		e.Offers = slices.Insert(e.Offers, i, nil)
	}
	o := &Offer{
		Class: r.Class, Policy: restoredPolicy, Amounts: SortedAmounts(amounts), Override: -1,
		LastPolicy: r.Policy, Reclaim: r.Reclaim,
	}
	if withdrawn != 0 {
		o.Policy, o.Moved = "", withdrawn
	}
	e.Offers[i] = o
}

// recordedPolicies returns the policies whose records describe every consumer.
func recordedPolicies(records []PreviousOffers) map[string]bool {
	policies := map[string]bool{}
	for _, r := range records {
		policies[r.Policy] = r.Complete || len(r.Names) > 0
	}
	return policies
}
