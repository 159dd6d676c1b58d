package grant

import (
	"maps"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// maxAllocations bounds the rounds of Settle: what one slice gives up, others may be granted in the
// next round.
const maxAllocations = 16

// Settle decides on all slices like Allocate, as if each decision were carried out at once and the
// next one followed, until nothing changes. It sets what the slices are granted meanwhile: the caller
// must own them.
func Settle(terms *offer.AllocationInput, all []Slice) []Answer {
	answers := Allocate(terms, all)
	for range maxAllocations {
		changed := false
		for i := range all {
			changed = all[i].carryOut(&answers[i]) || changed
		}
		if !changed {
			break
		}
		answers = Allocate(terms, all)
	}
	return answers
}

// Remaining returns what the slice has without what is about to fall.
func (s *Slice) Remaining() capacity.Amounts {
	if len(s.Falling) == 0 {
		return s.Granted
	}
	if rest := s.Granted.Less(s.Falling); rest != nil {
		return rest
	}
	return capacity.Amounts{} // It is not nil: the slice is accepted.
}

// carryOut grants the slice what was decided, takes what falls then, and reports whether that changed anything.
func (s *Slice) carryOut(decided *Answer) (changed bool) {
	if len(s.Falling) > 0 {
		s.Granted, s.Falling, changed = s.Remaining(), nil, true
	}
	if !s.Pinned && decided.Verdict == Accept {
		moved, by := s.GrantedIn != "" && s.GrantedIn != s.Class, s.GrantedBy
		if decided.Policy != nil {
			by = decided.Granter
		}
		if has := decided.Amounts(); moved || !offer.SameGranters(s.GrantedBy, by) || !maps.Equal(has, s.Granted) {
			s.Granted, s.GrantedIn, s.GrantedBy, changed = has, s.Class, by, true
		}
	}
	// Once an answer is written, the record falls to it.
	changed = changed || s.Recorded.Less(s.Granted) != nil
	s.Recorded = nil
	return changed
}
