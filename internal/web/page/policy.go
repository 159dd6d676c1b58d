package page

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/quantity"
)

// maxNodes bounds the nodes that the page of a policy shows.
const maxNodes = 100

// Node holds what a node can allocate, and what the requests of all pods leave of it.
type Node struct {
	Name              string
	Allocatable, Free rest.Amounts
}

// Amounts writes both as in "cpu 3.5 of 8, memory 12Gi of 32Gi".
func (n Node) Amounts() string {
	var all []string
	for _, name := range resourcesOf(n.Allocatable) {
		amounts := quantity.Human(name, n.Free.OrZero(name), n.Allocatable.Of(name))
		all = append(all, name+" "+amounts[0]+" of "+amounts[1])
	}
	return cmp.Or(strings.Join(all, ", "), none)
}

// manifest is a policy that can be edited in the form, with the first nodes of its pool.
type manifest struct {
	Name, Text string
	Nodes      []Node
	// All is the number of the nodes.
	All int
	// TooLong is set if the form would be longer than MaxForm.
	TooLong bool
	// LostSeats says how many ResourceSlices wait for a node, empty for none.
	LostSeats string
}

// policy serves one policy as it was evaluated, in the form that rehearses it.
func (h *Handler) policy(w http.ResponseWriter, r *http.Request) {
	view, name := h.operator.View(), r.PathValue("policy")
	if view == nil {
		refuseUnready(w, r)
		return
	}
	text, ok := view.Manifest(name)
	if !ok {
		Refuse(w, r, http.StatusNotFound, "There is no such ResourcePolicy.")
		return
	}
	m := manifest{Name: name, Text: text, TooLong: formLength(text) > MaxForm}
	m.Nodes, m.All = view.Nodes(name, maxNodes)
	all := view.Policies()
	if i := slices.IndexFunc(all, func(p rest.Policy) bool { return p.Name == name }); i >= 0 {
		m.LostSeats = all[i].LostSeats()
	}
	of := view.Evaluated()
	h.show(w, r, http.StatusOK, document{
		Title: "Policy " + name, Section: "policies", Body: "policy", Data: m,
		Of: &of, Read: time.Now(),
	})
}

// formLength returns the length in bytes of the form that rehearses a text. Browsers end each line with CR LF.
func formLength(text string) int {
	return len(url.Values{"policy": {strings.ReplaceAll(text, "\n", "\r\n")}}.Encode())
}
