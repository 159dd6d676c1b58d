package check

import (
	"context"
	"time"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/overview"
)

const (
	checkBooks   Check = "books"
	checkDevices Check = "devices"
)

// booksAttempts is how often the operator is asked until the replica answers that leads, and keeps the books. The
// Service chooses one for each request: of two, the one that does not lead answers all eight once in 256 times.
const booksAttempts = 8

// books asks for the overview of the replica that leads, or of another one if that does not answer.
func (c *cluster) books(ctx context.Context) known[*rest.Overview] {
	var last known[*rest.Overview]
	for range booksAttempts {
		next := knownOf(c.overview(ctx))
		if next.err != nil && last.value != nil {
			return last
		}
		last = next
		if last.err != nil || len(last.value.Unknown) == 0 {
			break
		}
	}
	return last
}

// findBooks reports whether the accounting database has everything, and the devices that are not counted. It has no
// finding if the operator keeps no books and counts all devices.
func findBooks(overviews known[*rest.Overview]) []Finding {
	if overviews.err != nil {
		return []Finding{overviews.skip(checkBooks, "ask the operator for what needs somebody")}
	}
	all := overviews.value
	return append(findDevices(all), findBooksIn(all)...)
}

// findDevices reports the resources with devices that the operator does not count.
func findDevices(all *rest.Overview) (found []Finding) {
	for _, f := range all.Findings {
		if f.Kind == overview.Devices {
			found = append(found, checkDevices.warning("%s", f.Message).do(f.Do))
		}
	}
	return found
}

func findBooksIn(all *rest.Overview) []Finding {
	if len(all.Unknown) > 0 {
		return []Finding{checkBooks.skipped("Only the replica that leads knows the state of the books, and others answered.").
			do("Try again, or look at the metric proffer_metasync_lag_seconds.")}
	}
	for _, f := range all.Findings {
		if f.Kind == overview.Books {
			return []Finding{checkBooks.warning("%s", f.Message).do(f.Do)}
		}
	}
	if all.BooksComplete == nil {
		return nil
	}
	return []Finding{checkBooks.ok("The accounting database was complete %v ago.",
		all.Now.Sub(*all.BooksComplete).Round(time.Second))}
}
