package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/source/nodes"
)

const checkGrants = "grants"

// sliceUse is what a ResourceSlice was granted in all its classes, and what its pods request.
type sliceUse struct {
	consumer, slice string
	granted, used   capacity.Amounts
}

// findGrants reports the ResourceSlices whose pods request more than they were granted. The pods are
// those that Liqo v1 made for consumers.
func findGrants(namespace string, grants known[[]v1alpha1.Grant], pods known[[]corev1.Pod]) []Finding {
	switch {
	case grants.missing() || grants.err == nil && len(grants.value) == 0:
		return nil // findCRDs reports a missing CRD.
	case grants.err != nil:
		return []Finding{grants.skip(checkGrants, "list grants.proffer.dev in "+namespace)}
	case pods.err != nil:
		return []Finding{pods.skip(checkGrants, "list pods")}
	}
	var exceeded []string
	uses := usesOf(grants.value, pods.value)
	for _, u := range uses {
		if excess := u.excess(); excess != "" {
			exceeded = append(exceeded, fmt.Sprintf("%s of %s requests %s", u.slice, u.consumer, excess))
		}
	}
	if len(exceeded) > 0 {
		return []Finding{{
			checkGrants, Warning,
			"Pods request more than their ResourceSlice was granted: " + kube.First(exceeded) + ".",
			"See Pods that Liqo's Quota does not see in docs/slices.md. A grant that was lowered is another cause.",
		}}
	}
	return []Finding{{
		checkGrants, OK,
		fmt.Sprintf("The pods of each ResourceSlice (%d) request no more than it was granted.", len(uses)), "",
	}}
}

// usesOf returns the ResourceSlices that have a Grant, sorted. Pods name the user of their slice, so a
// slice and an earlier one of the same name are one.
func usesOf(grants []v1alpha1.Grant, pods []corev1.Pod) []*sliceUse {
	byCreator := map[string]*sliceUse{}
	for i := range grants {
		spec := &grants[i].Spec
		creator := liqo.SliceCreator(spec.Slice.Name, spec.ClusterID)
		if byCreator[creator] == nil {
			byCreator[creator] = &sliceUse{spec.ClusterID, spec.Slice.Name, capacity.Amounts{}, capacity.Amounts{}}
		}
		granted := byCreator[creator].granted
		add(granted, quantity.AmountsOf(spec.Resources, quantity.Down))
		for j := range spec.Earlier {
			add(granted, quantity.AmountsOf(spec.Earlier[j].Resources, quantity.Down))
		}
	}
	for i := range pods {
		pod, counts := nodes.ParsePod(&pods[i])
		if use := byCreator[pod.Creator]; counts && use != nil && pod.Consumer == use.consumer {
			add(use.used, pod.Requests)
			add(use.used, capacity.Amounts{capacity.Pods: 1})
		}
	}
	return slices.SortedFunc(maps.Values(byCreator), func(a, b *sliceUse) int {
		return cmp.Or(cmp.Compare(a.consumer, b.consumer), cmp.Compare(a.slice, b.slice))
	})
}

// excess lists the resources of which the pods request more than was granted, "" for none. Liqo
// counts no pods, so a Grant without pods limits none.
func (u *sliceUse) excess() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(u.used)) {
		granted, limited := u.granted[name]
		if u.used[name] > granted && (limited || name != capacity.Pods) {
			used, of := capacity.Canonical(name, u.used[name]), capacity.Canonical(name, granted)
			all = append(all, fmt.Sprintf("%s %s of %s", name, used, of))
		}
	}
	return strings.Join(all, ", ")
}

func add(to, more capacity.Amounts) {
	for name, amount := range more {
		to[name] = capacity.Sum(to[name], amount)
	}
}
