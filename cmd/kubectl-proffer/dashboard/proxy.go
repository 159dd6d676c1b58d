package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"html/template"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"

	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
)

const (
	pagesPath     = "/ui/"
	simulatePath  = pagesPath + "simulate"
	providersPath = pagesPath + "providers"
	// key names the secret in the first address.
	key = "key"
	// maxForm bounds the body of the form in bytes. The operator has a bound of its own.
	maxForm = 1 << 20
	// maxPage bounds an answer of the operator in bytes.
	maxPage = 64 << 20
)

// passed lists the headers of a request that the operator gets, answered the headers of its answer that
// the browser gets. The operator's address is not the browser's, so Origin and cookies stay here.
var (
	passed   = []string{"Accept", "Content-Type", "HX-Request", "If-None-Match"}
	answered = []string{"Cache-Control", "Content-Type", "ETag", "Retry-After", "Vary"}
)

// asker asks the operator for pages.
type asker interface {
	Page(ctx context.Context, page *operatorclient.PageRequest) (*http.Response, error)
}

// proxy serves the operator's pages to one browser: the first one that knows the secret.
type proxy struct {
	operator asker
	// host is the address that it listens on.
	host string
	// session is the value of the cookie.
	session string

	mu sync.Mutex
	// secret is in the first address, empty once it was used.
	secret string
}

func newProxy(operator asker, host string) *proxy {
	return &proxy{operator: operator, host: host, session: rand.Text(), secret: rand.Text()}
}

// address is the one to open first.
func (p *proxy) address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return "http://" + p.host + "/?" + key + "=" + p.secret
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	first := r.Method == http.MethodGet && r.URL.Path == "/" && r.URL.Query().Has(key)
	switch {
	case r.Host != p.host:
		// Another name that leads here is of a site that wants to read the pages (DNS rebinding).
		fail(w, http.StatusForbidden, "Open the address that kubectl proffer dashboard has printed.")
	case strangers(r):
		fail(w, http.StatusForbidden, "Another user of this machine sent this request.")
	case first:
		p.admit(w, r)
	case !p.admitted(r):
		fail(w, http.StatusForbidden, "Open the address that kubectl proffer dashboard has printed. "+
			"It works once: end the command and start it again for another browser.")
	case !sameOrigin(r):
		fail(w, http.StatusForbidden, "Another site sent this request.")
	case r.URL.Path == "/":
		http.Redirect(w, r, pagesPath, http.StatusSeeOther)
	case !strings.HasPrefix(r.URL.Path, pagesPath) || r.URL.Path != pagesPath && path.Clean(r.URL.Path) != r.URL.Path:
		fail(w, http.StatusNotFound, "There is no such page.")
	case !takes(r):
		fail(w, http.StatusMethodNotAllowed, "The page takes no such request.")
	default:
		p.forward(w, r)
	}
}

// takes reports whether a page takes the method of a request: GET, HEAD, or the POST of a form.
func takes(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return true
	case http.MethodPost:
		return r.URL.Path == simulatePath || r.URL.Path == providersPath
	}
	return false
}

func strangers(r *http.Request) bool {
	stranger, _ := r.Context().Value(strangerKey{}).(bool)
	return stranger
}

// sameOrigin reports whether no other site sent a request. Another port of 127.0.0.1 is another site.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
		origin := r.Header.Get("Origin")
		return origin == "" || origin == "http://"+r.Host
	}
	return false
}

// cookieName has the port: cookies are of a host, and other dashboards have other ports.
func (p *proxy) cookieName() string {
	_, port, _ := strings.Cut(p.host, ":")
	return "proffer-dashboard-" + port
}

func (p *proxy) admitted(r *http.Request) bool {
	cookie, err := r.Cookie(p.cookieName())
	return err == nil && subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(p.session)) == 1
}

// admit exchanges the secret for the cookie, once. The answer leads to the pages by itself: after a
// redirect, the browser would not send a cookie of SameSite=Strict if another site led here.
func (p *proxy) admit(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	right := p.secret != "" && subtle.ConstantTimeCompare([]byte(r.URL.Query().Get(key)), []byte(p.secret)) == 1
	if right {
		p.secret = ""
	}
	p.mu.Unlock()
	switch {
	case right:
		http.SetCookie(w, &http.Cookie{
			Name: p.cookieName(), Value: p.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
	case !p.admitted(r):
		fail(w, http.StatusForbidden, "The address does not work, or has been used. "+
			"If you have not used it, another program on this machine has: "+
			"end kubectl proffer dashboard and start it again.")
		return
	}
	render(w, http.StatusOK, message{Title: "Proffer", Text: "The dashboard opens.", Next: "." + pagesPath})
}

// forward asks the operator and copies its answer.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request) {
	header := http.Header{}
	for _, name := range passed {
		if values := r.Header.Values(name); len(values) > 0 {
			header[http.CanonicalHeaderKey(name)] = values
		}
	}
	page := &operatorclient.PageRequest{
		Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: header, Body: http.NoBody,
	}
	if r.Method == http.MethodPost {
		page.Body = http.MaxBytesReader(w, r.Body, maxForm)
	}
	answer, err := p.operator.Page(r.Context(), page)
	if err != nil {
		explain(w, r.Method, err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	for _, name := range answered {
		if value := answer.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(answer.StatusCode)
	// An error means that the browser or the operator is gone.
	_, _ = io.Copy(w, io.LimitReader(answer.Body, maxPage))
}

// explain answers with why the operator was not reached.
func explain(w http.ResponseWriter, method string, err error) {
	switch {
	case errors.Is(err, operatorclient.ErrNoRight) && method == http.MethodPost:
		fail(w, http.StatusForbidden, "You may not rehearse policies, nor disable providers: "+
			"ask for Role "+operatorclient.Simulator.Role+" in the namespace of the operator.")
	case errors.Is(err, operatorclient.ErrNoRight):
		fail(w, http.StatusForbidden, err.Error())
	case errors.Is(err, operatorclient.ErrTryAgain):
		fail(w, http.StatusServiceUnavailable, err.Error())
	case errors.Is(err, operatorclient.ErrNoAnswer):
		fail(w, http.StatusGatewayTimeout, err.Error())
	default:
		fail(w, http.StatusBadGateway, err.Error())
	}
}

// secure sets the headers of every answer, whatever the operator sets.
func secure(header http.Header) {
	header.Set("Content-Security-Policy",
		"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// message is a page of the command itself.
type message struct {
	Title, Text string
	// Next is the target of the page's link, empty for none.
	Next string
}

var messagePage = template.Must(template.New("").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{{if .Next}}<meta http-equiv="refresh" content="0; url={{.Next}}">
<link rel="icon" href="{{.Next}}icon.svg" type="image/svg+xml">
{{end}}<title>{{.Title}} · Proffer</title>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
{{if .Next}}<p><a href="{{.Next}}">Open it</a></p>
{{end}}</main>
</body>
</html>
`))

func fail(w http.ResponseWriter, code int, text string) {
	render(w, code, message{Title: http.StatusText(code), Text: text})
}

func render(w http.ResponseWriter, code int, m message) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	// An error means that the browser is gone.
	_ = messagePage.Execute(w, m)
}
