package policy

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test/kubetest"
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
	for i := range table.MaxFilters {
		c.Set(filtered(fmt.Sprintf("p-%03d", i), fmt.Sprintf("node.name != 'n%d'", i), int64(i)))
	}
	c.Set(filtered("a-new-one", "node.name == 'a'", 1000))
	c.Set(filtered("b-of-an-old-filter", "node.name != 'n7'", 20))
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

// Of 1,000 policies with a filter each, the oldest 256 hold, live and after a restart.
func TestAThousandFiltersHarmTheNewestPoliciesOnly(t *testing.T) {
	const policies = 1000
	live, restarted := NewCache(nil), NewCache(nil)
	policy := func(i int) *v1alpha1.ResourcePolicy {
		return filtered(fmt.Sprintf("p-%03d", i), fmt.Sprintf("node.name != 'n%d'", i), int64(i))
	}
	for i := range policies {
		live.Set(policy(i))
		restarted.Set(policy(policies - 1 - i))
	}
	for _, c := range []*Cache{live, restarted} {
		for i, p := range c.List().All {
			if valid := p.Parsed != nil; valid != (i < table.MaxFilters) {
				t.Errorf("%s: valid %t, %q", p.Name, valid, p.Problems)
			}
		}
	}
}

// An admin edits the oldest policy: the filter is one too many, and harms no other policy, on any replica and
// after any restart.
func TestAFilterTooManyHarmsThePolicyThatIsEdited(t *testing.T) {
	objects := map[string]*v1alpha1.ResourcePolicy{"a-old": filtered("a-old", "", 0)}
	for i := range table.MaxFilters {
		name := fmt.Sprintf("p-%03d", i)
		objects[name] = filtered(name, fmt.Sprintf("node.name != 'n%d'", i), int64(1+i))
	}
	live := NewCache(nil)
	set := func(p *v1alpha1.ResourcePolicy) bool { return live.Set(p) }
	// write writes the status of each policy, as the leader does.
	write := func() {
		for _, p := range live.List().All {
			reason := v1alpha1.ReasonOffering
			if p.Parsed == nil {
				reason = v1alpha1.ReasonInvalid
			}
			object := objects[p.Name]
			object.Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionReady, Reason: reason, ObservedGeneration: object.Generation,
			}}
			set(object)
		}
	}
	edit := func(name, filter string, priority int32) {
		p := objects[name].DeepCopy()
		p.Generation++
		p.Spec.Offer.Nodes, p.Spec.Priority = &v1alpha1.Nodes{Filter: filter}, priority
		objects[name] = p
		set(p)
	}
	expect := func(want ...string) {
		t.Helper()
		restarted := NewCache(nil)
		for _, p := range objects {
			restarted.Set(p)
		}
		for _, c := range []*Cache{live, restarted} {
			var got []string
			for _, p := range c.List().All {
				if p.Parsed == nil {
					got = append(got, p.Name)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("invalid are %v, want %v", got, want)
			}
		}
	}
	for _, p := range objects {
		p.Generation = 1
		set(p)
	}
	expect()
	write()
	edit("a-old", "node.name == 'a'", 1)
	expect("a-old")
	write()
	expect("a-old")
	edit("p-255", "node.name != 'n255'", 2) // It keeps its filter.
	expect("a-old")
	write()
	edit("p-007", "", 1)
	expect() // Its filter is free.
	write()
	edit("p-007", "node.name != 'n7'", 2)
	expect("p-007")
	// Without statuses, as after a restore from a backup, the oldest policies keep their filters.
	for name, p := range objects {
		objects[name] = p.DeepCopy()
		objects[name].Status = v1alpha1.ResourcePolicyStatus{}
		set(objects[name])
	}
	expect("p-255")
}
