package offer

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

const (
	// maxGranters bounds the text of several granters, as the API bounds a list of policies.
	maxGranters = 253
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

// PolicyOf returns the name of the policy of a granter.
func PolicyOf(granter string) string {
	name, _, _ := strings.Cut(granter, "@")
	return name
}

// SaysNodes reports whether a granter says from which nodes it has granted. In the records of earlier versions, it does
// not.
func SaysNodes(granter string) bool { return granter == unknownGranter || digestOf(granter) != "" }

// digestOf returns the digest of a granter's selection, empty for none.
func digestOf(granter string) string {
	_, digest, _ := strings.Cut(granter, "@")
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

// WithoutNodes returns granters as records of earlier versions have them: their policies alone.
func WithoutNodes(granters string) string { return strings.Join(PoliciesOf(granters), ",") }

// SplitGranters returns the policies and the digests of granters as two texts, as records have them. JoinGranters is
// its inverse; a record may have no digests.
func SplitGranters(granters string) (policies, digests string) {
	var names, of []string
	for _, by := range Granters(granters) {
		names, of = append(names, PolicyOf(by)), append(of, digestOf(by))
	}
	if digests = strings.Join(of, ","); strings.Trim(digests, ",") == "" {
		digests = ""
	}
	return strings.Join(names, ","), digests
}

// JoinGranters returns the granters of a record.
func JoinGranters(policies, digests string) string {
	all, of := Granters(policies), Granters(digests)
	for i := range min(len(all), len(of)) {
		if of[i] != "" {
			all[i] += "@" + of[i]
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
	both := strings.Join(all, ",")
	if len(both) > maxGranters || slices.Contains(all, unknownGranter) {
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

// mayBeGranter reports whether two granters are the same, or the selection of one of them is not known.
func mayBeGranter(a, b string) bool {
	return a == b || PolicyOf(a) == PolicyOf(b) && (a == PolicyOf(a) || b == PolicyOf(b))
}
