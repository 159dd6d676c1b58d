package overview

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/internal/visible"
)

const (
	listSlices = "kubectl get resourceslices.authentication.liqo.io -A"
	listWaits  = "kubectl proffer top consumers"
)

// addSlices adds the slices that are denied, have lost their seat, wait or are capped.
func (l *list) addSlices(s *table.Snapshot) {
	if s.Slices == nil {
		return
	}
	byKind, at := map[string][]agedSlice{}, 0
	for d := range s.Slices.All {
		if kind := kindOf(&d); kind != "" {
			byKind[kind] = append(byKind[kind], agedSlice{at, d.Namespace, sinceWhen(&d, kind, s.Time)})
		}
		at++
	}
	shown := map[int]*table.DecidedSlice{}
	first := map[string][]agedSlice{}
	for kind, all := range byKind {
		slices.SortStableFunc(all, byAge)
		first[kind] = listed(all, func(a agedSlice) string { return a.namespace })
		for _, a := range first[kind] {
			shown[a.at] = nil
		}
	}
	at = 0
	for d := range s.Slices.All {
		if _, isShown := shown[at]; isShown {
			shown[at] = &d
		}
		at++
	}
	for _, kind := range Kinds {
		var findings []rest.Finding
		for _, a := range first[kind] {
			findings = append(findings, ofSlice(kind, shown[a.at], a.since))
		}
		list := listSlices
		if kind == capped {
			list = listWaits
		}
		l.add(len(byKind[kind]), findings, rest.ConsumersPage, list)
	}
}

// kindOf returns the kind of finding about a slice, empty for none. A slice of another controller needs
// nobody, nor a part of a grant that cannot be taken back yet.
func kindOf(d *table.DecidedSlice) string {
	switch {
	case d.Pinned, d.OfOthers:
		return ""
	case d.Unwritable:
		return unwritable
	case d.Awaits:
		return waiting
	case d.Answer == nil:
		return ""
	case d.Answer.Verdict == grant.Deny:
		return denied
	case d.SeatLost():
		return seats
	case !d.Answer.Whole():
		return capped
	}
	return ""
}

// sinceWhen returns since when a slice is as it is, zero if its status does not say so yet. A consumer can
// write times into the status: one before the creation of the slice, or after now, is not believed.
func sinceWhen(d *table.DecidedSlice, kind string, now time.Time) time.Time {
	created := time.Unix(d.Created, 0).UTC()
	switch {
	case d.Created == 0, kind == unwritable, kind == seats, kind != waiting && d.Stands == nil:
		return time.Time{}
	case kind == waiting && created.After(now):
		return now // The clock of the API server is ahead.
	case kind == waiting:
		return created
	}
	accepted, since := d.Stands()
	if accepted != d.Accepted() || since.Before(created) || since.After(now) {
		return time.Time{}
	}
	return since
}

// agedSlice is what the order of slices needs of one, since there may be many: its place in the snapshot, its
// namespace, which is its consumer's, and since when it is as it is, zero for an unknown time.
type agedSlice struct {
	at        int
	namespace string
	since     time.Time
}

// byAge compares two slices, the one that is as it is for longer first. An unknown time comes last.
func byAge(a, b agedSlice) int {
	switch {
	case a.since.IsZero() == b.since.IsZero():
		return a.since.Compare(b.since)
	case a.since.IsZero():
		return 1
	}
	return -1
}

// ofSlice returns the finding about one slice.
func ofSlice(kind string, d *table.DecidedSlice, since time.Time) rest.Finding {
	resource := liqo.ResourceSlices.GroupResource().String()
	f := rest.Finding{
		Kind: kind, Status: rest.StatusWarning, Page: pageOf(d.Consumer), Seat: d.Seat(),
		Do: explain(d.Consumer, fmt.Sprintf("kubectl -n %s describe %s %s", d.Namespace, resource, d.Name)),
		Message: fmt.Sprintf("ResourceSlice %s/%s, class %s: %s",
			d.Namespace, d.Name, visible.Class(d.Class), sentence(d.Because())),
	}
	if !since.IsZero() {
		f.Since = &since // A copy, so that the slice does not outlive its evaluation.
	}
	return f
}

// word matches cluster IDs that a shell, and kubectl proffer explain, take as they are. A consumer chooses its ID.
var word = regexp.MustCompile(`^[A-Za-z0-9][-._A-Za-z0-9]*$`)

// explain returns the command that explains what a consumer has, or another one for an ID that is not safe
// to type.
func explain(consumer, otherwise string) string {
	if !word.MatchString(consumer) {
		return otherwise
	}
	return "kubectl proffer explain " + consumer
}

// pageOf returns the page of a consumer, or that of all of them.
func pageOf(consumer string) string {
	if consumer == "" {
		return rest.ConsumersPage
	}
	return rest.ConsumerPage(consumer)
}

// addExcesses adds the slices whose pods request more than was granted.
func (l *list) addExcesses(all []table.Excess) {
	var first []rest.Finding
	for _, e := range listed(all, func(e table.Excess) string { return e.Consumer }) {
		var amounts []string
		for _, name := range slices.Sorted(maps.Keys(e.Amounts)) {
			amounts = append(amounts, capacity.HumanFormat(name, e.Amounts[name])(e.Amounts[name])+" "+name)
		}
		first = append(first, rest.Finding{
			Kind: grants, Status: rest.StatusWarning, Page: pageOf(e.Consumer), Do: explain(e.Consumer, listWaits),
			Message: fmt.Sprintf("Pods of ResourceSlice %s, class %s, request more than it was granted: %s more.",
				e.Slice, visible.Class(e.Class), kube.First(amounts)),
		})
	}
	l.add(len(all), first, rest.ConsumersPage, listWaits)
}
