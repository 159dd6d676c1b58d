// Package explain serves what each consumer is offered, and why, over HTTP, from the table that
// gRPC is served from. A request is not a read in Liqo's sense: it does not affect notifications.
//
//	GET /offers             every known consumer, and the default offer
//	GET /offers/{clusterID} one consumer
//
// Answers are JSON. Before the first evaluation the answer is 503.
//
// Offers of different classes may overlap: only grants exclude each other. A consumer that uses
// what one class offers may find less in another class.
package explain

import (
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/table"
)

// Path is where to mount the handler, together with every path below it.
const Path = "/offers"

// Offers is the answer to GET /offers.
type Offers struct {
	Consumers []Consumer `json:"consumers"`
	// Anyone is the default offer: what any other consumer is offered.
	Anyone []Offer `json:"anyone"`
}

// Consumer is the answer to GET /offers/{clusterID}.
type Consumer struct {
	ClusterID string `json:"clusterID"`
	// Known is false for a consumer that gets the default offer because no object describes or
	// names it.
	Known  bool    `json:"known"`
	Offers []Offer `json:"offers"`
	// Because explains why there are no offers. It is absent if there are offers.
	Because string `json:"because,omitempty"`
}

// Offer is what is offered in one class.
type Offer struct {
	// Class is empty for the unnamed pool.
	Class string `json:"class"`
	// Policy is the policy that decides, empty for a withdrawn offer.
	Policy string `json:"policy"`
	// Override is the index of the override that matched, absent for none.
	Override *int `json:"override,omitempty"`
	// Resources are the published amounts.
	Resources amounts `json:"resources"`
	// Granted is what the consumer's ResourceSlices of the class were granted, absent for nothing.
	Granted amounts `json:"granted,omitempty"`
	// Used is what the consumer's pods request: on the nodes of the policy, or on all nodes if no
	// policy of nodes decides. It is absent for a consumer without pods.
	Used amounts `json:"used,omitempty"`
	// Because explains each amount by the latest evaluation, a line for each resource. If the
	// published amount is older, within the policy's threshold, the line says so.
	Because []string `json:"because"`
}

// amounts are quantities by resource.
type amounts map[string]resource.Quantity

// Handler returns the handler for Path and all below it.
func Handler(t *table.Table) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, t, func(r *offer.Result) any { return everybody(r, r.Explainer()) })
	})
	mux.HandleFunc("GET "+Path+"/{clusterID}", func(w http.ResponseWriter, request *http.Request) {
		answer(w, t, func(r *offer.Result) any { return describe(r, r.Explainer(), request.PathValue("clusterID")) })
	})
	return mux
}

func answer(w http.ResponseWriter, t *table.Table, of func(*offer.Result) any) {
	r := t.Current()
	if r == nil {
		http.Error(w, table.ErrNotReady.Error()+": try again in a moment", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// An error means that the client is gone.
	_ = json.NewEncoder(w).Encode(of(r.Result))
}

func everybody(r *offer.Result, explainer offer.Explainer) Offers {
	all := Offers{Consumers: make([]Consumer, 0, r.Entries.Len()), Anyone: offers(explainer.Default())}
	for id := range r.Entries.All {
		all.Consumers = append(all.Consumers, describe(r, explainer, id))
	}
	return all
}

func describe(r *offer.Result, explainer offer.Explainer, id string) Consumer {
	c := Consumer{ClusterID: id, Known: r.Entries.Of(id) != nil, Offers: offers(explainer.Of(id))}
	switch {
	case len(c.Offers) > 0:
	case len(r.Reports) == 0:
		c.Because = "there is no valid ResourcePolicy"
	default:
		c.Because = "no ResourcePolicy in force is for this consumer"
	}
	return c
}

func offers(explained []offer.Explained) []Offer {
	all := make([]Offer, 0, len(explained))
	for i := range explained {
		o := &explained[i]
		x := Offer{
			Class: o.Class, Policy: o.Policy, Resources: amounts{}, Granted: quantities(o.Granted), Used: quantities(o.Used), Because: o.Because(),
		}
		if o.Override >= 0 {
			x.Override = &o.Override
		}
		for _, a := range o.Amounts {
			x.Resources[a.Resource] = quantity.Of(a.Resource, a.Value)
		}
		all = append(all, x)
	}
	return all
}

func quantities(of capacity.Amounts) amounts {
	if len(of) == 0 {
		return nil
	}
	out := make(amounts, len(of))
	for name, amount := range of {
		out[name] = quantity.Of(name, amount)
	}
	return out
}
