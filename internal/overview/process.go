package overview

import (
	"cmp"
	"fmt"
	"time"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/kube/watchage"
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
		one(books, rest.StatusWarning, p.BooksComplete,
			"kubectl -n "+cmp.Or(p.Namespace, defaultNamespace)+" logs -l app.kubernetes.io/name=proffer --tail=-1",
			"The books are behind: the accounting database lacks what has happened since.")
	}
}

// unknown lists what the process does not know.
func (p *Process) unknown() []string {
	if p.KeepsBooks && p.BooksComplete.IsZero() {
		return []string{"whether the books are behind: only the replica that leads knows"}
	}
	return nil
}
