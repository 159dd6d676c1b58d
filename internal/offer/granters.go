package offer

import (
	"slices"
	"strings"
)

const (
	// maxGranters bounds the names of granters, as the API bounds them.
	maxGranters = 253
	// unknownGranter stands for too many. No policy has this name.
	unknownGranter = "*"
)

// Granters returns the policies on whose nodes a grant may be: one as a rule. While the answer of another one is being
// written, it may be on the nodes of both, which are then named with a comma between them. No name has a comma.
func Granters(names string) []string {
	if names == "" {
		return nil
	}
	return strings.Split(names, ",")
}

// BothGranters returns the names of granters followed by those of others that they lack.
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
	missing := func(name string) bool { return !slices.Contains(all, name) }
	return names == unknownGranter || !slices.ContainsFunc(Granters(others), missing)
}
