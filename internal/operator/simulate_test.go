package operator

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/rehearse"
	"proffer.dev/proffer/internal/rehearse/world"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
	"proffer.dev/proffer/test/nodestest"
)

// simulate does what POST /simulate does.
func (o *operator) simulate(c *api.Change) *api.Simulation {
	o.t.Helper()
	w := rehearse.Of(o.table.Current(), o.ledger.Copy())
	w.Now = time.Now()
	parsed, problems, err := world.ChangeOf(c, &w, nil)
	if err != nil || len(problems) > 0 {
		o.t.Fatal(err, problems)
	}
	return world.SimulationOf(rehearse.Rehearse(&w, parsed, func() bool { return false }), api.Evaluated{}, nil, nil)
}

// TestASimulationSaysWhatTheEditThenDoes compares what a simulation says of offers and slices with what comes of the edit.
func TestASimulationSaysWhatTheEditThenDoes(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.ResourcePolicySpec){
		"a ceiling that takes back what nobody uses": func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Max = kubetest.Quantities("cpu", "4") },
		"a ceiling that evicts": func(s *v1alpha1.ResourcePolicySpec) {
			s.Offer.Max, s.Reclaim = kubetest.Quantities("cpu", "0"), v1alpha1.ReclaimEvict
		},
		"a reserve that leaves less than is granted": func(s *v1alpha1.ResourcePolicySpec) { s.Offer.Reserve = kubetest.Quantities("cpu", "15") },
	} {
		t.Run(name, func(t *testing.T) {
			installSliceCRDs(t)
			goldNode(t, "gold-1", "cpu", "20", "memory", "100Gi", "pods", "500")
			policy := kubetest.Create(t, classGold())
			o := startOperator(t)
			slices := map[string]*unstructured.Unstructured{}
			ask := func(of *tenancy, name, cpu, want string) {
				slices[name] = of.ask(name, nodestest.List("cpu", cpu))
				awaitAnswer(t, slices[name], want)
			}
			rome, oslo := newTenancy(t, "rome"), newTenancy(t, "oslo")
			ask(rome, "a", "12", "Accepted Incomplete cpu=12")
			kubetest.Create(t, nodestest.Pod("of-rome", "gold-1", nodestest.List("cpu", "2"), nodestest.PodLabel(originLabel, "rome")))
			ask(oslo, "b", "10", "Accepted Capped cpu=8")
			o.awaitCaughtUp()

			next := classGold(edit)
			said := o.simulate(&api.Change{Apply: []v1alpha1.ResourcePolicy{*next}})
			if len(said.Offers) == 0 || len(said.Slices) == 0 {
				t.Fatalf("nothing changes: %+v", said)
			}
			want := map[string]corev1.ResourceList{}
			for name, s := range slices {
				want[name] = answerOf(t, s).Resources
			}
			for _, c := range said.Slices {
				want[c.Name] = corev1.ResourceList{}
				for name, q := range c.Then {
					want[c.Name][corev1.ResourceName(name)] = q
				}
			}
			editPolicy(t, policy, func(s *v1alpha1.ResourcePolicySpec) { *s = next.Spec })
			test.Eventually(t, func() string {
				got := map[string]corev1.ResourceList{}
				for name, s := range slices {
					got[name] = answerOf(t, s).Resources
				}
				return cmp.Diff(want, got, cmp.Comparer(equalLists))
			})
			test.Eventually(o.t, func() string {
				got, wanted := map[string]int64{}, map[string]int64{}
				for _, c := range said.Offers {
					id := c.Consumer
					if c.Anyone {
						id = "nobody"
					}
					key := id + " " + c.Class + " " + c.Resource
					got[key] = o.offered(id)[c.Class][c.Resource]
					wanted[key] = quantity.AmountOf(c.Resource, resource.MustParse(c.Then), quantity.Up)
				}
				return cmp.Diff(wanted, got)
			})
			test.Eventually(o.t, func() string { // The operator learns of its own answer a moment later.
				again := o.simulate(&api.Change{Apply: []v1alpha1.ResourcePolicy{*next}})
				if len(again.Offers)+len(again.Slices) > 0 {
					return fmt.Sprintf("the same edit, which is made: %+v", again)
				}
				return ""
			})
			if evicts := name == "a ceiling that evicts"; (len(said.Evicted) > 0) != evicts {
				t.Errorf("evicted: %+v", said.Evicted)
			}
		})
	}
}
