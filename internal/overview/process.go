package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/watchage"
	"proffer.dev/proffer/internal/trends"
)

const (
	// leaderlessAfter is longer than the next leader waits for the Lease.
	leaderlessAfter = time.Minute
	// booksBehindAfter is the time of the alert ProfferBooksBehind.
	booksBehindAfter = 10 * time.Minute
)

// Process is the state of the process that answers, at one moment. A zero field is not known, or not in use.
type Process struct {
	Now time.Time
	// Namespace is the namespace of the operator, empty outside of a Pod.
	Namespace string
	// LeaderSeen is the last time at which this replica saw one that leads.
	LeaderSeen time.Time
	// Watched is the resource whose watch has been silent for longest, and Heard the last time at which the
	// watch showed a sign of life.
	Watched string
	Heard   time.Time
	// KeepsBooks is set if the leader keeps books. BooksComplete is the time at which they were last
	// complete, for the leader only.
	KeepsBooks    bool
	BooksComplete time.Time
	// Exhaustions lists what will be exhausted, the next first.
	Exhaustions []trends.Exhaustion
	// Uncounted are the devices that are not counted.
	Uncounted []capacity.Uncounted
}

// passed reports whether more than a time has passed since a moment that is known.
func (p *Process) passed(since time.Time, most time.Duration) bool {
	return !since.IsZero() && p.Now.Sub(since) > most
}

// addProcess adds what is wrong with the process.
func (l *list) addProcess(p Process) {
	one := func(kind, status string, since time.Time, do, message string) {
		since = since.Round(time.Second)
		l.add(1, []rest.Finding{{Kind: kind, Status: status, Since: &since, Do: do, Message: message}}, "", "")
	}
	if p.passed(p.LeaderSeen, leaderlessAfter) {
		one(leader, rest.StatusWrong, p.LeaderSeen, "kubectl proffer check",
			"No replica leads, as far as this one sees: statuses, answers and Grants are not written.")
	}
	if p.passed(p.Heard, watchage.SilenceLimit) {
		status := rest.StatusWarning
		if p.passed(p.Heard, watchage.StaleAfter) {
			status = rest.StatusWrong // The replica is not ready.
		}
		one(news, status, p.Heard, "kubectl proffer check",
			fmt.Sprintf("The watch of %s is silent: what this replica offers may be outdated.", p.Watched))
	}
	if p.passed(p.BooksComplete, booksBehindAfter) {
		one(Books, rest.StatusWarning, p.BooksComplete,
			"kubectl -n "+cmp.Or(p.Namespace, defaultNamespace)+" logs -l app.kubernetes.io/name=proffer --tail=-1",
			"The books are behind: the accounting database lacks what has happened since.")
	}
	l.addExhaustions(p.Exhaustions)
	l.addUncounted(p.Uncounted)
}

// addUncounted adds the resources with devices that are not counted, one finding each. A class that was not given the
// name of a resource may be for the cluster's own use, so that it is no finding.
func (l *list) addUncounted(all []capacity.Uncounted) {
	all = slices.DeleteFunc(slices.Clone(all), func(u capacity.Uncounted) bool {
		return strings.HasPrefix(u.Resource, resourcev1.ResourceDeviceClassPrefix)
	})
	var found []rest.Finding
	for len(all) > 0 {
		first, nodes := all[0], 0
		for nodes < len(all) && all[nodes].Resource == first.Resource {
			nodes++
		}
		on := ""
		if first.Node != "" {
			on = " on node " + first.Node
		}
		message := fmt.Sprintf("Not all of %s is offered%s: %s.", first.Resource, on, first.Why)
		if nodes > 1 {
			message += fmt.Sprintf(" And on %d more.", nodes-1)
		}
		found = append(found, rest.Finding{
			Kind: Devices, Status: rest.StatusWarning, Message: message, Do: "kubectl get resourceslices,deviceclasses",
		})
		all = all[nodes:]
	}
	l.add(len(found), found, "", "kubectl get resourceslices,deviceclasses")
}

// addExhaustions adds the pools that will be exhausted.
func (l *list) addExhaustions(all []trends.Exhaustion) {
	found := make([]rest.Finding, 0, min(len(all), MaxRows))
	for _, e := range all[:cap(found)] {
		found = append(found, rest.Finding{
			Kind: pools, Status: rest.StatusWarning, Page: "#pool-" + e.Policy, Do: showPools,
			Message: fmt.Sprintf("Nothing will be left of %s in the pool of policy %s in %s, "+
				"if as much is given out as in the hours before.", e.Resource, e.Policy, span(roundly(e.In))),
		})
	}
	l.add(len(all), found, "", showPools)
}

// roundly rounds a time that is about right, so that a page is not another one every minute.
func roundly(in time.Duration) time.Duration { return max(10*time.Minute, in.Round(10*time.Minute)) }
