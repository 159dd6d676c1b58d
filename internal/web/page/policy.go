package page

import "net/http"

// manifest is a policy that can be edited in the form.
type manifest struct{ Name, Text string }

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
	write(w, r, http.StatusOK, "layout", document{
		Title: "Policy " + name, Section: "policies", Body: "policy", Broker: h.toggler != nil, Data: manifest{name, text},
	})
}
