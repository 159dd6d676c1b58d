package toggle

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
)

// refusal is an error in words for the caller of the API. Other errors are not: they may name hosts and
// users.
type refusal struct{ *apierrors.StatusError }

func refuse(code int32, format string, args ...any) refusal {
	return refusal{&apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Message: fmt.Sprintf(format, args...),
	}}}
}

// plan returns the entries that Manager should own after a change of the Orchestration, and whether they
// differ from those that it owns.
func plan(o *v1alpha1.Orchestration, change rest.Toggle) (set []v1alpha1.DisabledProvider, differs bool, err error) {
	wanted := v1alpha1.DisabledProvider{
		Provider: v1alpha1.ClusterID(change.ID), Consumer: v1alpha1.OptionalClusterID(change.Consumer),
	}
	var present *managedEntry
	for _, e := range entriesOf(o) {
		switch {
		case e.DisabledProvider == wanted:
			present = &e
		case e.ours:
			set = append(set, e.DisabledProvider)
		}
	}
	switch {
	case change.Enable:
		return set, present != nil, whyStillDisabled(o, change, present)
	case present != nil:
		return nil, false, nil
	case len(o.Spec.Disabled) >= v1alpha1.MaxOrchestrationDisabled:
		return nil, false, refuse(http.StatusConflict,
			"Orchestration %s has %d entries in spec.disabled, the most that it can have: enable a provider first",
			o.Name, len(o.Spec.Disabled))
	}
	return append(set, wanted), true, nil
}

// whyStillDisabled returns why a provider cannot be enabled here, nil if it can.
func whyStillDisabled(o *v1alpha1.Orchestration, change rest.Toggle, present *managedEntry) error {
	forAll := v1alpha1.DisabledProvider{Provider: v1alpha1.ClusterID(change.ID)}
	switch {
	case change.Consumer != "" && slices.Contains(o.Spec.Disabled, forAll):
		return refuse(http.StatusConflict,
			"Orchestration %s disables %s for every consumer: enable it without consumer first", o.Name, change.ID)
	case present == nil || present.removable():
		return nil
	case len(present.others) == 0:
		return refuse(http.StatusConflict,
			"Orchestration %s disables %s, and its managedFields do not say who has written that: "+
				"remove the entry from spec.disabled with kubectl edit",
			o.Name, change.ID)
	}
	return refuse(http.StatusConflict,
		"Orchestration %s disables %s in a manifest, which the field manager %s has written: "+
			"remove the entry from spec.disabled there",
		o.Name, change.ID, strings.Join(present.others, ", "))
}

// knownIDs returns the IDs of the providers and of the consumers that an Orchestration names, lists in its
// status, or disables.
func knownIDs(o *v1alpha1.Orchestration) (providers, consumers map[string]bool) {
	providers, consumers = map[string]bool{}, map[string]bool{}
	named := func(c *v1alpha1.Clusters, into map[string]bool) {
		if c == nil {
			return
		}
		for _, id := range c.ClusterIDs {
			into[string(id)] = true
		}
	}
	named(o.Spec.Providers, providers)
	named(o.Spec.Consumers, consumers)
	for _, d := range o.Spec.Disabled {
		providers[string(d.Provider)] = true
		if d.Consumer != "" {
			consumers[string(d.Consumer)] = true
		}
	}
	for i := range o.Status.Providers {
		providers[string(o.Status.Providers[i].ClusterID)] = true
	}
	for i := range o.Status.Choices {
		choice := &o.Status.Choices[i]
		consumers[string(choice.Consumer)] = true
		for _, p := range choice.Chosen {
			providers[string(p.ClusterID)] = true
		}
		for _, p := range choice.Rejected {
			providers[string(p.ClusterID)] = true
		}
	}
	return providers, consumers
}
