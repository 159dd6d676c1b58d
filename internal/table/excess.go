package table

import (
	"cmp"
	"iter"
	"slices"

	"proffer.dev/proffer/internal/capacity"
)

// Excess is the amount that the pods of a ResourceSlice request beyond its grant.
type Excess struct {
	Consumer, Policy, Class string
	// Slice is the name of the slice, and User the name under which its pods are sent.
	Slice, User string
	Amounts     capacity.Amounts
	// OfGrant is set if one of the resources was granted, or is pods. This cluster may add others to pods.
	OfGrant bool
}

// Excesses returns the slices whose pods request more than was granted, sorted by consumer and name.
// Pods name the user of their slice, so that all grants of one user, in earlier classes too, count as
// one. Pods without a grant are not in it, nor those of a slice that another controller has accepted: they may
// request what that granted, beside what is left of the grant here.
func (s *Snapshot) Excesses() []Excess {
	if s.Slices == nil {
		return nil
	}
	type user struct{ consumer, creator string }
	type holder struct {
		Excess
		gone, ofOthers bool
	}
	holders := map[user]*holder{}
	for d := range s.Slices.All {
		use := s.Input.View.Used.Of(d.Consumer)
		if use == nil || d.Creator == nil {
			continue
		}
		of := user{d.Consumer, d.Creator()}
		if use.By(of.creator) == nil {
			continue
		}
		h := holders[of]
		switch {
		case h == nil: // What is left of earlier slices follows the slice itself.
			h = &holder{gone: d.Gone, ofOthers: d.OfOthers}
			holders[of] = h
		case h.gone: // Deleted slices of one name have no order.
			h.ofOthers = h.ofOthers || d.OfOthers
		}
		after := d.After()
		if len(after) > 0 && h.Amounts == nil {
			h.Excess = Excess{d.Consumer, d.Policy(), d.Class, d.Name, d.User, capacity.Amounts{}, false}
		}
		for name, amount := range after {
			h.Amounts[name] = capacity.Sum(h.Amounts[name], amount)
		}
	}
	var all []Excess
	for of, h := range holders {
		if h.ofOthers || h.Amounts == nil {
			continue
		}
		e := h.Excess
		beyond := Beyond(e.Amounts, s.usedBy(of.consumer, of.creator))
		for name := range beyond {
			e.OfGrant = e.OfGrant || e.Amounts[name] > 0 || name == capacity.Pods
		}
		if e.Amounts = beyond; len(beyond) > 0 {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Excess) int {
		return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Slice, b.Slice))
	})
	return all
}

// usedBy yields what the pods of a creator request.
func (s *Snapshot) usedBy(consumer, creator string) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		used := s.Input.View.Used.Of(consumer).By(creator)
		for i, name := range s.Input.View.Columns {
			if !yield(name, used.At(i)) {
				return
			}
		}
	}
}

// podsWithoutGrant is the number of pods that a slice may have whose grant has no pods. Liqo itself counts none.
const podsWithoutGrant = 1000

// Permitted returns how much of a resource pods may use under a grant.
func Permitted(granted capacity.Amounts, name string) int64 {
	amount, limited := granted[name]
	if !limited && name == capacity.Pods {
		return podsWithoutGrant
	}
	return amount
}

// Beyond returns what is used beyond a grant.
func Beyond(granted capacity.Amounts, used iter.Seq2[string, int64]) capacity.Amounts {
	excess := capacity.Amounts{}
	for name, amount := range used {
		if of := Permitted(granted, name); amount > of {
			excess[name] = amount - of
		}
	}
	return excess
}
