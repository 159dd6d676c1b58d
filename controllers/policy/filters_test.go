package policy

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kubetest"
	"proffer.dev/proffer/internal/policy"
)

// filtered is a policy with a filter, created this many seconds after others.
func filtered(name, filter string, after int64) *v1alpha1.ResourcePolicy {
	p := kubetest.Policy(name, func(s *v1alpha1.ResourcePolicySpec) {
		s.Offer = v1alpha1.PolicyOffer{Nodes: &v1alpha1.Nodes{Filter: filter}}
	})
	p.CreationTimestamp = metav1.Unix(1_700_000_000+after, 0)
	return p
}

func TestTooManyFiltersHarmTheNewestPoliciesOnly(t *testing.T) {
	c := NewCache(nil)
	for i := range policy.MaxFilters {
		c.Set(filtered(fmt.Sprintf("p-%03d", i), fmt.Sprintf("node.name != 'n%d'", i), int64(i)))
	}
	c.Set(filtered("a-new-one", "node.name == 'a'", 1000))
	c.Set(filtered("b-of-an-old-filter", "node.name != 'n7'", 500))
	c.Set(kubetest.Policy("c-without"))
	rehearsed := filtered("d-dry-run", "node.name == 'd'", -1000)
	rehearsed.Spec.Mode = v1alpha1.ModeDryRun
	c.Set(rehearsed)
	expect := func(want ...string) {
		t.Helper()
		var got []string
		for _, p := range c.List().All {
			if p.Parsed == nil {
				got = append(got, p.Name)
				if len(p.Problems) != 1 || !strings.Contains(p.Problems[0], "more than 256 different filters: write a filter that another policy has") {
					t.Errorf("%s: %q", p.Name, p.Problems)
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("invalid are %v, want %v", got, want)
		}
	}
	expect("a-new-one", "d-dry-run")
	c.Remove("p-007") // Another policy has its filter.
	expect("a-new-one", "d-dry-run")
	c.Remove("p-008")
	expect("d-dry-run")
}
