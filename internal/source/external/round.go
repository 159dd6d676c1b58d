package external

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// maxProbe bounds how long the monitor may take to prove that it is silent about one consumer only.
const maxProbe = 5 * time.Second

// round is one reading about some consumers.
type round struct {
	*source
	conn monitorConnection
	// heard counts the responses, of whatever content.
	heard atomic.Int64
}

// read reads about the consumers, a few at a time. It returns an error if the monitor is lost.
func (r *round) read(ctx context.Context, ids []string) error {
	readers, reading := errgroup.WithContext(ctx)
	readers.SetLimit(maxReads)
	for _, id := range ids {
		readers.Go(func() error { return r.one(reading, id) })
	}
	return cmp.Or(readers.Wait(), ctx.Err())
}

// one reads about one consumer, unless the context has ended. It returns an error if the monitor is lost.
func (r *round) one(ctx context.Context, id string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	began, before := time.Now(), r.heard.Load()
	r.book.asking(id)
	amounts, err := r.conn.read(ctx, id)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	gone, isLost := errors.AsType[lost](err)
	switch {
	case !isLost:
		r.heard.Add(1)
	case !gone.silent || r.heard.Load() == before && !r.responds(ctx, id):
		gone.began = began
		return gone
	}
	changed := false
	if err == nil {
		changed, err = r.book.note(id, amounts, time.Now())
	}
	if err == nil {
		r.counts.read.Add(1)
	} else {
		r.counts.refused.Add(1)
		changed = r.book.refuse(id, err.Error(), began, time.Now()) || changed
	}
	if changed {
		r.news.After(0)
	}
	return nil
}

// responds asks the monitor about another consumer than the one that it is silent about.
func (r *round) responds(ctx context.Context, silent string) bool {
	other := ""
	if all := r.book.all(); silent == "" {
		other = all[len(all)-1]
	}
	if other == silent {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, maxProbe)
	defer cancel()
	_, err := r.conn.read(ctx, other)
	if _, gone := errors.AsType[lost](err); gone {
		return false
	}
	r.heard.Add(1)
	return true
}
