package toggle

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
)

// providersOf returns the providers that Orchestrations, sorted by name, know: sorted by cluster ID.
func providersOf(all []v1alpha1.Orchestration) []rest.Provider {
	byID := map[string]*rest.Provider{}
	for i := range all {
		for id, in := range providersIn(&all[i]) {
			p := byID[id]
			if p == nil {
				p = &rest.Provider{ClusterID: id, Enabled: true}
				byID[id] = p
			}
			p.Enabled = p.Enabled && in.Enabled
			p.Orchestrations = append(p.Orchestrations, *in)
		}
	}
	out := make([]rest.Provider, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		out = append(out, *byID[id])
	}
	return out
}

// providersIn returns the providers that one Orchestration knows.
func providersIn(o *v1alpha1.Orchestration) map[string]*rest.ProviderIn {
	ids, _ := knownIDs(o)
	out := make(map[string]*rest.ProviderIn, len(ids))
	for id := range ids {
		out[id] = &rest.ProviderIn{Name: o.Name, Mode: string(o.Spec.Mode), Enabled: true}
	}
	for _, e := range entriesOf(o) {
		in := out[string(e.Provider)]
		in.Enabled = in.Enabled && e.Consumer != ""
		in.Disabled = append(in.Disabled, rest.Disabled{
			Consumer: string(e.Consumer), Toggle: e.removable(), Managers: e.others,
		})
	}
	for i := range o.Status.Choices {
		addChoice(out, &o.Status.Choices[i])
	}
	return out
}

func addChoice(out map[string]*rest.ProviderIn, choice *v1alpha1.ConsumerChoice) {
	consumer := string(choice.Consumer)
	for _, p := range choice.Chosen {
		in := out[string(p.ClusterID)]
		in.Chosen = append(in.Chosen, rest.ChosenFor{
			Consumer: consumer, Score: p.Score, Since: p.Since.UTC(), Because: p.Because,
		})
	}
	for _, p := range choice.Rejected {
		in := out[string(p.ClusterID)]
		in.Rejected = append(in.Rejected, rest.RejectedFor{Consumer: consumer, Because: p.Because})
	}
	for _, n := range choice.Notes {
		if in := out[string(n.Provider)]; in != nil {
			in.Notes = append(in.Notes, rest.ProviderNote{
				Consumer: consumer, Namespace: n.Namespace, Until: timeOf(n.Until), Because: n.Because,
			})
		}
	}
}

func timeOf(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}
