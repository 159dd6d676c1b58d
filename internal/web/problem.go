package web

import (
	"encoding/json"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/visible"
	"proffer.dev/proffer/internal/web/page"
)

// maxProblemDetail bounds the text of another handler that becomes the detail of a problem, in bytes.
const maxProblemDetail = 512

// Problem answers with an error that says what to do.
func Problem(w http.ResponseWriter, code int, detail string) {
	h := w.Header()
	for _, name := range []string{"Content-Encoding", "Content-Length", "ETag", "Age"} {
		h.Del(name)
	}
	h.Set("Content-Type", rest.ProblemType)
	h.Set("Cache-Control", "no-store")
	if code == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	body, err := encode(rest.Problem{Type: "about:blank", Title: http.StatusText(code), Status: code, Detail: detail})
	if err != nil {
		code = http.StatusInternalServerError
	}
	w.WriteHeader(code)
	_, _ = w.Write(body) // An error means that the client is gone.
}

// problemOf is fail for an error that is answered as a problem.
func problemOf(w http.ResponseWriter, err *apierrors.StatusError) {
	suggestDelay(w, err)
	Problem(w, int(err.ErrStatus.Code), err.ErrStatus.Message)
}

// Problems returns a handler that answers like another one, except that each error is a problem of RFC
// 9457. It also sets the headers that keep browsers from doing anything with an answer but show it.
func Problems(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page.Secure(w.Header())
		w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		held := &problemWriter{ResponseWriter: w}
		next.ServeHTTP(held, r)
		if held.code != 0 {
			Problem(w, held.code, strings.TrimSpace(string(held.detail)))
		}
	})
}

// problemWriter passes on an answer, and holds back an error that is not a problem.
type problemWriter struct {
	http.ResponseWriter
	// code is the status of an error that was held back.
	code   int
	detail []byte
}

// WriteHeader implements http.ResponseWriter.
func (w *problemWriter) WriteHeader(code int) {
	if code >= http.StatusBadRequest && w.Header().Get("Content-Type") != rest.ProblemType {
		w.code = code
		return
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *problemWriter) Write(text []byte) (int, error) {
	if w.code == 0 {
		return w.ResponseWriter.Write(text)
	}
	w.detail = append(w.detail, text[:min(len(text), maxProblemDetail-len(w.detail))]...)
	return len(text), nil
}

// Unwrap is for http.ResponseController.
func (w *problemWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// encode returns the JSON of a value. What terminals and browsers interpret is escaped, wherever it
// comes from.
func encode(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return append(visible.JSON(text), '\n'), nil
}
