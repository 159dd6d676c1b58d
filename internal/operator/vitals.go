package operator

import (
	"time"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/watchage"
	"proffer.dev/proffer/internal/metasync"
	"proffer.dev/proffer/internal/overview"
	"proffer.dev/proffer/internal/trends"
)

// vitals holds the parts of the process of which the overview shows the state. It is complete before the process
// serves.
type vitals struct {
	namespace string
	tenure    *kube.Tenure
	// watches is nil for a process whose watches nobody observes, books for one that keeps none.
	watches *watchage.Monitor
	books   *metasync.Books
	history *metasync.History
}

// month returns what the books have of the last month, nil if that is not known.
func (v *vitals) month() *trends.Month {
	if v.history == nil {
		return nil
	}
	return v.history.Month()
}

// process returns the present state.
func (v *vitals) process() overview.Process {
	p := overview.Process{Now: time.Now(), Namespace: v.namespace, LeaderSeen: v.tenure.LeaderSeen()}
	if v.watches != nil {
		if resource, age := v.watches.Oldest(); resource != "" {
			p.Watched, p.Heard = resource, p.Now.Add(-age)
		}
	}
	if v.books != nil {
		p.KeepsBooks, p.BooksComplete = true, v.books.Completed()
	}
	return p
}
