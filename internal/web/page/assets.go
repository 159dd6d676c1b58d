package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"net/url"
	"time"
)

// htmxFile is the unchanged dist/htmx.min.js of the npm package htmx.org, of the version in its name.
const htmxFile = "htmx-2.0.11.min.js"

//go:embed assets templates
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"class": className, "held": heldRows, "default": defaultRows, "ofSlice": amountsOfSlice,
	"requests": requests, "offerChange": offerChange, "grantChange": grantChange, "labels": labelled, "linkable": linkable,
	"segment": url.PathEscape, "count": count, "moment": moment, "machine": machine, "leaveOut": leaveOut,
	"amounts": amountsOf, "granted": granted, "shapes": shapesOf, "htmx": func() string { return htmxFile },
}).ParseFS(files, "templates/*.html"))

// asset serves a file that all pages use. A browser that has it asks whether it is still the same.
func asset(name string) http.Handler {
	content, err := files.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // It is embedded.
	}
	tag := `"` + sumOf(content) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	})
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
