package policy

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test/kubetest"
)

func TestOfferedNamesOfAPolicyOnlyGrow(t *testing.T) {
	c := NewCache(nil)
	p := kubetest.Policy("p", kubetest.Fixed("cpu", "1"))
	p.Status.OfferedResources = []v1alpha1.ResourceName{"memory"}
	c.Set(p)
	var known [][]string
	offers := func(names ...string) {
		list := c.List()
		known = append(known, list.Valid[0].Known)
		c.Remember(&table.Snapshot{
			Policies: list.All,
			Result:   &offer.Result{Reports: map[string]*offer.Report{"p": {Offered: names}}},
		})
	}
	offers("zinc", "cpu")
	offers("cpu", "memory", "pods")
	p.Generation++ // The edited object still has its old status.
	c.Set(p)
	offers()
	want := [][]string{{"memory"}, {"cpu", "memory", "zinc"}, {"cpu", "memory", "pods", "zinc"}}
	if diff := cmp.Diff(want, known); diff != "" {
		t.Errorf("known names (-want +got): %s", diff)
	}
	many := make([]string, v1alpha1.MaxOfferedResources)
	for i := range many {
		many[i] = fmt.Sprintf("example.com/%d", i)
	}
	offers(many...)
	if got := c.List().Valid[0].Known; len(got) != v1alpha1.MaxOfferedResources || !slices.IsSorted(got) ||
		!slices.Contains(got, "zinc") {
		t.Errorf("%d known names, want %d, sorted, with zinc: %q", len(got), v1alpha1.MaxOfferedResources, got)
	}
}

func TestTheCacheReturnsTheLastSeenVersion(t *testing.T) {
	c := NewCache(nil)
	p := kubetest.Policy("p", kubetest.Fixed("cpu", "1"))
	for _, version := range []string{"7", "8"} { // A written status changes only the version.
		p.ResourceVersion = version
		c.Set(p)
		if got := c.Version("p"); got != version {
			t.Errorf("version %q, want %q", got, version)
		}
	}
	c.Remove("p")
	if got := c.Version("p"); got != "" {
		t.Errorf("version %q of a removed policy", got)
	}
}

func TestTheListIsTheSameUntilAPolicyChanges(t *testing.T) {
	c := NewCache(nil)
	p := kubetest.Policy("p", kubetest.Fixed("cpu", "1"))
	c.Set(p)
	first := c.List()
	c.Set(p) // A resync does the same.
	if c.List() != first {
		t.Error("another list for the same policies")
	}
	c.Remember(&table.Snapshot{
		Policies: first.All,
		Result:   &offer.Result{Reports: map[string]*offer.Report{"p": {Offered: []string{"cpu"}}}},
	})
	if got := c.List().Valid[0].Known; !slices.Equal(got, []string{"cpu"}) {
		t.Errorf("known names %q, want cpu", got)
	}
	edited := kubetest.Policy("p", kubetest.Fixed("cpu", "2"))
	edited.Generation = 1
	c.Set(edited)
	if got := c.List().Valid[0].Fixed["cpu"]; got != 2000 {
		t.Errorf("cpu %d after an edit, want 2000", got)
	}
	c.Remove("p")
	if got := c.List().Valid; len(got) != 0 {
		t.Errorf("%d policies after the only one was removed", len(got))
	}
	if got := first.Valid[0]; got.Fixed["cpu"] != 1000 || got.Known != nil {
		t.Errorf("the first list changed: %+v", got)
	}
}

func TestAFullStatusIsTakenToHaveOfferedCPUAndMemory(t *testing.T) {
	p := kubetest.Policy("p")
	p.Status.Consumers = new(int32(offer.MaxReported + 50))
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonOffering}}
	for i := range v1alpha1.MaxOfferedResources - 1 {
		p.Status.OfferedResources = append(p.Status.OfferedResources, v1alpha1.ResourceName(fmt.Sprintf("a.com/r%02d", i)))
	}
	if past := pastOf(p, nil); past.Complete || len(past.Names) != v1alpha1.MaxOfferedResources-1 {
		t.Errorf("a status with room for another name: %+v", past)
	}
	p.Status.OfferedResources = append(p.Status.OfferedResources, "pods")
	past := pastOf(p, nil)
	for _, name := range []string{capacity.CPU, capacity.Memory, "pods"} {
		if !slices.Contains(past.Names, name) {
			t.Errorf("%s is not among %v", name, past.Names)
		}
	}
}
