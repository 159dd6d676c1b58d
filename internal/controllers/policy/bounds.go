package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
)

const (
	// maxStatus bounds the lists of a status in bytes, as estimated by cost: with a spec of any size
	// the object stays below the 1.5 MiB that etcd accepts.
	maxStatus = 512 << 10
	// maxStatusPool is the share of maxStatus for each of capacity, committed and remaining.
	maxStatusPool = 48 << 10
	// offerCost is the cost of an entry of offers, besides its lists and texts.
	offerCost = 256
)

// boundStatus cuts a status to what the API server accepts: the first amounts of each list and the
// first offers stay. The returned sentence says what was left out, empty for nothing.
func boundStatus(s *v1alpha1.ResourcePolicyStatus) string {
	names, offers := 0, len(s.Offers)
	cut := func(most int, lists ...*corev1.ResourceList) (all int) {
		for _, list := range lists {
			was := len(*list)
			if *list = firstAmounts(*list, most); len(*list) < was {
				names = max(names, was)
			}
			all += cost(*list)
		}
		return all
	}
	left := maxStatus - cut(maxStatusPool, &s.Capacity, &s.Committed, &s.Remaining)
	for i := range s.Offers {
		o := &s.Offers[i]
		all := offerCost + 2*len(o.ClusterID) + len(o.Message) + cut(maxStatus, &o.Offer, &o.Granted, &o.Used)
		if o.Now != nil {
			all += cut(maxStatus, &o.Now.Offer, &o.Now.Granted) + 2*len(o.Now.Policy)
		}
		if left -= all; left < 0 {
			s.Offers = s.Offers[:i:i]
			break
		}
	}
	var notes []string
	if names > 0 {
		notes = append(notes, fmt.Sprintf("only the first of %d resources are listed", names))
	}
	if len(s.Offers) < offers {
		notes = append(notes, fmt.Sprintf("only %d of %d offers are", len(s.Offers), offers))
	}
	if len(notes) == 0 {
		return ""
	}
	return " This status is cut: " + strings.Join(notes, ", and ") + "."
}

// firstAmounts returns the first amounts, within what a status may list and this cost: Kubernetes'
// own resources before others, each by name. It returns the list itself if all of it fits.
func firstAmounts(list corev1.ResourceList, most int) corev1.ResourceList {
	if len(list) <= v1alpha1.MaxStatusResources && cost(list) <= most {
		return list
	}
	out := corev1.ResourceList{}
	for _, name := range slices.SortedFunc(maps.Keys(list), byImportance) {
		if most -= costOf(name, list); most < 0 || len(out) == v1alpha1.MaxStatusResources {
			break
		}
		out[name] = list[name]
	}
	return out
}

func byImportance(a, b corev1.ResourceName) int {
	others := func(name corev1.ResourceName) int { return strings.Count(string(name), "/") }
	return cmp.Or(cmp.Compare(others(a), others(b)), cmp.Compare(a, b))
}

// cost estimates how many bytes a list takes in an object. Each name appears in the managed fields
// too.
func cost(list corev1.ResourceList) (all int) {
	for name := range list {
		all += costOf(name, list)
	}
	return all
}

func costOf(name corev1.ResourceName, list corev1.ResourceList) int {
	q := list[name]
	return 2*len(name) + len(q.String()) + len(`"":"","f:":{},`)
}

// leastOf returns the part of a refused status that is written instead: the conditions, which
// report the refusal, and the offered resources, which must be on record.
func leastOf(s v1alpha1.ResourcePolicyStatus, refusal error) v1alpha1.ResourcePolicyStatus {
	least := v1alpha1.ResourcePolicyStatus{
		ObservedGeneration: s.ObservedGeneration, Conditions: slices.Clone(s.Conditions), Source: s.Source, Class: s.Class,
		Consumers: s.Consumers, OfferedResources: s.OfferedResources,
	}
	if ready := meta.FindStatusCondition(least.Conditions, v1alpha1.ConditionReady); ready != nil {
		note := " The API server refused the rest of this status: " + kube.Shorten(refusal.Error(), kube.MaxMessage/4)
		ready.Message = kube.AppendNote(ready.Message, note)
	}
	return least
}
