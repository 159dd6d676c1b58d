package overview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
)

const (
	// maxReason bounds what a finding repeats of a message or an explanation, in bytes.
	maxReason = 300

	listPolicies = "kubectl get resourcepolicies"
	showPools    = "kubectl proffer top"
)

// addPolicies adds the policies that are not Ready, those that are stopped or paused until somebody resumes them, and
// those with a slip, by name. endless has the policies whose pause has no end.
func (l *list) addPolicies(all []rest.Policy, endless map[string]bool) {
	if len(all) == 0 {
		l.add(1, []rest.Finding{{
			Kind: policies, Status: rest.StatusWarning, Page: "policies", Do: "kubectl explain resourcepolicy.spec",
			Message: "There is no ResourcePolicy, so nothing is offered.",
		}}, "", "")
		return
	}
	byStatus := map[string][]rest.Finding{}
	for i := range all {
		p, ready := &all[i], readyOf(&all[i])
		f := rest.Finding{
			Kind: policies, Status: rest.StatusWarning, Page: "policies#policy-" + p.Name,
			Do:      "kubectl describe resourcepolicy " + p.Name,
			Message: fmt.Sprintf("Policy %s is not Ready, %s: %s", p.Name, p.Reason, sentence(ready.Message)),
		}
		switch {
		case p.Reason == v1alpha1.ReasonInvalid:
			f.Status, f.Do = rest.StatusWrong, "kubectl edit resourcepolicy "+p.Name
		case p.Reason == v1alpha1.ReasonStopped, p.Reason == v1alpha1.ReasonPaused && endless[p.Name]:
			f.Do = "kubectl proffer resume " + p.Name
			f.Message = fmt.Sprintf("Policy %s is %s, without an end: %s", p.Name, p.Reason, sentence(ready.Message))
		case ready.Status != "False":
			_, slip, found := strings.Cut(ready.Message, v1alpha1.SlipNote)
			if !found {
				continue
			}
			f.Do = "kubectl edit resourcepolicy " + p.Name
			f.Message = fmt.Sprintf("Policy %s has what is probably a slip: %s", p.Name, sentence(slip))
		}
		byStatus[f.Status] = append(byStatus[f.Status], f)
	}
	for _, status := range statuses {
		l.add(len(byStatus[status]), byStatus[status], "policies", listPolicies)
	}
}

// sentence returns a text of bounded length that ends like a sentence.
func sentence(text string) string {
	return strings.TrimSuffix(kube.Shorten(text, maxReason), ".") + "."
}

// readyOf returns the condition Ready. Each policy has one.
func readyOf(p *rest.Policy) rest.Condition {
	i := slices.IndexFunc(p.Conditions, func(c rest.Condition) bool { return c.Type == v1alpha1.ConditionReady })
	if i < 0 {
		return rest.Condition{}
	}
	return p.Conditions[i]
}

// addPools adds the policies in force that have nothing left of a resource, by name.
func (l *list) addPools(all []rest.Policy) {
	var found []rest.Finding
	for i := range all {
		p := &all[i]
		f := rest.Finding{Kind: pools, Status: rest.StatusWarning, Page: "#pool-" + p.Name, Do: showPools}
		switch gone := exhausted(p); {
		case p.Reason == v1alpha1.ReasonExhausted:
			f.Message = fmt.Sprintf("Policy %s is %s: %s", p.Name, p.Reason, sentence(readyOf(p).Message))
		case p.Reason == v1alpha1.ReasonOffering && len(gone) > 0:
			f.Message = fmt.Sprintf("Nothing is left of %s in the pool of policy %s: "+
				"whoever asks for more waits, or is denied.", kube.First(gone), p.Name)
		default:
			continue // It is not in force, has something left of everything, or is not Ready.
		}
		found = append(found, f)
	}
	l.add(len(found), found, "", showPools)
}

// exhausted returns the resources of which nothing is left, sorted. A resource that no node of the pool has does not
// count, unless virtual nodes need it.
func exhausted(p *rest.Policy) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.Remaining)) {
		remaining, whole := p.Remaining[name], p.Capacity[name]
		needed := name == capacity.CPU || name == capacity.Memory || name == capacity.Pods
		if remaining.Sign() <= 0 && (needed || whole.Sign() > 0) {
			names = append(names, name)
		}
	}
	return names
}
