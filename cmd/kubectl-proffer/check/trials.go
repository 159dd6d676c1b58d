package check

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"proffer.dev/proffer/internal/kube"
)

// trial is a dry run of a request, and its answer.
type trial struct {
	guard guard
	harm  string
	expected
	obstacle
}

// obstacle is the error of a request to the API server.
type obstacle struct {
	// right is the right that the request needs, such as "list pods".
	right string
	err   error
}

// absentError is the kind of an object that a trial needs and the cluster does not have.
type absentError string

func (kind absentError) Error() string { return "there is no " + string(kind) }

// verdict is the result of a trial for its guard.
type verdict int

const (
	// holds: the guard refuses the request.
	holds verdict = iota
	// admits: the guard accepts the request, as it should.
	admits
	// waits: the guard refuses every request, because the operator has not written its list.
	waits
	// fails: the guard does not refuse the request.
	fails
	// outdated: the answer is not the one of the list as it is.
	outdated
	// absent: there is nothing to try the guard on.
	absent
	// hidden: the guard refuses the request, but not for what is tried.
	hidden
	// untried: the request has not reached the guard.
	untried
)

var (
	// withoutList are parts of the answers of guards that read a list: of the API server if there is none,
	// and of the guard itself if the operator has not written it.
	withoutList = []string{"no params found for policy binding", "run kubectl proffer check"}
	// behindGuards are parts of the refusals of what the API server asks after all admission policies:
	// Liqo's validating webhooks, and quotas.
	behindGuards = []string{`.validate.liqo.io"`, "exceeded quota:"}
)

func (t trial) verdict() verdict {
	says := func(part string) bool { return strings.Contains(t.err.Error(), part) }
	var kind absentError
	switch {
	case t.err == nil:
		return t.accepted()
	case errors.As(t.err, &kind):
		return absent
	case says("ValidatingAdmissionPolicy '" + t.guard.name + "'"):
		return t.refused(says)
	case apierrors.IsAlreadyExists(t.err), slices.ContainsFunc(behindGuards, says):
		return t.accepted()
	}
	return untried
}

// accepted returns the verdict on a guard that accepts the request.
func (t trial) accepted() verdict {
	switch {
	case !t.ofList:
		return fails
	case t.says != "":
		return outdated
	}
	return admits
}

// refused returns the verdict on a guard whose refusal says this.
func (t trial) refused(says func(part string) bool) verdict {
	switch {
	case slices.ContainsFunc(withoutList, says):
		return waits
	case t.says != "" && says(t.says):
		return holds
	case !t.ofList:
		return hidden
	case t.says == "" && !slices.ContainsFunc(listRefusals, says):
		return admits // Only for what does not depend on the list.
	}
	return outdated
}

// problem reports a guard that does not answer as it should.
func (t trial) problem(v verdict) Finding {
	name := t.guard.name
	if v == waits {
		return checkGuards.warning("%s refuses every request: the operator has not written its list.", name).
			do("The leader writes it: look at the checks rights and leader, and at the logs of the operator.")
	}
	return checkGuards.wrong("%s does not hold: %s.", name, t.harm).do(t.guard.installAgain())
}

// installAgain tells how to install the guard again.
func (g guard) installAgain() string {
	return fmt.Sprintf("kubectl delete validatingadmissionpolicybinding,validatingadmissionpolicy %s, "+
		"and apply config/%s again: see docs/how-to/hold-consumers-to-their-part.md.", g.name, g.dir)
}

// findTrials reports the guards that do not answer as they should, and the ones that were not tried.
func findTrials(trials []trial) []Finding {
	var problems []Finding
	counts, missing, skipped := map[verdict]int{}, map[string][]string{}, map[Finding][]string{}
	old := map[guard][]string{}
	for _, t := range trials {
		switch v := t.verdict(); v {
		case holds, admits:
			counts[v]++
		case waits, fails:
			if f := t.problem(v); !slices.Contains(problems, f) {
				problems = append(problems, f)
			}
		case outdated:
			old[t.guard] = append(old[t.guard], t.harm)
		case absent:
			missing[t.err.Error()] = append(missing[t.err.Error()], t.subject())
		case hidden, untried:
			why := knownOf(t, t.err).skip(checkGuards, t.right)
			skipped[why] = append(skipped[why], t.subject())
		}
	}
	for _, g := range slices.SortedFunc(maps.Keys(old), func(a, b guard) int { return cmp.Compare(a.name, b.name) }) {
		problems = append(problems, checkGuards.wrong(
			"%s does not judge by its list as it is, tried with %s.", g.name, kube.First(old[g])).
			do("Look at spec.paramRef of its binding. If it names the list of the operator, "+g.installAgain()))
	}
	for _, why := range slices.SortedFunc(maps.Keys(skipped), func(a, b Finding) int {
		return cmp.Compare(a.Message, b.Message)
	}) {
		untried := why
		untried.Message = fmt.Sprintf("Not tried: %s. %s", namesIn(skipped[why]), why.Message)
		problems = append(problems, untried)
	}
	return append(summaryOf(counts, missing), problems...)
}

// subject names what is tried, for a request that was not made.
func (t trial) subject() string {
	if t.ofList {
		return "the list of " + t.guard.name
	}
	return t.guard.name
}

// namesIn lists names, each once.
func namesIn(names []string) string { return strings.Join(slices.Compact(names), ", ") }

// summaryOf returns the finding on the requests that were answered as they should be, and on the guards for
// which an object is missing, by what is missing.
func summaryOf(counts map[verdict]int, missing map[string][]string) []Finding {
	var texts []string
	if counts[holds] > 0 {
		texts = append(texts, fmt.Sprintf("Refusals confirmed by dry runs: %d.", counts[holds]))
	}
	if counts[admits] > 0 {
		texts = append(texts, fmt.Sprintf("Accepted as the lists say: %d.", counts[admits]))
	}
	for _, what := range slices.Sorted(maps.Keys(missing)) {
		texts = append(texts, fmt.Sprintf("Not tried, because %s: %s.", what, namesIn(missing[what])))
	}
	if len(texts) == 0 {
		return nil
	}
	return []Finding{checkGuards.ok("%s", strings.Join(texts, " "))}
}
