package check

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/controllers/placement"
	"proffer.dev/proffer/internal/kube/liqo"
)

const (
	// maxTried bounds the entries of a list that are tried.
	maxTried = 5
	// maxShown bounds the labels, in bytes, that the refusal of a pod is expected to repeat.
	maxShown = 1024
	// liqosClass is the class that Liqo itself answers.
	liqosClass = "default"
	// listPause is the time after which a list is tried again. The API server may not have seen a change yet.
	listPause = 2 * time.Second
)

// listRefusals are parts of the refusals of guards that depend on what is in their lists.
var listRefusals = []string{notServed, notPlaced, lost, full, exceeded}

const (
	notServed = "this cluster does not serve class "
	notPlaced = "spec.pod.nodeSelector lacks "
	lost      = "what it required of your pods is lost"
	full      = "more ResourceSlices than this cluster keeps the placement of"
	exceeded  = "request more than it was granted"
)

// tryList tries whether a guard judges by its list as it is now, if it reads one.
func (c *cluster) tryList(ctx context.Context, f flags, g guard, s stage) (trials []trial) {
	name, attempts := f.servedClasses, classAttempts
	switch g.name {
	case "proffer-served-classes":
	case "proffer-slice-pod-guard":
		name, attempts = f.placements, placementAttempts
	default:
		return nil
	}
	for try := range 2 {
		if try > 0 {
			pause, end := context.WithTimeout(ctx, listPause)
			<-pause.Done()
			end()
			if ctx.Err() != nil {
				break
			}
		}
		list := get(ctx, c, &v1alpha1.AdmissionParams{}, f.leaseNamespace, name)
		switch {
		case list.missing():
			return []trial{{guard: g, harm: "any request, because the list is gone", expected: expected{true, exceeded}}}
		case list.err != nil:
			t := trial{guard: g, expected: expected{ofList: true}}
			t.obstacle = obstacle{"get admissionparams.proffer.dev in " + f.leaseNamespace, list.err}
			return []trial{t}
		}
		trials = trials[:0]
		for _, a := range attempts(s, list.value.Data) {
			trials = append(trials, c.try(ctx, g, a))
		}
		if !slices.ContainsFunc(trials, func(t trial) bool { return t.verdict() == outdated }) {
			break
		}
	}
	return trials
}

// classAttempts returns requests for classes that are on the list of served classes, and that are not.
func classAttempts(s stage, listed map[string]string) (all []attempt) {
	with := func(class, says string) {
		all = append(all, attempt{
			harm: "class " + class, expected: expected{true, says},
			verb: "create", triedKind: resourceSlices, at: s.tenant, by: s.controlPlane(),
			body: newSlice(s.consumer, map[string]any{"class": class}),
		})
	}
	for _, class := range []string{attemptName, liqosClass} {
		if _, served := listed[class]; !served {
			with(class, notServed+class+":")
		}
	}
	for _, class := range firstTried(slices.Sorted(maps.Keys(listed))) {
		with(class, "")
	}
	return all
}

// placementAttempts returns pods of users that are on the list of placements, without and with their labels, pods
// of those that are marked, and a pod of the user of a slice that is neither.
func placementAttempts(s stage, listed map[string]string) (all []attempt) {
	try := func(by identity, labels map[string]any, with, says string) {
		_, _, at := placesOf(s.namespaces, s.tenants()[by.consumer])
		all = append(all, attempt{
			harm: "a pod of " + by.user + " " + with, expected: expected{true, says},
			verb: "create", triedKind: shadowPods, at: at, by: by,
			body: newShadowPod(by.consumer, map[string]any{"nodeSelector": labels}),
		})
	}
	on, marked := s.usersOn(listed)
	users := slices.Concat(firstTried(on), firstTried(marked))
	if by := (identity{liqo.SliceUser(s.slice.name, s.consumer), s.consumer}); s.slice.err == nil &&
		!slices.Contains(on, by) && !slices.Contains(marked, by) {
		users = append(users, by)
	}
	for _, by := range users {
		required, refusal := listed[by.user], refusalOf(listed, by)
		if required == "" || refusal == lost {
			try(by, nil, "without labels", refusal)
			continue
		}
		misplaced := notPlaced + strings.ReplaceAll(required, ",", ", ") + ":"
		if len(misplaced) > maxShown {
			misplaced = notPlaced
		}
		try(by, nil, "without its labels", misplaced)
		labels := map[string]any{}
		for pair := range strings.SplitSeq(required, ",") {
			key, value, _ := strings.Cut(pair, "=")
			labels[key] = value
		}
		try(by, labels, "with its labels", refusal)
	}
	return all
}

// refusalOf returns the refusal of a pod that has the labels that its user needs, empty if it is accepted.
func refusalOf(listed map[string]string, by identity) string {
	required, on := listed[by.user]
	_, crowded := listed["_"+by.consumer]
	switch {
	case required == "?":
		return lost
	case crowded && !on:
		return full
	case placement.InExcess(listed, by.user, by.consumer):
		return exceeded
	}
	return ""
}

// usersOn returns the users on a list of placements that belong to a consumer, and those that only marks are
// about, sorted. For the mark of a consumer, that is the user of its control plane.
func (s *stage) usersOn(listed map[string]string) (on, marked []identity) {
	tenants := s.tenants()
	for _, entry := range slices.Sorted(maps.Keys(listed)) {
		user, isMark := strings.CutPrefix(entry, "!")
		of, ofConsumer := strings.CutPrefix(user, "_")
		if _, known := tenants[of]; ofConsumer && known && !slices.Contains(marked, identity{of, of}) {
			marked = append(marked, identity{of, of})
		}
		for consumer := range tenants {
			_, also := listed[user]
			switch by := (identity{user, consumer}); {
			case ofConsumer || !strings.HasSuffix(user, liqo.SliceUser("", consumer)):
			case !isMark:
				on = append(on, by)
			case !also:
				marked = append(marked, by)
			}
		}
	}
	return on, marked
}

// tenants returns the tenant namespace of each consumer.
func (s *stage) tenants() map[string]string {
	all := map[string]string{}
	for i := range s.namespaces {
		n := &s.namespaces[i]
		if id := n.Labels[liqo.RemoteClusterIDLabel]; n.Labels[liqo.TenantNamespaceLabel] == "true" && id != "" {
			all[id] = n.Name
		}
	}
	return all
}

// firstTried returns the first entries, which are tried.
func firstTried[T any](all []T) []T { return all[:min(len(all), maxTried)] }
