package offer

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

const (
	// maxGranters bounds the text of several granters without their seats, as the API bounds a list of policies;
	// maxSeats bounds the number of granters with seats.
	maxGranters = 253
	maxSeats    = 4
	// unknownGranter stands for too many. No policy has this name.
	unknownGranter = "*"
	// digestLength is the number of hexadecimal digits that identify a selection of nodes.
	digestLength = 16
	// noNodes stands for the digest of a policy that selects no nodes.
	noNodes = "none"
)

// Granter identifies the policy with its selection of nodes: a policy whose selection was edited is another granter.
// It is NAME@DIGEST, and NAME@none for a policy that selects no nodes. A name alone, as in the records of earlier
// versions, is taken for the policy as it is now.
func (p *Policy) Granter() string {
	if p.Nodes == nil {
		return p.Name + "@" + noNodes
	}
	digest := sha256.Sum256([]byte(p.Nodes.Selection.Key()))
	return p.Name + "@" + hex.EncodeToString(digest[:])[:digestLength]
}

// Seated returns a granter that grants from one node only, the seat: GRANTER/NODE. An empty node is no seat.
func Seated(granter, node string) string {
	if node == "" {
		return granter
	}
	return granter + "/" + node
}

// SeatOf returns the node from which a granter grants, empty for all of its nodes.
func SeatOf(granter string) string {
	_, node, _ := strings.Cut(granter, "/")
	return node
}

// WithoutSeat returns the granter with all of its nodes.
func WithoutSeat(granter string) string {
	of, _, _ := strings.Cut(granter, "/")
	return of
}

// WithoutSeats returns granters with all of their nodes, each once.
func WithoutSeats(granters string) string {
	if !strings.Contains(granters, "/") { // As a rule, of all slices in each decision.
		return granters
	}
	var all []string
	for _, by := range Granters(granters) {
		if of := WithoutSeat(by); !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return strings.Join(all, ",")
}

// PolicyOf returns the name of the policy of a granter.
func PolicyOf(granter string) string {
	name, _, _ := strings.Cut(WithoutSeat(granter), "@")
	return name
}

// SaysNodes reports whether a granter says from which nodes it has granted. In the records of earlier versions, it does
// not.
func SaysNodes(granter string) bool { return granter == unknownGranter || digestOf(granter) != "" }

// digestOf returns the digest of a granter's selection, empty for none.
func digestOf(granter string) string {
	_, digest, _ := strings.Cut(WithoutSeat(granter), "@")
	return digest
}

// Granters returns the granters on whose nodes a grant may be: one as a rule. While the answer of another one is being
// written, it may be on the nodes of both, which are then named with a comma between them.
func Granters(names string) []string {
	if names == "" {
		return nil
	}
	return strings.Split(names, ",")
}

// PoliciesOf returns the names of the policies of granters, each once, in their order.
func PoliciesOf(granters string) (names []string) {
	for _, by := range Granters(granters) {
		if name := PolicyOf(by); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// WithoutNodes returns granters as records of earlier versions have them, their policies alone, and their seats.
func WithoutNodes(granters string) string {
	var all []string
	for _, by := range Granters(granters) {
		if of := Seated(PolicyOf(by), SeatOf(by)); !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return strings.Join(all, ",")
}

// GranterTexts are granters as records have them: the policies, the digests and the seats of each in its place, with
// commas between them. A text without any of them is empty.
type GranterTexts struct{ Policies, Digests, Seats string }

// SplitGranters returns the texts of granters. JoinGranters is its inverse.
func SplitGranters(granters string) GranterTexts {
	var names, digests, seats []string
	for _, by := range Granters(granters) {
		names, digests, seats = append(names, PolicyOf(by)), append(digests, digestOf(by)), append(seats, SeatOf(by))
	}
	join := func(texts []string) string {
		joined := strings.Join(texts, ",")
		if strings.Trim(joined, ",") == "" {
			return ""
		}
		return joined
	}
	return GranterTexts{strings.Join(names, ","), join(digests), join(seats)}
}

// JoinGranters returns the granters of a record.
func JoinGranters(t GranterTexts) string {
	all, digests, seats := Granters(t.Policies), Granters(t.Digests), Granters(t.Seats)
	for i := range all {
		if i < len(digests) && digests[i] != "" {
			all[i] += "@" + digests[i]
		}
		if i < len(seats) {
			all[i] = Seated(all[i], seats[i])
		}
	}
	return strings.Join(all, ",")
}

// BothGranters returns granters followed by those of others that they lack.
func BothGranters(names, others string) string {
	if names == others || others == "" {
		return names
	}
	all := Granters(names)
	for _, other := range Granters(others) {
		if !slices.Contains(all, other) {
			all = append(all, other)
		}
	}
	both, seated := strings.Join(all, ","), 0
	for _, by := range all {
		if SeatOf(by) != "" {
			seated++
		}
	}
	if seated > maxSeats || len(WithoutSeats(both)) > maxGranters || slices.Contains(all, unknownGranter) {
		return unknownGranter
	}
	return both
}

// IncludesGranters reports whether a grant by the first granters may be on all nodes of the others.
func IncludesGranters(names, others string) bool {
	if names == others || others == "" { // As a rule, of all slices in each decision.
		return true
	}
	all := Granters(names)
	missing := func(other string) bool {
		return !slices.ContainsFunc(all, func(by string) bool { return mayBeGranter(by, other) })
	}
	return names == unknownGranter || !slices.ContainsFunc(Granters(others), missing)
}

// SameGranters reports whether both are the same granters, as far as is known.
func SameGranters(names, others string) bool {
	return names == others || IncludesGranters(names, others) && IncludesGranters(others, names)
}

// mayBeGranter reports whether two granters are the same, or the selection of one of them is not known. One with a seat
// is the same as none without: a record has to name the seat.
func mayBeGranter(a, b string) bool {
	return a == b || SeatOf(a) == SeatOf(b) && PolicyOf(a) == PolicyOf(b) && (digestOf(a) == "" || digestOf(b) == "")
}

// SameButSeats reports whether both are the same granters, apart from their seats.
func SameButSeats(names, others string) bool {
	return names == others || SameGranters(WithoutSeats(names), WithoutSeats(others))
}
