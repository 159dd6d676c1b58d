package external

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// maxProbe bounds how long the monitor may take to prove that it is silent about one consumer only.
const maxProbe = 5 * time.Second

// round is one reading about some consumers.
type round struct {
	book   *book
	counts *counts
	news   *news
	conn   monitorConnection
	// heard counts the responses, of whatever content.
	heard atomic.Int64
	// cancel ends what is being read.
	cancel context.CancelFunc

	mu sync.Mutex
	// left are the consumers to read, refused those whose answers cannot be used, lost is the error that
	// has ended the round.
	left    []string
	refused []string
	lost    error
}

// read reads about the consumers, a few at a time. It returns an error if the monitor is lost.
func (r *round) read(ctx context.Context, ids []string) error {
	ctx, r.cancel = context.WithCancel(ctx)
	defer r.cancel()
	r.left = ids
	var readers sync.WaitGroup
	for range min(maxReads, len(ids)) {
		readers.Go(func() {
			for id, ok := r.next(); ok; id, ok = r.next() {
				r.one(ctx, id)
			}
		})
	}
	readers.Wait()
	if r.lost != nil {
		return r.lost
	}
	return ctx.Err()
}

// next takes a consumer to read. There is none any more once the monitor is lost.
func (r *round) next() (id string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost != nil || len(r.left) == 0 {
		return "", false
	}
	id, r.left = r.left[0], r.left[1:]
	return id, true
}

// one reads about one consumer.
func (r *round) one(ctx context.Context, id string) {
	began, before := time.Now(), r.heard.Load()
	r.book.asking(id)
	amounts, err := r.conn.read(ctx, id)
	if ctx.Err() != nil {
		return
	}
	var gone lost
	switch {
	case !errors.As(err, &gone):
		r.heard.Add(1)
	case !gone.silent || r.heard.Load() == before && !r.responds(ctx, id):
		gone.began = began
		r.lose(gone)
		return
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
		r.mu.Lock()
		r.refused = append(r.refused, id)
		r.mu.Unlock()
	}
	if changed {
		r.news.note()
	}
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

func (r *round) lose(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost == nil {
		r.lost = err
		r.cancel()
	}
}
