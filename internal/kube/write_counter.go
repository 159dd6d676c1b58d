package kube

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// WriteCounter counts writes to the API server by their result: written, conflict or failed.
type WriteCounter struct{ *prometheus.CounterVec }

// NewWriteCounter returns a WriteCounter of this name. If kinds are given, it has a label for the kind too.
// Every counter exists from the start: one that first appears with its first failure would show no increase.
func NewWriteCounter(name, help string, kinds ...string) WriteCounter {
	labels := []string{"kind", "result"}
	if len(kinds) == 0 {
		labels, kinds = labels[1:], []string{""}
	}
	c := WriteCounter{prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)}
	for _, kind := range kinds {
		for _, result := range []string{"written", "conflict", "failed"} {
			c.counterOf(kind, result)
		}
	}
	return c
}

func (c WriteCounter) counterOf(kind, result string) prometheus.Counter {
	if kind == "" {
		return c.WithLabelValues(result)
	}
	return c.WithLabelValues(kind, result)
}

// Count counts a write to an object of a kind, empty for a counter without kinds. A write that fails because
// the term has ended does not count.
func (c WriteCounter) Count(ctx context.Context, kind string, err error) {
	switch {
	case err == nil:
		c.counterOf(kind, "written").Inc()
	case Stale(err):
		c.counterOf(kind, "conflict").Inc()
	case !errors.Is(ctx.Err(), context.Canceled):
		c.counterOf(kind, "failed").Inc()
	}
}
