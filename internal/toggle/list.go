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
		out[id] = &rest.ProviderIn{
			Name: o.Name, Mode: string(o.Spec.Mode), Enabled: !o.Spec.DefaultDisabled, DefaultDisabled: o.Spec.DefaultDisabled,
		}
	}
	for _, e := range enabledIn(o) {
		in := out[string(e.Provider)]
		in.Enabled = in.Enabled || e.Consumer == ""
		in.EnabledFor = append(in.EnabledFor, e.shown())
	}
	for _, e := range disabledIn(o) {
		in := out[string(e.Provider)]
		in.Enabled = in.Enabled && e.Consumer != ""
		in.Disabled = append(in.Disabled, e.shown())
	}
	for i := range o.Status.Choices {
		addChoice(out, &o.Status.Choices[i])
	}
	return out
}

func (e *managedEntry) shown() rest.Disabled {
	return rest.Disabled{Consumer: string(e.Consumer), Toggle: e.removable(), Managers: e.others}
}

// Of returns the providers with what is about one consumer and about all of them.
func Of(all []rest.Provider, consumer string) []rest.Provider {
	out := slices.Clone(all)
	for i := range out {
		out[i].Orchestrations = slices.Clone(out[i].Orchestrations)
		for j := range out[i].Orchestrations {
			in := &out[i].Orchestrations[j]
			in.Disabled, in.EnabledFor = entriesOf(in.Disabled, consumer), entriesOf(in.EnabledFor, consumer)
			in.Chosen = only(in.Chosen, func(c rest.ChosenFor) bool { return c.Consumer == consumer })
			in.Rejected = only(in.Rejected, func(r rest.RejectedFor) bool { return r.Consumer == consumer })
			in.Notes = only(in.Notes, func(n rest.ProviderNote) bool { return n.Consumer == consumer })
		}
	}
	return out
}

func entriesOf(all []rest.Disabled, consumer string) []rest.Disabled {
	return only(all, func(e rest.Disabled) bool { return e.Consumer == "" || e.Consumer == consumer })
}

// only returns a copy of a list with the values that are kept.
func only[T any](all []T, keep func(T) bool) (kept []T) {
	for _, v := range all {
		if keep(v) {
			kept = append(kept, v)
		}
	}
	return kept
}

func addChoice(out map[string]*rest.ProviderIn, choice *v1alpha1.ConsumerChoice) {
	consumer := string(choice.Consumer)
	for _, p := range choice.Chosen {
		in := out[string(p.ClusterID)]
		in.Chosen = append(in.Chosen, rest.ChosenFor{
			Consumer: consumer, ConsumerChose: choice.ConsumerChose, Score: p.Score, Since: p.Since.UTC(), Because: p.Because,
		})
	}
	for _, p := range choice.Rejected {
		in := out[string(p.ClusterID)]
		in.Rejected = append(in.Rejected, rest.RejectedFor{
			Consumer: consumer, ConsumerChose: choice.ConsumerChose, By: string(p.By), Because: p.Because,
		})
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
