package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// minGzip is the size from which an answer is compressed, in bytes.
const minGzip = 1 << 10

// representation is an answer in both encodings. All who read it share it.
type representation struct {
	plain, gzipped []byte
	// etag is a weak one: the same in both encodings.
	etag string
}

// represent returns the representation of a value. Two representations have the same ETag if the JSON
// of their identities is the same.
func represent(value, identity any) (*representation, error) {
	plain, err := encode(value)
	if err != nil {
		return nil, err
	}
	identified, err := json.Marshal(identity)
	if err != nil {
		return nil, err
	}
	return compress(plain, identified), nil
}

// compress returns the representation of JSON. The ETag is that of the identity.
func compress(plain, identity []byte) *representation {
	sum := sha256.Sum256(identity)
	p := &representation{plain: plain, etag: `W/"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`}
	if len(plain) < minGzip {
		return p
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(plain) // A buffer takes everything.
	_ = z.Close()
	p.gzipped = b.Bytes()
	return p
}

// serve answers with the representation, or with 304 to a caller that has it. The caller of serve sets
// other headers first.
func (p *representation) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", p.etag)
	h.Set("Cache-Control", "private, no-cache")
	h.Add("Vary", "Accept-Encoding")
	if has(r.Header.Values("If-None-Match"), p.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := p.plain
	if p.gzipped != nil && acceptsGzip(r.Header.Values("Accept-Encoding")) {
		body = p.gzipped
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	defer boundWriting(w, r)()
	_, _ = w.Write(body) // An error means that the client is gone.
}

// has reports whether a list of ETags includes one, by the weak comparison.
func has(list []string, etag string) bool {
	want := strings.TrimPrefix(etag, "W/")
	for _, one := range split(list) {
		if one == "*" || strings.TrimPrefix(one, "W/") == want {
			return true
		}
	}
	return false
}

// acceptsGzip reports whether the values of Accept-Encoding allow gzip.
func acceptsGzip(list []string) bool {
	for _, one := range split(list) {
		coding, q, _ := strings.Cut(one, ";")
		if name := strings.ToLower(strings.TrimSpace(coding)); name != "gzip" && name != "x-gzip" {
			continue
		}
		weight, weighted := strings.CutPrefix(strings.ToLower(strings.TrimSpace(q)), "q=")
		value, err := strconv.ParseFloat(weight, 64)
		return !weighted || err == nil && value > 0
	}
	return false
}

func split(list []string) []string {
	var all []string
	for _, values := range list {
		for one := range strings.SplitSeq(values, ",") {
			all = append(all, strings.TrimSpace(one))
		}
	}
	return all
}
