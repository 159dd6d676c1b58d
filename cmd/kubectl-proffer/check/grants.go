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
	"proffer.dev/proffer/internal/table"
)

const checkGrants Check = "grants"

// noticedShare is the part of a grant, as 1/noticedShare, from which on finished pods are reported.
const noticedShare = 10

// sliceUse holds the grants of a ResourceSlice in all its classes, the requests of its pods, and the
// requests of its finished pods.
type sliceUse struct {
	consumer, slice         string
	granted, used, finished capacity.Amounts
	// own is set if a slice holds something in a class of Proffer, ofOthers if one has moved to a class that
	// another controller answers.
	own, ofOthers bool
}

// findGrants reports the ResourceSlices whose pods request more than they were granted, and the ones
// whose finished pods take up their Quota. It expects the classes that policies serve, and the pods that Liqo
// v1 made for consumers.
func findGrants(
	namespace string, served []string, grants known[[]v1alpha1.Grant], pods known[[]corev1.Pod],
) []Finding {
	switch {
	case grants.missing() || grants.err == nil && len(grants.value) == 0:
		return nil // findCRDs reports a missing CRD.
	case grants.err != nil:
		return []Finding{grants.skip(checkGrants, "list grants.proffer.dev in "+namespace)}
	case pods.err != nil:
		return []Finding{pods.skip(checkGrants, "list pods")}
	}
	var exceeded, held []string
	uses := usesOf(served, grants.value, pods.value)
	for _, u := range uses {
		if excess := u.excess(); excess != "" {
			exceeded = append(exceeded, fmt.Sprintf("%s of %s requests %s", u.slice, u.consumer, excess))
		}
		if finished := u.heldByFinished(); finished != "" {
			held = append(held, fmt.Sprintf("%s of %s has %s", u.slice, u.consumer, finished))
		}
	}
	findings := []Finding{
		checkGrants.ok("The pods of each ResourceSlice (%d) request no more than it was granted.", len(uses)),
	}
	if len(exceeded) > 0 {
		findings[0] = checkGrants.warning(
			"Pods request more than their ResourceSlice was granted: %s.", kube.First(exceeded)).
			do("See docs/explanation/trust.md. A grant that was lowered is another cause.")
	}
	if len(held) > 0 {
		findings = append(findings, checkGrants.warning(
			"Finished pods take up Liqo's Quota, which counts pods until they are deleted: %s.", kube.First(held)).
			do("Ask the consumer to delete its finished pods, and to set ttlSecondsAfterFinished in its Jobs."))
	}
	return findings
}

// usesOf returns the ResourceSlices that have a Grant, sorted. Pods name the user of their slice, so a
// slice and an earlier one of the same name are one.
func usesOf(served []string, grants []v1alpha1.Grant, pods []corev1.Pod) []*sliceUse {
	byCreator := map[string]*sliceUse{}
	for i := range grants {
		spec := &grants[i].Spec
		creator := liqo.SliceCreator(spec.Slice.Name, spec.ClusterID)
		if byCreator[creator] == nil {
			byCreator[creator] = &sliceUse{
				consumer: spec.ClusterID, slice: spec.Slice.Name,
				granted: capacity.Amounts{}, used: capacity.Amounts{}, finished: capacity.Amounts{},
			}
		}
		use := byCreator[creator]
		if len(spec.Resources) == 0 && len(spec.Earlier) > 0 && !slices.Contains(served, spec.Class) {
			use.ofOthers = true
		} else if spec.State == v1alpha1.GrantGranted {
			use.own = true
		}
		granted := use.granted
		add(granted, quantity.AmountsOf(spec.Resources, quantity.Down))
		for j := range spec.Earlier {
			add(granted, quantity.AmountsOf(spec.Earlier[j].Resources, quantity.Down))
		}
	}
	for i := range pods {
		pod, counts := nodes.ParsePod(&pods[i])
		finished := !counts && pods[i].DeletionTimestamp == nil
		if finished {
			running := pods[i]
			running.Status.Phase = corev1.PodRunning // What it requested when it ran.
			pod, _ = nodes.ParsePod(&running)
		}
		use := byCreator[pod.Creator]
		switch {
		case use == nil || pod.Consumer != use.consumer:
		case finished:
			add(use.finished, pod.Requests)
		case counts:
			add(use.used, pod.Requests)
			add(use.used, capacity.Amounts{capacity.Pods: 1})
		}
	}
	return slices.SortedFunc(maps.Values(byCreator), func(a, b *sliceUse) int {
		return cmp.Or(cmp.Compare(a.consumer, b.consumer), cmp.Compare(a.slice, b.slice))
	})
}

// excess lists the resources of which the pods request more than was granted, "" for none. What another controller
// granted is not known.
func (u *sliceUse) excess() string {
	if u.ofOthers && !u.own {
		return ""
	}
	permitted := func(name string) int64 { return table.Permitted(u.granted, name) }
	return shares(u.used, permitted, func(used, granted int64) bool { return used > granted })
}

// heldByFinished lists the resources of which finished pods requested a considerable part of what was
// granted, "" for none. Liqo v1.2 subtracts a pod from a Quota when it is deleted, and counts no pods.
func (u *sliceUse) heldByFinished() string {
	granted := func(name string) int64 { return u.granted[name] }
	return shares(u.finished, granted, func(held, granted int64) bool { return held > 0 && held >= granted/noticedShare })
}

// shares lists the amounts that matter beside what was granted, as in "cpu 5 of 4, memory 2Gi of 1Gi".
func shares(of capacity.Amounts, grantedOf func(string) int64, matters func(amount, granted int64) bool) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if granted := grantedOf(name); matters(of[name], granted) {
			all = append(all, fmt.Sprintf("%s %s of %s",
				name, capacity.Canonical(name, of[name]), capacity.Canonical(name, granted)))
		}
	}
	return strings.Join(all, ", ")
}

func add(to, more capacity.Amounts) {
	for name, amount := range more {
		to[name] = capacity.Sum(to[name], amount)
	}
}
