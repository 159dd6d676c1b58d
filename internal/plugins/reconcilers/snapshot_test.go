package reconcilers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/grant"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
)

func cpu(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
}

// handOver updates the objects to a snapshot, hands over what has changed, and returns it.
func handOver(all *objects, s *table.Snapshot) []string {
	var changes []string
	for _, ref := range all.update(s, time.Now()) {
		text := string(ref.Kind) + " " + ref.Key
		e, _, _ := all.take(ref, time.Now())
		if e.New == (plugin.Object{}) {
			text += " is gone"
		}
		all.handedOver(e, 0, time.Now(), true)
		changes = append(changes, text)
	}
	return changes
}

func TestObjectsAreThoseOfTheSnapshot(t *testing.T) {
	w := newWorld()
	w.policies["gold"], w.policies["invalid"] = 1500, -1
	w.consumers["rome"] = map[string]string{"tier": "1"}
	w.slices["a"] = slice("a", "rome", 2000, 500)
	denied := slice("b", "rome", 3000, 0)
	denied.Answer = &grant.Answer{}
	w.slices["b"] = denied
	unanswered := slice("c", "rome", 4000, 0)
	unanswered.Answer = nil
	w.slices["c"] = unanswered
	pinned := slice("a", "rome", 1000, 1000)
	pinned.Pinned = true
	w.slices["d"] = pinned
	got := objectsIn(w.publish())

	spec := w.table.Current().Policies[0].Object.Spec
	want := map[plugin.Reference]plugin.Object{
		{Kind: plugin.KindPolicy, Key: "gold"}: {Policy: &plugin.Policy{Name: "gold", UID: "uid0", Generation: 1500, Spec: spec}},
		consumer("rome"):                       {Consumer: &plugin.Consumer{ClusterID: "rome", Labels: map[string]string{"tier": "1"}}},
		{Kind: plugin.KindOffer, Key: "rome/gold"}: {Offer: &plugin.Offer{
			ClusterID: "rome", Class: "gold", Policy: "gold", Amounts: cpu("1500m"),
		}},
		{Kind: plugin.KindGrant, Key: "ns/a/uid"}: {Grant: &plugin.Grant{
			Namespace: "ns", Name: "a", UID: "uid", ClusterID: "rome", Class: "gold", Policy: "gold", Accepted: true,
			Asked: cpu("2"), Granted: cpu("500m"),
		}},
		{Kind: plugin.KindGrant, Key: "ns/b/uid"}: {Grant: &plugin.Grant{
			Namespace: "ns", Name: "b", UID: "uid", ClusterID: "rome", Class: "gold", Asked: cpu("3"),
		}},
		{Kind: plugin.KindGrant, Key: "ns/c/uid"}: {Grant: &plugin.Grant{
			Namespace: "ns", Name: "c", UID: "uid", ClusterID: "rome", Class: "gold", Asked: cpu("4"),
		}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestOnlyWhatDiffersIsAChange(t *testing.T) {
	w := newWorld().with("oslo", "rome")
	w.policies["gold"] = 1000
	w.slices["a"], w.slices["b"] = slice("a", "rome", 2000, 500), slice("b", "rome", 2000, 500)
	all := newObjects()
	handOver(all, w.publish())
	for _, step := range []struct {
		name string
		edit func()
		want []string
	}{
		{"nothing", func() {}, nil},
		{"a label", func() { w.consumers["rome"] = map[string]string{"tier": "1"} }, []string{"Consumer rome"}},
		{
			"an edit of a policy", func() { w.policies["gold"] = 2000 },
			[]string{"Policy gold", "Offer oslo/gold", "Offer rome/gold"},
		},
		{
			"an invalid edit, after which offers are held at 0", func() { w.policies["gold"] = -1 },
			[]string{"Policy gold is gone", "Offer oslo/gold", "Offer rome/gold"},
		},
		{"a decision", func() { w.slices["a"] = slice("a", "rome", 2000, 600) }, []string{"Grant ns/a/uid"}},
		{"a request", func() { w.slices["a"] = slice("a", "rome", 2100, 600) }, []string{"Grant ns/a/uid"}},
		{"the end of a slice", func() { delete(w.slices, "a") }, []string{"Grant ns/a/uid is gone"}},
		{"a pinned part of a slice that is gone", func() {
			s := slice("a", "rome", 2000, 600)
			s.Pinned = true
			w.slices["a"] = s
		}, nil},
	} {
		step.edit()
		s := w.publish()
		if diff := cmp.Diff(step.want, handOver(all, s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if again := handOver(all, s); again != nil {
			t.Errorf("%s: the same snapshot has changes: %q", step.name, again)
		}
	}
}

func TestTheEndOfAConsumerEndsItsOffers(t *testing.T) {
	all, empty := newObjects(), &offer.Entry{}
	publish := func(id string, e *offer.Entry) []string {
		offers := offer.Offers{Default: empty, Entries: offer.EntriesOf(map[string]*offer.Entry{id: e})}
		tab := table.New()
		s := tab.Publish(table.Snapshot{Result: &offer.Result{Offers: offers}})
		s.Revision = all.revision + 1
		return handOver(all, s)
	}
	gold, silver := &offer.Offer{Class: "gold", Policy: "p"}, &offer.Offer{Class: "silver", Policy: "p"}
	for _, step := range []struct {
		id    string
		entry *offer.Entry
		want  []string
	}{
		{"rome", &offer.Entry{Offers: []*offer.Offer{gold, silver}}, []string{"Offer rome/gold", "Offer rome/silver"}},
		{"rome", &offer.Entry{Offers: []*offer.Offer{gold, silver}}, nil},
		{"rome", &offer.Entry{Offers: []*offer.Offer{{Class: "gold", Policy: "p"}, silver}}, nil},
		{"rome", &offer.Entry{Offers: []*offer.Offer{{Class: "gold", Policy: "q"}}}, []string{"Offer rome/gold", "Offer rome/silver is gone"}},
		{"oslo", &offer.Entry{Offers: []*offer.Offer{{}}}, []string{"Offer oslo/", "Offer rome/gold is gone"}},
	} {
		if diff := cmp.Diff(step.want, publish(step.id, step.entry)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.id, diff)
		}
	}
}

func TestUnchangedObjectsKeepTheirIdentity(t *testing.T) {
	w := newWorld().with("oslo", "rome")
	w.policies["gold"] = 1000
	w.slices["a"] = slice("a", "rome", 2000, 500)
	all := newObjects()
	all.update(w.publish(), time.Now())
	before := map[plugin.Reference]plugin.Object{}
	for ref, o := range all.all {
		before[ref] = o.now
	}
	w.with("bari")
	all.update(w.publish(), time.Now())
	for ref, was := range before {
		if all.all[ref].now != was {
			t.Errorf("%v was built again", ref)
		}
	}
	if got, want := len(all.all), len(before)+2; got != want {
		t.Errorf("%d objects, want %d", got, want)
	}
}

// A reconciler must not change what it is given. If one does, no evaluation and no other plugin may
// see it.
func TestObjectsShareNoMapWithTheSnapshot(t *testing.T) {
	w := newWorld()
	w.consumers["rome"] = map[string]string{"tier": "gold"}
	w.policies["gold"] = 4
	s := w.publish()
	s.Policies[0].Object.Spec.Consumers = &v1alpha1.Consumers{ClusterIDs: []v1alpha1.ClusterID{"rome"}}
	for _, object := range objectsIn(s) {
		switch {
		case object.Consumer != nil:
			object.Consumer.Labels["tier"] = "forged"
		case object.Policy != nil:
			object.Policy.Spec.Consumers.ClusterIDs[0] = "forged"
		}
	}
	if got := [2]string{s.Input.Consumers[0].Labels["tier"], string(s.Policies[0].Object.Spec.Consumers.ClusterIDs[0])}; got != [2]string{"gold", "rome"} {
		t.Errorf("the snapshot has %q", got)
	}
}
