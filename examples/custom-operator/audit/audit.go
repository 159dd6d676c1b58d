// Package audit has a reconciler that logs every policy, offer and grant.
package audit

import (
	"context"
	"encoding/json"
	"time"

	"proffer.dev/proffer/plugin"
)

// Name is the name of the reconciler in the configuration file.
const Name = "Audit"

type audit struct{ plugin.Handle }

// New returns the reconciler. It has no arguments.
func New(_ json.RawMessage, h plugin.Handle) (plugin.Reconciler, error) { return &audit{h}, nil }

// Name implements plugin.Reconciler.
func (a *audit) Name() string { return Name }

// Reconcile implements plugin.Reconciler.
func (a *audit) Reconcile(_ context.Context, e plugin.Event) (time.Duration, error) {
	if p := e.New.Policy; p != nil {
		state, err := a.State()
		if err != nil {
			return 0, err
		}
		offers := 0
		for _, o := range state.Offers {
			if o.Policy == p.Name && !o.Anyone {
				offers++
			}
		}
		a.Logger.Info("A policy is in force", "policy", p.Name, "offers", offers, "nodes", len(state.Nodes))
	}
	if g := e.New.Grant; g != nil {
		a.Logger.Info("A slice was decided on", "consumer", g.ClusterID, "class", g.Class, "slice", g.Name,
			"accepted", g.Accepted, "asked", g.Asked, "granted", g.Granted)
	}
	if o := e.New.Offer; o != nil {
		a.Logger.Info("An offer has changed",
			"consumer", o.ClusterID, "class", o.Class, "policy", o.Policy, "amounts", o.Amounts)
	}
	return 0, nil
}

// HandleDeletion implements plugin.Reconciler.
func (a *audit) HandleDeletion(_ context.Context, e plugin.Event) error {
	a.Logger.Info("An object has ended", "kind", e.Kind, "key", e.Key)
	return nil
}
