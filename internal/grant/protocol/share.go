package protocol

import (
	"cmp"
	"maps"
	"slices"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
)

// Share holds the amounts of a slice in one class.
type Share struct {
	Class string
	// Policy is the granter of the share, a policy with the nodes that it selected, and Reclaim is that policy's. An
	// empty Policy is unknown. While the share may be on the nodes of more than one, Policy names all of them: see
	// offer.Granters.
	Policy  string
	Reclaim offer.Reclaim
	// Amounts holds the amounts held. An amount of 0 is the same as none. Shares share the map: the
	// caller must not change it.
	Amounts capacity.Amounts
}

// Empty reports whether nothing is held.
func (s Share) Empty() bool { return s.Amounts.Empty() }

// covers reports whether no amount of the other share is larger, whatever the classes.
func (s Share) covers(o Share) bool {
	for name, amount := range o.Amounts {
		if amount > s.Amounts[name] {
			return false
		}
	}
	return true
}

// Same reports whether both hold the same in the same class, whatever the policies.
func (s Share) Same(o Share) bool { return s.Class == o.Class && s.covers(o) && o.covers(s) }

// isWhere reports whether the share may be on all nodes of the other one.
func (s Share) isWhere(o Share) bool {
	return s.Policy == "" || offer.IncludesGranters(s.Policy, o.Policy)
}

// With returns the larger of each amount of both. It takes the class and reclaim of the other share
// unless that is empty, and may be on the nodes of both.
func (s Share) With(o Share) Share {
	switch {
	case o.Empty():
		return s
	case s.Empty():
		return o
	}
	o.Policy = offer.BothGranters(s.Policy, o.Policy)
	switch {
	case s.covers(o):
		o.Amounts = s.Amounts
		return o
	case o.covers(s):
		return o
	}
	both := make(capacity.Amounts, len(s.Amounts)+len(o.Amounts))
	for _, amounts := range []capacity.Amounts{s.Amounts, o.Amounts} {
		for name, amount := range amounts {
			both[name] = max(both[name], amount)
		}
	}
	o.Amounts = both
	return o
}

// Less returns the share without the amounts of another one.
func (s Share) Less(o Share) Share {
	s.Amounts = s.Amounts.Less(o.Amounts)
	return s
}

// And returns the share with the sum of each amount of both.
func (s Share) And(o Share) Share {
	if o.Empty() {
		return s
	}
	sum := maps.Clone(o.Amounts)
	for name, amount := range s.Amounts {
		sum[name] = capacity.Sum(sum[name], amount)
	}
	s.Amounts = sum
	return s
}

// Least returns the share with the smaller of each amount of both.
func (s Share) Least(amounts capacity.Amounts) Share {
	same := true
	for name, amount := range s.Amounts {
		same = same && 0 < amount && amount <= amounts[name]
	}
	if same {
		return s
	}
	least := capacity.Amounts{}
	for name, amount := range s.Amounts {
		if smaller := min(amount, amounts[name]); smaller > 0 {
			least[name] = smaller
		}
	}
	s.Amounts = least
	return s
}

// Shares lists the holdings of a slice, sorted by class. None is empty.
type Shares []Share

// Add returns the shares with another one added. In one class the larger of each amount counts.
func (s Shares) Add(share Share) Shares {
	if share.Empty() {
		return s
	}
	at, found := slices.BinarySearchFunc(s, share.Class, byClass)
	out := slices.Clone(s)
	if found {
		out[at] = out[at].With(share)
		return out
	}
	return slices.Insert(out, at, share)
}

// In returns the share in a class, an empty one if there is none.
func (s Shares) In(class string) Share {
	if at, found := slices.BinarySearchFunc(s, class, byClass); found {
		return s[at]
	}
	return Share{Class: class}
}

// WithoutNodes returns the shares by the same policies, without the nodes that these selected.
func (s Shares) WithoutNodes() Shares {
	out := slices.Clone(s)
	for i := range out {
		out[i].Policy = offer.WithoutNodes(out[i].Policy)
	}
	return out
}

// Without returns the shares in all other classes.
func (s Shares) Without(class string) Shares {
	return slices.DeleteFunc(slices.Clone(s), func(share Share) bool { return share.Class == class })
}

// Same reports whether both hold the same in the same classes, by the same policies.
func (s Shares) Same(o Shares) bool {
	return slices.EqualFunc(s, o, func(a, b Share) bool { return a.Policy == b.Policy && a.Same(b) })
}

func byClass(s Share, class string) int { return cmp.Compare(s.Class, class) }
