package world

import (
	"fmt"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/table"
)

// unselected returns a line for each kind of added nodes that is in no pool: they change no offer.
func unselected(o *rehearse.Outcome) (lines []string) {
	// The nodes of one kind follow each other, and differ only in the end of their names.
	for first := 0; first < len(o.Change.AddNodes); {
		n := &o.Change.AddNodes[first]
		count := slices.IndexFunc(o.Change.AddNodes[first:], func(other capacity.Node) bool {
			return path.Dir(other.Name) != path.Dir(n.Name)
		})
		if count < 0 {
			count = len(o.Change.AddNodes) - first
		}
		first += count
		if why := whyUnselected(o.With.Policies, n); why != "" {
			what := "1 added node, because no policy selects it"
			if count > 1 {
				what = fmt.Sprintf("%d added nodes, because no policy selects them", count)
			}
			lines = append(lines, what+": "+why)
		}
	}
	return lines
}

// whyUnselected returns what a node lacks for each policy of nodes, empty if one selects it.
func whyUnselected(policies []table.Policy, n *capacity.Node) string {
	var lacks []string
	count := 0
	for i := range policies {
		p := &policies[i]
		if p.Parsed == nil || p.Parsed.Nodes == nil || p.Parsed.Nodes.Selection.Peers != nil {
			continue
		}
		if p.Parsed.Nodes.Selection.Matches(n) {
			return ""
		}
		if count++; count > kube.MaxNamed {
			continue
		}
		if missing := missingLabels(p.Object.Spec.Offer.Nodes.Selector, n.Labels); len(missing) > 0 {
			lacks = append(lacks, p.Name+" selects only "+kube.First(missing))
		} else {
			lacks = append(lacks, p.Name+" has a filter that leaves such nodes out")
		}
	}
	if count == 0 {
		return "there is no valid policy of nodes"
	}
	text := strings.Join(lacks, "; ")
	if more := count - len(lacks); more > 0 {
		text += fmt.Sprintf("; and %d more policies", more)
	}
	return text
}

// missingLabels returns the requirements of a selector that the labels do not meet, as in "pool=gold".
func missingLabels(s *metav1.LabelSelector, of map[string]string) (missing []string) {
	if s == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil // Such a policy is invalid.
	}
	requirements, _ := selector.Requirements()
	for i := range requirements {
		if !requirements[i].Matches(labels.Set(of)) {
			missing = append(missing, requirements[i].String())
		}
	}
	return missing
}
