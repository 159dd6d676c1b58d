package rest

import (
	"net/url"
	"time"
)

// OverviewPath is the path of the overview. Whoever may read OffersPath may read it.
const OverviewPath = "/overview"

// ConsumersPage is the page of the dashboard that lists the consumers, relative to /ui/.
const ConsumersPage = "consumers"

// ConsumerPage returns the page of the dashboard about a consumer, relative to /ui/.
func ConsumerPage(clusterID string) string { return ConsumersPage + "/" + url.PathEscape(clusterID) }

// The statuses of an Overview and of its findings, in the words of kubectl proffer check.
const (
	// StatusOK: nothing needs anybody.
	StatusOK = "ok"
	// StatusWarning: it works, but perhaps not as the admin expects.
	StatusWarning = "warning"
	// StatusWrong: something does not work.
	StatusWrong = "wrong"
)

// Overview is the answer to GET /overview: what needs somebody.
type Overview struct {
	Evaluated
	// Now is the time of the answer, by the clock of the operator.
	Now time.Time `json:"now"`
	// Status is that of the worst finding, StatusOK without one.
	Status string `json:"status"`
	// Wrong and Warnings count what is of these statuses, also what Findings does not list one by one.
	Wrong    int `json:"wrong"`
	Warnings int `json:"warnings"`
	// Findings lists the worst first. Of one kind and status there are at most ten, three of them of one consumer,
	// and one that counts the others.
	Findings []Finding `json:"findings"`
	// Unknown says what the replica that answers does not know, absent for nothing.
	Unknown []string `json:"unknown,omitempty"`
	// BooksComplete is the time at which the accounting database last had everything, absent if the operator keeps
	// no books, or the replica that answers does not lead.
	BooksComplete *time.Time `json:"booksComplete,omitempty"`
}

// Finding is something that needs somebody.
type Finding struct {
	// Kind is what the finding is about, in one word: see docs/reference/commands/status.md.
	Kind string `json:"kind"`
	// Status is StatusWarning or StatusWrong.
	Status string `json:"status"`
	// Message says what it is.
	Message string `json:"message"`
	// Since is the time since when it is so, absent if that is not known. For a ResourceSlice that waits, it is the
	// time of its creation; for one that is capped, the time since when it has been accepted.
	Since *time.Time `json:"since,omitempty"`
	// Seat is the node from which a ResourceSlice is granted, as in Slice. It is absent for anything else.
	Seat string `json:"seat,omitempty"`
	// Page is the page of the dashboard about it, relative to /ui/, absent for none.
	Page string `json:"page,omitempty"`
	// Do is the command to type.
	Do string `json:"do"`
}
