// Package placement maintains the list of the users whose pods have to carry labels of nodes, for
// the admission policy of the component slice-pod-guard. It is an AdmissionParams with an entry for
// each ResourceSlice that has a grant from a policy with enforcePlacement: the key is the user under
// whose name Liqo sends the pods of the slice, the value are the labels, as in pool=gold,zone=a.
// Other entries mark the list as complete, and the users whose pods request more than was granted.
package placement

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

const (
	// maxPerConsumer bounds the entries of one consumer, in bytes: some 500 slices with short names.
	maxPerConsumer = 32 << 10
	// maxList bounds the list, in bytes. etcd stores 1.5 MiB in one object.
	maxList = 1000 << 10
	// maxUser bounds the names of users, in bytes.
	maxUser = 253
	// exceeded precedes the ID of a consumer that has more than is listed. No user begins with it:
	// users begin with the name of a slice. The admission policy refuses all pods of the consumer
	// whose user has no entry.
	exceeded = "_"
	// complete is the mark of the list. Unless it fits, the admission policy refuses all pods: somebody has
	// changed or replaced the list, and what is required is not known. No user begins with a dot.
	complete = ".complete"
	// earlierMark is the mark of lists of earlier builds.
	earlierMark = "true"
	// unknown is the value of a user of whose pods it is not known what they need: no policy decides on
	// its grant, and the list that said it was lost. The admission policy refuses its pods.
	unknown = "?"
)

// rendered is the list as it should be.
type rendered struct {
	entries map[string]string
	// left is the number of slices without an entry because their consumer has too many.
	left int
}

// required holds the requirements on the pods of one user.
type required struct {
	user, consumer, labels string
}

// render returns the list for what was decided on the slices. The present list decides what is
// required of a user whose grant no policy decides on at the moment, such as while the policy is
// invalid or deleted, and which entries stay if a consumer has too many. It is nil if it is not known.
func render(decided iter.Seq[table.DecidedSlice], policies []table.Policy, present map[string]string) rendered {
	all := requirements(decided, policies, present)
	// What is listed stays listed; the rest follows in the order of the slices.
	slices.SortStableFunc(all, func(a, b required) int { return rank(a, present) - rank(b, present) })
	out := rendered{entries: make(map[string]string, len(all))}
	sums, total := map[string]int{}, 0
	for _, r := range all {
		size := len(r.user) + len(r.labels)
		if len(r.user) > maxUser || sums[r.consumer]+size > maxPerConsumer || total+size > maxList {
			out.left++
			// These markers are few and short: the bound of the list leaves room for them.
			out.entries[exceeded+r.consumer] = ""
			continue
		}
		sums[r.consumer] += size
		total += size
		out.entries[r.user] = r.labels
	}
	return out
}

func rank(r required, present map[string]string) int {
	if _, listed := present[r.user]; listed {
		return 0
	}
	return 1
}

// requirements returns what is required of each user that has, or is about to have, a grant, each
// once. An answer that a policy decides on goes before what is left of earlier grants of the same
// user: the pods of both are sent alike. With another seat, the entry has another label. Pods that run
// are not affected: the admission policy checks new ShadowPods, and those whose spec changes.
func requirements(decided iter.Seq[table.DecidedSlice], policies []table.Policy, present map[string]string) []required {
	byName := map[string]*offer.Policy{}
	for i := range policies {
		if p := policies[i].Parsed; p != nil {
			byName[p.Name] = p
		}
	}
	var all []required
	answered, known := map[string]bool{}, map[string]bool{}
	for s := range decided {
		byPolicy := s.Answer != nil && s.Answer.Policy != nil
		switch {
		case s.User == "", !s.Slice.Pinned && !s.Accepted() && !standsAccepted(&s), answered[s.User] && !byPolicy:
			continue
		case byPolicy:
			answered[s.User] = true
		}
		labels := present[s.User]
		if present == nil {
			labels = unknown
		}
		if byPolicy {
			labels = labelsOf(s.Answer.Policy, s.Answer.NodeSelector())
		} else {
			for _, by := range offer.Granters(s.Slice.GrantedBy) { // The last one has answered last.
				granted := byName[offer.PolicyOf(by)]
				switch {
				case granted == nil:
				case granted.Slices.FitNode: // Only the list has the label that names the seat.
					labels = cmp.Or(present[s.User], unknown)
				default:
					labels = labelsOf(granted, granted.Slices.NodeSelector)
				}
			}
		}
		if labels != "" && !known[s.User] {
			known[s.User] = true
			all = append(all, required{s.User, s.Slice.Consumer, labels})
		}
	}
	return all
}

// standsAccepted reports whether our answer, or one that the consumer has forged, accepts a slice in which nothing is
// held any more. So it is after a restart if everything was taken back and no policy serves the class.
func standsAccepted(s *table.DecidedSlice) bool {
	if s.OfOthers || s.Stands == nil {
		return false
	}
	accepted, _ := s.Stands()
	return accepted
}

// labelsOf returns the labels that a policy requires with a node selector, as they stand in the list, empty for none.
func labelsOf(p *offer.Policy, selector map[string]string) string {
	if !p.Slices.EnforcePlacement {
		return ""
	}
	return textOf(selector)
}

// textOf renders labels. Neither the key nor the value of a label has a comma or an equals sign.
func textOf(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}
