package check

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// trial is a dry run of a request that a guard has to refuse, and its answer.
type trial struct {
	guard guard
	// harm describes the effect of a request like this unless the guard refuses it.
	harm string
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
	// waits: the guard refuses every request, because the operator has not written its list.
	waits
	// fails: the guard does not refuse the request.
	fails
	// absent: there is nothing to try the guard on.
	absent
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
		return fails
	case errors.As(t.err, &kind):
		return absent
	case says("ValidatingAdmissionPolicy '" + t.guard.name + "'"):
		if slices.ContainsFunc(withoutList, says) {
			return waits
		}
		return holds
	case apierrors.IsAlreadyExists(t.err), slices.ContainsFunc(behindGuards, says):
		return fails
	}
	return untried
}

// findTrials reports the guards that do not refuse what they should, and the ones that were not tried.
func findTrials(trials []trial) []Finding {
	var problems []Finding
	holding, missing, skipped := 0, map[string][]string{}, map[Finding][]string{}
	for _, t := range trials {
		switch name := t.guard.name; t.verdict() {
		case holds:
			holding++
		case waits:
			problems = append(problems, Finding{
				checkGuards, Warning, name + " refuses every request: the operator has not written its list.",
				"The leader writes it: look at the checks rights and leader, and at the logs of the operator.",
			})
		case fails:
			problems = append(problems, Finding{
				checkGuards, Wrong, name + " does not hold: " + t.harm + ".",
				fmt.Sprintf("kubectl delete validatingadmissionpolicybinding,validatingadmissionpolicy %s, "+
					"and apply config/%s again: see docs/install.md.", name, t.guard.dir),
			})
		case absent:
			missing[t.err.Error()] = append(missing[t.err.Error()], name)
		case untried:
			why := knownOf(t, t.err).skip(checkGuards, t.right)
			skipped[why] = append(skipped[why], name)
		}
	}
	for _, why := range slices.SortedFunc(maps.Keys(skipped), func(a, b Finding) int {
		return cmp.Compare(a.Message, b.Message)
	}) {
		untried := why
		untried.Message = fmt.Sprintf("Not tried: %s. %s", strings.Join(skipped[why], ", "), why.Message)
		problems = append(problems, untried)
	}
	return append(summaryOf(holding, missing), problems...)
}

// summaryOf returns the finding on the guards that hold, and on those for which an object is missing, by
// what is missing.
func summaryOf(holding int, missing map[string][]string) []Finding {
	var texts []string
	if holding > 0 {
		texts = append(texts, fmt.Sprintf("Refusals confirmed by dry runs: %d.", holding))
	}
	for _, what := range slices.Sorted(maps.Keys(missing)) {
		texts = append(texts, fmt.Sprintf("Not tried, because %s: %s.", what, strings.Join(missing[what], ", ")))
	}
	if len(texts) == 0 {
		return nil
	}
	return []Finding{{checkGuards, OK, strings.Join(texts, " "), ""}}
}
