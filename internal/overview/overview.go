package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/table"
)

const (
	// MaxRows bounds the findings of one kind and status that are listed one by one.
	MaxRows = 10
	// MaxOfOne bounds those of them that are about one consumer, so that no consumer hides the others.
	MaxOfOne = 3
)

// The kinds of findings. leader, news, policies, grants, Books and Devices are checks of kubectl proffer check too.
const (
	// leader: no replica leads.
	leader = "leader"
	// news: a watch of the API server is silent.
	news = "news"
	// policies: a ResourcePolicy is not Ready, stopped or paused without an end, or has a slip, or there is none.
	policies = "policies"
	// unwritable: no answer can be written to a ResourceSlice.
	unwritable = "unwritable"
	// pools: nothing is left of a resource, or nothing will be.
	pools = "pools"
	// denied, seats, waiting, capped: a ResourceSlice is granted nothing, waits for a node in place of the one that it
	// was granted from, has no answer, or is granted less than it asks for.
	denied  = "denied"
	seats   = "seats"
	waiting = "waiting"
	capped  = "capped"
	// grants: pods request more than their ResourceSlice was granted.
	grants = "grants"
	// Books: the accounting database lacks the latest changes.
	Books = "books"
	// Devices: a resource has devices that are not counted.
	Devices = "devices"
)

// Kinds lists all kinds, in the order of the findings of one status.
var Kinds = []string{leader, news, policies, unwritable, pools, denied, seats, waiting, capped, grants, Books, Devices}

// statuses are in the order of the findings.
var statuses = []string{rest.StatusWrong, rest.StatusWarning}

// Evaluation lists what one evaluation shows. It never changes.
type Evaluation struct {
	of rest.Evaluated
	list
}

// Of lists what a snapshot shows. The policies are all of the snapshot, with their conditions.
func Of(s *table.Snapshot, all []rest.Policy) *Evaluation {
	e := &Evaluation{of: rest.Evaluated{Revision: s.Revision, Time: s.Time}}
	endless := map[string]bool{}
	for i := range s.Policies {
		p := s.Policies[i].Parsed
		endless[s.Policies[i].Name] = p != nil && p.PausedUntil == 0
	}
	e.addPolicies(all, endless)
	e.addPools(all)
	e.addSlices(s)
	e.addExcesses(s.Excesses())
	return e
}

// With returns the overview that a process answers with.
func (e *Evaluation) With(p Process) rest.Overview {
	all := list{findings: slices.Clone(e.findings), wrong: e.wrong, warnings: e.warnings}
	all.addProcess(p)
	for i := range all.findings {
		all.findings[i].Do = in(p.Namespace, all.findings[i].Do)
	}
	slices.SortStableFunc(all.findings, func(a, b rest.Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(statuses, a.Status), slices.Index(statuses, b.Status)),
			cmp.Compare(slices.Index(Kinds, a.Kind), slices.Index(Kinds, b.Kind)),
		)
	})
	o := rest.Overview{
		Evaluated: e.of, Now: p.Now, Status: rest.StatusOK, Wrong: all.wrong, Warnings: all.warnings,
		Findings: all.findings,
	}
	switch {
	case !p.BooksComplete.IsZero():
		o.BooksComplete = &p.BooksComplete
	case p.KeepsBooks:
		o.Unknown = []string{"whether the books are behind: only the replica that leads knows"}
	}
	if len(o.Findings) > 0 {
		o.Status = o.Findings[0].Status
	} else {
		o.Findings = []rest.Finding{} // In JSON it is a list.
	}
	return o
}

// defaultNamespace is the namespace that kubectl proffer asks without --operator-namespace.
const defaultNamespace = "proffer-system"

// in returns a command for an operator in a namespace, empty for one that is not known.
func in(namespace, command string) string {
	if namespace == "" || namespace == defaultNamespace || !strings.HasPrefix(command, "kubectl proffer ") {
		return command
	}
	return command + " --operator-namespace=" + namespace
}

// list holds findings, and how many things they stand for.
type list struct {
	findings        []rest.Finding
	wrong, warnings int
}

// listed returns the first things that are listed one by one: MaxRows, and MaxOfOne of an owner.
func listed[T any](all []T, owner func(T) string) (first []T) {
	of := map[string]int{}
	for _, thing := range all {
		if of[owner(thing)]++; len(first) < MaxRows && of[owner(thing)] <= MaxOfOne {
			first = append(first, thing)
		}
	}
	return first
}

// add appends the first MaxRows findings, which are of one kind and status. If the count is higher, one more
// finding counts the others, and names the page and the command that list them.
func (l *list) add(count int, first []rest.Finding, page, do string) {
	if count == 0 {
		return
	}
	first = first[:min(len(first), MaxRows)]
	l.findings = append(l.findings, first...)
	if more := count - len(first); more > 0 {
		l.findings = append(l.findings, rest.Finding{
			Kind: first[0].Kind, Status: first[0].Status, Page: page, Do: do,
			Message: fmt.Sprintf("And %d more.", more),
		})
	}
	if first[0].Status == rest.StatusWrong {
		l.wrong += count
	} else {
		l.warnings += count
	}
}

// quietAfter is the time after an evaluation from which on it is said that nothing has changed.
const quietAfter = time.Minute

// Quiet says for how long nothing has changed since the evaluation of an overview, as in "20 minutes". It
// is empty within the first minute, and while a watch is silent: then nobody knows.
func Quiet(o *rest.Overview) string {
	isNews := func(f rest.Finding) bool { return f.Kind == news }
	age := o.Now.Sub(o.Time)
	if age < quietAfter || slices.ContainsFunc(o.Findings, isNews) {
		return ""
	}
	return span(age)
}

// span writes a time of a minute or more for people, as in "20 minutes".
func span(of time.Duration) string {
	for _, unit := range []struct {
		name string
		is   time.Duration
		from int
	}{{"day", 24 * time.Hour, 2}, {"hour", time.Hour, 2}, {"minute", time.Minute, 1}} {
		switch n := int(of / unit.is); {
		case n < unit.from:
		case n == 1:
			return "1 " + unit.name
		default:
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return ""
}
