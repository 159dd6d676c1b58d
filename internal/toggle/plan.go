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

// ownEntries are the entries of both lists that Manager should own.
type ownEntries struct{ disabled, enabled []entry }

// plan returns the entries that Manager should own after a change of the Orchestration, and whether they
// differ from those that it owns.
func plan(o *v1alpha1.Orchestration, change rest.Toggle) (own ownEntries, differs bool, err error) {
	key := entry{Provider: v1alpha1.ClusterID(change.ID), Consumer: v1alpha1.OptionalClusterID(change.Consumer)}
	var disables, enables *managedEntry
	own.disabled, disables = split(disabledIn(o), key)
	own.enabled, enables = split(enabledIn(o), key)
	if change.Enable {
		return own.enable(o, key, disables, enables)
	}
	return own.disable(o, key, disables, enables)
}

// split returns the entries that are ours except one, and that one, nil if it is not there.
func split(all []managedEntry, key entry) (ours []entry, is *managedEntry) {
	for _, e := range all {
		switch {
		case e.entry == key:
			is = &e
		case e.ours:
			ours = append(ours, e.entry)
		}
	}
	return ours, is
}

// enable adds what enables a provider. By default, nothing is enabled with defaultDisabled.
func (own ownEntries) enable(
	o *v1alpha1.Orchestration, key entry, disables, enables *managedEntry,
) (ownEntries, bool, error) {
	if err := whyStillDisabled(o, key, disables); err != nil {
		return own, false, err
	}
	isEnabled := slices.ContainsFunc(o.Spec.Enabled, func(e v1alpha1.EnabledProvider) bool {
		return e.Provider == key.Provider && (e.Consumer == "" || e.Consumer == key.Consumer)
	})
	switch {
	case o.Spec.DefaultDisabled && !isEnabled && len(o.Spec.Enabled) >= v1alpha1.MaxOrchestrationDisabled:
		return own, false, full(o.Name, "enabled", len(o.Spec.Enabled), "disable")
	case o.Spec.DefaultDisabled && !isEnabled:
		own.enabled = append(own.enabled, key)
		return own, true, nil
	case enables != nil && enables.ours:
		own.enabled = append(own.enabled, key)
	}
	return own, disables != nil, nil
}

// disable removes what enables a provider and, where that does not disable it, adds what does.
func (own ownEntries) disable(
	o *v1alpha1.Orchestration, key entry, disables, enables *managedEntry,
) (ownEntries, bool, error) {
	drops := o.Spec.DefaultDisabled && enables != nil && enables.removable()
	staysEnabled := !o.Spec.DefaultDisabled || slices.ContainsFunc(o.Spec.Enabled, func(e v1alpha1.EnabledProvider) bool {
		concerns := e.Provider == key.Provider && (e.Consumer == "" || key.Consumer == "" || e.Consumer == key.Consumer)
		return concerns && (!drops || entry(e) != key)
	})
	if !drops && enables != nil && enables.ours {
		own.enabled = append(own.enabled, key)
	}
	switch {
	case disables != nil:
		return own, false, nil
	case !staysEnabled:
		return own, drops, nil
	case len(o.Spec.Disabled) >= v1alpha1.MaxOrchestrationDisabled:
		return own, false, full(o.Name, "disabled", len(o.Spec.Disabled), "enable")
	}
	own.disabled = append(own.disabled, key)
	return own, true, nil
}

func full(name, list string, n int, first string) error {
	return refuse(http.StatusConflict,
		"Orchestration %s has %d entries in spec.%s, the most that it can have: %s a provider first", name, n, list, first)
}

// whyStillDisabled returns why a provider cannot be enabled here, nil if it can.
func whyStillDisabled(o *v1alpha1.Orchestration, key entry, present *managedEntry) error {
	switch {
	case key.Consumer != "" && slices.Contains(o.Spec.Disabled, entry{Provider: key.Provider}):
		return refuse(http.StatusConflict,
			"Orchestration %s disables %s for every consumer: enable it without consumer first", o.Name, key.Provider)
	case present == nil || present.removable():
		return nil
	case len(present.others) == 0:
		return refuse(http.StatusConflict,
			"Orchestration %s disables %s, and its managedFields do not say who has written that: "+
				"remove the entry from spec.disabled with kubectl edit",
			o.Name, key.Provider)
	}
	return refuse(http.StatusConflict,
		"Orchestration %s disables %s in a manifest, which the field manager %s has written: "+
			"remove the entry from spec.disabled there",
		o.Name, key.Provider, strings.Join(present.others, ", "))
}

// knownIDs returns the IDs of the providers and of the consumers that an Orchestration names, lists in its
// status, disables or enables.
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
	for _, e := range slices.Concat(disabledIn(o), enabledIn(o)) {
		providers[string(e.Provider)] = true
		if e.Consumer != "" {
			consumers[string(e.Consumer)] = true
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
