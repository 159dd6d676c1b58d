package page

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/quantity"
	"proffer.dev/proffer/internal/source/federation"
)

// federated holds the values of the page of the federation.
type federated struct {
	Class, Region, Fits, MaxPrice, Currency string
	// Sort is one of federation.Orders, and By the resource of the price or of what is available.
	Sort, By string
	Orders   []string
	Rows     []federation.Row
	// Providers are shown without their Offers.
	Providers []rest.FederationProvider
	// Cut is set if there are more rows or providers than are shown.
	Cut bool
}

// federation shows what the providers of this cluster publish to it.
func (h *Handler) federation(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	query, err := federation.ParseQuery(values)
	shown := federated{
		Class: query.Class, Region: query.Region, Fits: values.Get(federation.FitsParam),
		MaxPrice: values.Get(federation.MaxPriceParam), Currency: string(query.Currency),
		Sort: values.Get("sort"), By: cmp.Or(values.Get("by"), defaultResource), Orders: federation.Orders,
	}
	if err == nil && !slices.Contains(shown.Orders, shown.Sort) {
		err = fmt.Errorf("sort is none of %s", strings.Join(shown.Orders[1:], ", "))
	}
	if err != nil {
		Refuse(w, r, http.StatusBadRequest, err.Error())
		return
	}
	all := h.operator.Federation(time.Now()).Providers
	query.Select(all)
	shown.Rows = federation.Rows(all, shown.Sort, corev1.ResourceName(shown.By))
	shown.Cut = max(len(shown.Rows), len(all)) > maxRows
	shown.Rows, shown.Providers = shown.Rows[:min(len(shown.Rows), maxRows)], all[:min(len(all), maxRows)]
	h.show(w, r, http.StatusOK, document{
		Title: "Federation", Section: "federation", Body: "federation",
		Read: time.Now(), Data: shown,
	})
}

// granted writes amounts for people, as in "cpu=2, memory=4Gi".
func granted(amounts v1alpha1.Quantities) string {
	return cmp.Or(pairs(quantity.Notation(quantity.Human).Lists(federation.AmountsOf(amounts))[0]), none)
}
