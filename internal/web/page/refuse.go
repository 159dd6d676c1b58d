package page

import (
	"cmp"
	"net/http"
)

// refusal holds the values of the page of an error.
type refusal struct {
	Code    int
	Text    string
	Message string
	// Detail is the cause, empty for none.
	Detail string
	// Path and Method are the right that is missing, empty for another error.
	Path, Method string
}

var messages = map[int]string{
	http.StatusBadRequest: "The request cannot be answered as it is written.",
	http.StatusUnauthorized: "The operator does not know who you are: send a bearer token, " +
		"or open the page with kubectl proffer dashboard.",
	http.StatusForbidden:             "You may not do this.",
	http.StatusNotFound:              "There is no such page.",
	http.StatusMethodNotAllowed:      "The page takes no such request.",
	http.StatusRequestTimeout:        "The form did not arrive in time.",
	http.StatusConflict:              "This cannot be changed here.",
	http.StatusRequestEntityTooLarge: "The text is too long.",
	http.StatusTooManyRequests:       "The operator is busy. Try again in a moment.",
	http.StatusServiceUnavailable:    "The operator is not ready. Try again in a moment.",
}

// Refuse answers with a page that says why there is no other one. It shows nothing of what was
// evaluated, so anyone may read it.
func Refuse(w http.ResponseWriter, r *http.Request, code int, detail string) {
	refuse(w, r, code, &refusal{Detail: detail})
}

// Deny answers a caller without the right to send the request's method to a path.
func Deny(w http.ResponseWriter, r *http.Request, code int, path string) {
	if code != http.StatusForbidden {
		Refuse(w, r, code, "")
		return
	}
	refuse(w, r, code, &refusal{Method: r.Method, Path: path})
}

func refuse(w http.ResponseWriter, r *http.Request, code int, said *refusal) {
	Secure(w.Header())
	said.Code, said.Text, said.Message = code, http.StatusText(code), cmp.Or(messages[code], "The operator cannot answer.")
	write(w, r, code, "layout", document{Title: said.Text, Body: "refusal", Data: said})
}
