package page

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/visible"
)

// className names a class as kubectl proffer does.
func className(name string) string {
	if name == "" {
		return "<unnamed>"
	}
	return visible.Class(name)
}

// none stands for what there is not.
const none = "–"

// amountOf returns the amount of a resource.
func amountOf(amounts rest.Amounts, resource string) string {
	q, ok := amounts[resource]
	if !ok {
		return none
	}
	return q.String()
}

// resourcesOf returns the names of the resources, sorted.
func resourcesOf(amounts rest.Amounts) []string { return slices.Sorted(maps.Keys(amounts)) }

// asked returns what a ResourceSlice asks for as its consumer wrote it, in the form of listed.
func asked(s rest.Slice) string {
	if len(s.Written) == 0 {
		return listed(s.Asked)
	}
	return strings.Join(visible.Written(s.Written), ", ")
}

// listed returns amounts as in "cpu=2, memory=4Gi".
func listed(amounts rest.Amounts) string {
	if len(amounts) == 0 {
		return none
	}
	var all []string
	for _, name := range resourcesOf(amounts) {
		all = append(all, name+"="+amountOf(amounts, name))
	}
	return strings.Join(all, ", ")
}

// reasonOf returns the explanation of a resource, without its name and amount.
func reasonOf(because []string, resource string) string {
	return cmp.Or(rest.Reason(because, resource), none)
}

// count writes a number with its noun, as in "2 nodes".
func count(n any, noun string) string {
	if p, ok := n.(*int); ok {
		n = *p
	}
	text := fmt.Sprintf("%d %s", n, noun)
	if !strings.HasPrefix(text, "1 ") {
		text += "s"
	}
	return text
}

// segment writes a cluster ID as one element of a path.
func segment(id string) string { return url.PathEscape(id) }

// moment writes a time for people, machine for the attribute of <time>.
func moment(t time.Time) string  { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
func machine(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// leaveOut reports whether some policy leaves nodes out.
func leaveOut(policies []rest.Candidate) bool {
	return slices.ContainsFunc(policies, func(p rest.Candidate) bool { return p.LeftOut != nil })
}
