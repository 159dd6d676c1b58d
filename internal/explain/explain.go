// Package explain answers, over HTTP, what each consumer is offered and why, from the same table that gRPC is served from. Looking
// here is not a read in Liqo's sense: it has no effect on who is notified.
//
//	GET /offers             every known consumer, and what anyone else is offered
//	GET /offers/{clusterID} one consumer
//
// Answers are JSON. Before the first offers are worked out the answer is 503.
package explain

import (
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/api/resource"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// Path is where the handler is to be mounted, for itself and all below it.
const Path = "/offers"

// Offers is the answer to GET /offers.
type Offers struct {
	Consumers []Consumer `json:"consumers"`
	// Anyone is what a consumer is offered that is not among them.
	Anyone []Offer `json:"anyone"`
}

// Consumer is the answer to GET /offers/{clusterID}.
type Consumer struct {
	ClusterID string `json:"clusterID"`
	// Known is false for a consumer that nothing describes or names: it is offered what anyone is.
	Known  bool    `json:"known"`
	Offers []Offer `json:"offers"`
}

// Offer is what is offered in one class.
type Offer struct {
	// Class is empty for the unnamed pool.
	Class string `json:"class"`
	// Policy is the policy that decides, empty for an offer that none decides on any more.
	Policy string `json:"policy"`
	// Override is the index of the override that matched, absent if none did.
	Override  *int                         `json:"override,omitempty"`
	Resources map[string]resource.Quantity `json:"resources"`
	// Because says how each amount came about, one line for a resource.
	Because []string `json:"because"`
}

// Handler returns the handler for Path and all below it.
func Handler(t *table.Table) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, t, func(r *offer.Result) any { return everybody(r) })
	})
	mux.HandleFunc("GET "+Path+"/{clusterID}", func(w http.ResponseWriter, request *http.Request) {
		answer(w, t, func(r *offer.Result) any { return consumer(r, request.PathValue("clusterID")) })
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
	_ = json.NewEncoder(w).Encode(of(r))
}

func everybody(r *offer.Result) Offers {
	all := Offers{Consumers: make([]Consumer, 0, r.Entries.Len()), Anyone: offers(r.Anyone)}
	for id := range r.Entries.All {
		all.Consumers = append(all.Consumers, consumer(r, id))
	}
	return all
}

func consumer(r *offer.Result, id string) Consumer {
	entry := r.Entries.Of(id)
	known := entry != nil
	if !known {
		entry = r.Anyone
	}
	return Consumer{ClusterID: id, Known: known, Offers: offers(entry)}
}

func offers(e *offer.Entry) []Offer {
	all := make([]Offer, 0, len(e.Offers))
	for _, o := range e.Offers {
		x := Offer{Class: o.Class, Policy: o.Policy, Resources: make(map[string]resource.Quantity, len(o.Amounts))}
		if o.Override >= 0 {
			x.Override = &o.Override
		}
		for i, a := range o.Amounts {
			x.Resources[a.Resource] = capacity.Quantity(a.Resource, a.Value)
			x.Because = append(x.Because, o.Steps[i].Explain())
		}
		all = append(all, x)
	}
	return all
}
