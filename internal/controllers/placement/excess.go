package placement

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"proffer.dev/proffer/internal/table"
)

const (
	// beyond precedes a user whose pods request more than was granted, and beyondAll the ID of a consumer with
	// several of them. The admission policy refuses new pods of these. No user begins with either.
	beyond, beyondAll = "!", "!_"
	// holdPeriod is the time for which a mark stays at least after the last excess. Marks are removed only at
	// multiples of it, all at once. They are set at once.
	holdPeriod = 10 * time.Second
	// maxUsers bounds the marked users of one consumer. With more, the consumer is marked in their place, so
	// that it can have no more than maxUsers+1 writes in a holdPeriod.
	maxUsers = 4
	// maxMarks bounds the marks, some 250 KiB.
	maxMarks = 1000
)

// sender is a user under whose name pods of the consumer are sent.
type sender struct{ consumer, user string }

// marks holds the senders whose pods request, or did until recently, more than was granted, with the time at
// which their mark goes.
type marks map[sender]time.Time

// refresh marks the senders in excess of what they were granted something of, and forgets the ones whose
// time has come. It returns the time until the next one goes, 0 if none is left.
func (m marks) refresh(excesses []table.Excess, now time.Time) (next time.Duration) {
	for _, e := range excesses {
		if e.User != "" && e.OfGrant {
			m[sender{e.Consumer, e.User}] = now.Truncate(holdPeriod).Add(2 * holdPeriod)
		}
	}
	for s, until := range m {
		if left := until.Sub(now); left <= 0 {
			delete(m, s)
		} else if next == 0 || left < next {
			next = left
		}
	}
	return next
}

// addTo adds the entries of the marks to a list.
func (m marks) addTo(entries map[string]string) {
	users := map[string]int{}
	for s := range m {
		users[s.consumer]++
	}
	added := map[string]bool{}
	for _, s := range slices.SortedFunc(maps.Keys(m), func(a, b sender) int {
		return cmp.Or(cmp.Compare(a.consumer, b.consumer), cmp.Compare(a.user, b.user))
	}) {
		mark := beyond + s.user
		if users[s.consumer] > maxUsers {
			mark = beyondAll + s.consumer
		}
		if added[mark] = true; len(added) > maxMarks {
			return
		}
		entries[mark] = ""
	}
}

// InExcess reports whether a list has a mark because of which pods of the user are refused.
func InExcess(listed map[string]string, user, consumer string) bool {
	_, marked := listed[beyond+user]
	_, all := listed[beyondAll+consumer]
	return marked || all
}
