package web

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"proffer.dev/proffer/internal/catalog"
	"proffer.dev/proffer/internal/table"
)

// The pages of a list are all of one snapshot, which is kept for readers of a part of it.
const (
	// maxKept bounds the snapshots that are kept.
	maxKept = 4
	// keptFor is the time for which a snapshot is kept after a page of it.
	keptFor = time.Minute
)

// The errors of a continue value.
var (
	errNoContinue = errors.New("continue is not a value of an answer: write it as the answer has it, or leave it out")
	errExpired    = errors.New("the list to continue is not kept any more, or another replica has it: " +
		"start again without continue")
)

// publicAge bounds how old the answer to strangers is: they cause at most one catalog in this time.
const publicAge = 5 * time.Second

// published is the catalog of one snapshot, computed once.
type published struct {
	*catalog.Catalog
	made time.Time
	// observed is the last time at which the snapshot was the current one.
	observed time.Time
	public   func() (*representation, error)
}

// catalogs holds the catalog of the latest requested snapshot, and the catalogs whose pages are being
// read.
type catalogs struct {
	// process distinguishes the values of this process from the values of others.
	process string
	shapes  catalog.Shapes
	now     func() time.Time

	mu     sync.Mutex
	latest *published
	kept   []keptCatalog
}

type keptCatalog struct {
	published
	until time.Time
}

func newCatalogs(shapes catalog.Shapes) *catalogs {
	return &catalogs{process: rand.Text(), shapes: shapes, now: time.Now}
}

// forSnapshot returns the catalog of the current snapshot, or one that was made at most maxAge ago.
func (c *catalogs) forSnapshot(snapshot *table.Snapshot, maxAge time.Duration) published {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	switch {
	case c.latest == nil || c.latest.Snapshot() != snapshot && now.Sub(c.latest.made) >= maxAge:
		worked := catalog.New(snapshot, c.shapes, nil) // The federation shows the providers.
		public := sync.OnceValues(func() (*representation, error) {
			all := publicCatalog(worked)
			return represent(all, all)
		})
		c.latest = &published{Catalog: worked, made: now, observed: now, public: public}
	case c.latest.Snapshot() == snapshot:
		c.latest.observed = now
	}
	return *c.latest
}

// keep keeps the catalog, and returns the value that continues its list after a consumer.
func (c *catalogs) keep(p *published, after string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = slices.DeleteFunc(c.kept, func(k keptCatalog) bool {
		return k.Catalog == p.Catalog || !c.now().Before(k.until)
	})
	if len(c.kept) == maxKept {
		c.kept = slices.Delete(c.kept, 0, 1) // The one that was read of the longest ago.
	}
	c.kept = append(c.kept, keptCatalog{*p, c.now().Add(keptFor)})
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s.%d.%s", c.process, p.Snapshot().Revision, after))
}

// resume returns the catalog to continue with, and after which consumer.
func (c *catalogs) resume(value string) (_ published, after string, _ error) {
	text, err := base64.RawURLEncoding.DecodeString(value)
	process, rest, isOurs := strings.Cut(string(text), ".")
	number, after, hasID := strings.Cut(rest, ".")
	revision, notNumber := strconv.ParseUint(number, 10, 64)
	if err != nil || !isOurs || !hasID || notNumber != nil {
		return published{}, "", errNoContinue
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kept {
		if process == c.process && k.Snapshot().Revision == revision && c.now().Before(k.until) {
			return k.published, after, nil
		}
	}
	return published{}, "", errExpired
}
