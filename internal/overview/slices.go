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

// sliceKinds are the kinds of findings about slices, with the command that lists more of them.
var sliceKinds = []struct{ kind, status, list string }{
	{unwritable, rest.StatusWarning, listSlices},
	{denied, rest.StatusWarning, listSlices},
	{waiting, rest.StatusWarning, listSlices},
	{capped, rest.StatusWarning, listWaits},
}

// addSlices adds the slices that are denied, wait or are capped.
func (l *list) addSlices(s *table.Snapshot) {
	if s.Slices == nil {
		return
	}
	byKind := map[string]*oldest{}
	for d := range s.Slices.All {
		kind := kindOf(&d)
		if kind == "" {
			continue
		}
		if byKind[kind] == nil {
			byKind[kind] = &oldest{}
		}
		byKind[kind].add(d, sinceWhen(&d, kind, s.Time))
	}
	for _, k := range sliceKinds {
		o := byKind[k.kind]
		if o == nil {
			continue
		}
		var first []rest.Finding
		for i := range o.first {
			first = append(first, ofSlice(k.kind, k.status, &o.first[i]))
		}
		l.add(o.count, first, rest.ConsumersPage, k.list)
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
	case d.Created == 0, kind == unwritable, kind != waiting && d.Stands == nil:
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

// aged is a slice, and since when it is as it is, zero for an unknown time.
type aged struct {
	slice table.DecidedSlice
	since time.Time
}

// oldest counts slices, and holds the MaxRows that are as they are for longest, MaxOfOne of a consumer. Slices with
// an unknown time come last.
type oldest struct {
	first []aged
	count int
}

func (o *oldest) add(d table.DecidedSlice, since time.Time) {
	o.count++
	at := slices.IndexFunc(o.first, func(a aged) bool { return earlier(since, a.since) })
	if at < 0 {
		at = len(o.first)
	}
	if at < MaxRows {
		o.first = slices.Insert(o.first, at, aged{d, since})
		o.limit(d.Namespace)
		o.first = o.first[:min(len(o.first), MaxRows)]
	}
}

// limit leaves MaxOfOne slices of a namespace, which is a consumer's.
func (o *oldest) limit(namespace string) {
	own, last := 0, 0
	for i := range o.first {
		if o.first[i].slice.Namespace == namespace {
			own, last = own+1, i
		}
	}
	if own > MaxOfOne {
		o.first = slices.Delete(o.first, last, last+1)
	}
}

func earlier(a, b time.Time) bool {
	return !a.IsZero() && (b.IsZero() || a.Before(b))
}

// ofSlice returns the finding about one slice.
func ofSlice(kind, status string, a *aged) rest.Finding {
	d, resource := &a.slice, liqo.ResourceSlices.GroupResource().String()
	f := rest.Finding{
		Kind: kind, Status: status, Page: pageOf(d.Consumer),
		Do: explain(d.Consumer, fmt.Sprintf("kubectl -n %s describe %s %s", d.Namespace, resource, d.Name)),
		Message: fmt.Sprintf("ResourceSlice %s/%s, class %s: %s",
			d.Namespace, d.Name, visible.Class(d.Class), sentence(d.Because())),
	}
	if since := a.since; !since.IsZero() {
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
	listed := map[string]int{}
	for i := range all {
		e := &all[i]
		if listed[e.Consumer]++; len(first) == MaxRows || listed[e.Consumer] > MaxOfOne {
			continue
		}
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
