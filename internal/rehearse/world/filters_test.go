package world

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/controllers/policy"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// The policies of a cluster have as many filters as they may.
func TestAFilterTooManyIsRehearsedAsInvalid(t *testing.T) {
	filtered := func(name, filter string) *v1alpha1.ResourcePolicy {
		return kubetest.Policy(name, func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Nodes = &v1alpha1.Nodes{Filter: filter} })
	}
	policies := policy.NewCache(nil)
	for i := range table.MaxFilters {
		p := filtered(fmt.Sprintf("p-%03d", i), fmt.Sprintf("node.name != 'n%d'", i))
		p.CreationTimestamp = metav1.Unix(1_700_000_000+int64(i), 0)
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonOffering}}
		policies.Set(p)
	}
	late := filtered("late", "node.name == 'late'")
	late.CreationTimestamp = metav1.Unix(1_800_000_000, 0)
	policies.Set(late)
	dry := filtered("dry", "node.name == 'dry'")
	dry.CreationTimestamp, dry.Spec.Mode = metav1.Unix(1_850_000_000, 0), v1alpha1.ModeDryRun
	policies.Set(dry)
	list := policies.List()
	l := capacity.NewLedger()
	s := &table.Snapshot{Policies: list.All, Time: time.Unix(1_900_000_000, 0)}
	s.Result = offer.Evaluate(offer.Input{Policies: list.Valid, View: l.View(list.Selections)})
	live := rehearse.Of(s, l.Copy())
	var file bytes.Buffer
	test.Must(t, Encode(&file, s, l.Copy(), "test", nil))
	stored, _, err := Decode(&file)
	test.Must(t, err)
	for name, tc := range map[string]struct {
		change rest.Change
		// want lists the policies that become Invalid, or are no longer.
		want []string
	}{
		"another filter":              {rest.Change{Apply: []v1alpha1.ResourcePolicy{*filtered("next", "node.name == 'a'")}}, []string{"next Invalid"}},
		"a filter of an older policy": {rest.Change{Apply: []v1alpha1.ResourcePolicy{*filtered("next", "node.name != 'n7'")}}, nil},
		"the oldest policy edited":    {rest.Change{Apply: []v1alpha1.ResourcePolicy{*filtered("p-000", "node.name == 'a'")}}, nil},
		"one more for an old policy": {rest.Change{Apply: []v1alpha1.ResourcePolicy{*kubetest.Policy("p-000", func(s *v1alpha1.ResourcePolicySpec) {
			s.Offer.Nodes = &v1alpha1.Nodes{Filter: "node.name != 'n0'"}
			s.Consumers = &v1alpha1.Consumers{Filter: "!('a' in consumer.labels)"}
		})}}, []string{"late valid", "p-000 Invalid"}},
		"a younger policy activated as one is deleted": {rest.Change{
			Delete: []string{"p-007"}, Apply: []v1alpha1.ResourcePolicy{*filtered("dry", "node.name == 'dry'")},
		}, []string{"late valid"}},
		"an older policy deleted": {rest.Change{Delete: []string{"p-007"}}, []string{"late valid"}},
	} {
		for from, w := range map[string]*rehearse.World{"the operator": &live, "its snapshot": stored} {
			t.Run(name+" by "+from, func(t *testing.T) {
				change, _, err := ChangeOf(&tc.change, w, nil)
				test.Must(t, err)
				var got []string
				for _, p := range SimulationOf(rehearse.Rehearse(w, change, never), rest.Evaluated{}, nil, nil).Policies {
					switch v1alpha1.ReasonInvalid {
					case p.Then:
						got = append(got, p.Policy+" Invalid")
						if !strings.Contains(p.Message, "more than 256 different filters") {
							t.Errorf("%s: %s", p.Policy, p.Message)
						}
					case p.Now:
						if p.Then != "" {
							got = append(got, p.Policy+" valid")
						}
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}
