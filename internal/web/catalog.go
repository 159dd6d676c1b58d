package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/catalog"
	"proffer.dev/proffer/internal/table"
)

const (
	// maxPageBytes is the size from which a page gets no further consumer.
	maxPageBytes = 1 << 20
	// maxIDBytes bounds the cluster IDs of requests.
	maxIDBytes = 253
	// sameFor bounds how old the times are of an answer that a caller has, and that is still current.
	sameFor = 5 * time.Minute
)

// catalogPage is a rest.Catalog whose consumers are encoded already.
type catalogPage struct {
	rest.Evaluated
	Consumers []json.RawMessage `json:"consumers"`
	Continue  string            `json:"continue,omitempty"`
}

// allCatalogs answers GET /api/catalog with a page of the list.
func (s *Server) allCatalogs(w http.ResponseWriter, r *http.Request, snapshot *table.Snapshot) {
	limit := rest.DefaultCatalogLimit
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > rest.MaxCatalogLimit {
			Problem(w, http.StatusBadRequest, fmt.Sprintf("limit=%.64q: write 1 to %d", text, rest.MaxCatalogLimit))
			return
		}
		limit = n
	}
	serveFew(w, r, s.readingCatalog, "catalogs", func() (*representation, int, error) {
		from, after := s.catalogs.forSnapshot(snapshot, 0), ""
		if value := r.URL.Query().Get("continue"); value != "" {
			var err error
			if from, after, err = s.catalogs.resume(value); errors.Is(err, errExpired) {
				return nil, http.StatusGone, err
			} else if err != nil {
				return nil, http.StatusBadRequest, err
			}
		}
		p, err := s.pageOf(&from, after, limit)
		return p, http.StatusInternalServerError, err
	})
}

// pageOf returns the consumers after the one with this ID.
func (s *Server) pageOf(from *published, after string, limit int) (*representation, error) {
	p := catalogPage{Evaluated: evaluated(from.Snapshot()), Consumers: []json.RawMessage{}}
	var identity []rest.CatalogOf
	size, last := 0, ""
	for id := range from.Snapshot().Entries.All {
		if id <= after && after != "" {
			continue
		}
		if len(p.Consumers) == limit || size >= maxPageBytes {
			p.Continue = s.catalogs.keep(from, last)
			break
		}
		of := rest.CatalogOf{ClusterID: id, Entries: entriesOf(from, id)}
		text, err := json.Marshal(of)
		if err != nil {
			return nil, err
		}
		p.Consumers, identity = append(p.Consumers, text), append(identity, withoutTimes(of))
		size, last = size+len(text), id
	}
	return represent(p, identity)
}

// oneCatalog answers GET /api/catalog/{clusterID}. A consumer that nobody knows has the entries of the
// default offer.
func (s *Server) oneCatalog(w http.ResponseWriter, r *http.Request, snapshot *table.Snapshot) {
	id := r.PathValue("clusterID")
	if len(id) > maxIDBytes {
		Problem(w, http.StatusBadRequest, fmt.Sprintf("a cluster ID has at most %d bytes", maxIDBytes))
		return
	}
	serveFew(w, r, s.readingCatalog, "catalogs", func() (*representation, int, error) {
		from := s.catalogs.forSnapshot(snapshot, 0)
		of := rest.CatalogOf{ClusterID: id, Entries: entriesOf(&from, id)}
		now := evaluated(snapshot)
		identity := withoutTimes(of)
		of.Evaluated = &now
		p, err := represent(of, identity)
		return p, http.StatusInternalServerError, err
	})
}

// serveFew answers with a representation of things, or with an error and its status, for as many at a time as the
// channel has room for.
func serveFew(
	w http.ResponseWriter, r *http.Request, running chan struct{}, things string, get func() (*representation, int, error),
) {
	leave, refused := enter(running, manyReaders(things)+tryAgain)
	if refused != nil {
		problemOf(w, refused)
		return
	}
	defer leave()
	p, status, err := get()
	if err != nil {
		Problem(w, status, err.Error())
		return
	}
	p.serve(w, r)
}

// withoutTimes returns the catalog without what changes with each evaluation: a caller that has the same has
// a current answer, unless its times are older than sameFor.
func withoutTimes(of rest.CatalogOf) rest.CatalogOf {
	of.Entries = slices.Clone(of.Entries)
	for i := range of.Entries {
		e := &of.Entries[i]
		e.ObservedTime.Time, e.ValidUntil.Time = e.ObservedTime.Truncate(sameFor), time.Time{}
	}
	return of
}

// shownToAnyone answers GET /api/catalog for a caller without credentials. All callers share the answer.
func (s *Server) shownToAnyone(w http.ResponseWriter, r *http.Request, snapshot *table.Snapshot) {
	p, err := s.catalogs.forSnapshot(snapshot, publicAge).public()
	if err != nil {
		Problem(w, http.StatusInternalServerError, "the catalog cannot be encoded")
		return
	}
	p.serve(w, r)
}

// entriesOf returns the entries of a consumer. For an unknown consumer, it returns the entries of any
// other unknown one.
func entriesOf(from *published, id string) []rest.CatalogEntry {
	entries := from.Of(id)
	all := make([]rest.CatalogEntry, len(entries))
	for i := range entries {
		e := &entries[i]
		all[i] = rest.CatalogEntry{OfferStatus: catalog.StatusOf(id, e, from.observed), Fit: e.Fit()}
	}
	return all
}

// publicCatalog returns the words of the classes that any cluster may ask for once it is peered. Classes
// for selected consumers, and hidden ones, are not in it.
func publicCatalog(from *catalog.Catalog) rest.PublicCatalog {
	all := rest.PublicCatalog{Classes: []rest.PublicClass{}}
	entries := from.Of("")
	for i := range entries {
		entry := catalog.StatusOf("", &entries[i], time.Time{})
		all.Classes = append(all.Classes, publicClass(&entry))
	}
	return all
}

// publicClass returns what a stranger may see of an Offer.
func publicClass(o *v1alpha1.OfferStatus) rest.PublicClass {
	return rest.PublicClass{Class: o.Class, CatalogWords: o.CatalogWords, Price: o.Price}
}
