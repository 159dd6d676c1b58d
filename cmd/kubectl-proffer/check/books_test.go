package check

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proffer.dev/proffer/api/rest"
)

func TestTheStateOfTheBooksIsThatOfTheLeader(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	complete := now.Add(-5400 * time.Millisecond)
	follower := &rest.Overview{Now: now, Unknown: []string{"whether the books are behind"}}
	other := rest.Finding{Kind: "pools", Message: "Nothing is left."}
	skipped := Finding{
		Check: checkBooks, Status: Skipped, Message: "Only the replica that leads knows the state of the books, and others answered.",
		Do: "Try again, or look at the metric proffer_metasync_lag_seconds.",
	}
	for name, tc := range map[string]struct {
		answers []*rest.Overview
		want    []Finding
	}{
		"the operator does not answer": {nil, []Finding{{
			Check: checkBooks, Status: Skipped, Message: "Cannot ask the operator for what needs somebody: no replica of the operator is ready",
		}}},
		"only another replica answers": {[]*rest.Overview{follower}, []Finding{skipped}},
		"no books are kept":            {[]*rest.Overview{{Now: now, Findings: []rest.Finding{other}}}, nil},
		"they are complete": {
			[]*rest.Overview{follower, follower, {Now: now, BooksComplete: &complete, Findings: []rest.Finding{other}}},
			[]Finding{{Check: checkBooks, Status: OK, Message: "The accounting database was complete 5s ago."}},
		},
		"they are behind": {
			[]*rest.Overview{{Now: now, BooksComplete: &complete, Findings: []rest.Finding{other, {Kind: "books", Message: "100% behind.", Do: "look"}}}},
			[]Finding{{Check: checkBooks, Status: Warning, Message: "100% behind.", Do: "look"}},
		},
		"devices are not counted": {
			[]*rest.Overview{{Now: now, Findings: []rest.Finding{other, {Kind: "devices", Message: "Not all is offered.", Do: "look"}}}},
			[]Finding{{Check: checkDevices, Status: Warning, Message: "Not all is offered.", Do: "look"}},
		},
		"the leader never answers": {
			[]*rest.Overview{follower, follower, follower, follower, follower, follower, follower, follower, {Now: now, BooksComplete: &complete}},
			[]Finding{skipped},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{overview: func(context.Context) (*rest.Overview, error) {
				if len(tc.answers) == 0 {
					return nil, errors.New("no replica of the operator is ready")
				}
				next := tc.answers[0]
				tc.answers = tc.answers[1:]
				return next, nil
			}}
			if diff := cmp.Diff(tc.want, findBooks(c.books(t.Context()))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
