package orchestration

import (
	"context"
	"fmt"
	"time"

	"proffer.dev/proffer/internal/kube"
)

// outcome collects what the writes of a pass have left to do.
type outcome struct {
	// left is set if a write has to wait, or met another version.
	left bool
	// first is the first error of count.
	first error
	count int
}

func (o *outcome) add(err error) {
	switch {
	case kube.Stale(err):
		o.left = true // The watch is a moment behind.
	case o.count == 0:
		o.first, o.count = err, 1
	default:
		o.count++
	}
}

func (o *outcome) err() error {
	if o.count <= 1 {
		return o.first
	}
	return fmt.Errorf("%d writes, the first: %w", o.count, o.first)
}

// record writes the statuses that are due. It returns the Orchestrations whose choices are recorded.
func (r *reconciler) record(ctx context.Context, p *plan, writes *outcome) (recorded map[string]bool) {
	recorded = map[string]bool{}
	for _, o := range p.orchestrations {
		name, status := o.object.Name, p.statuses[o.object.Name]
		if !due(&o.object.Status, status) {
			recorded[name] = true
			continue
		}
		// What only renews the measurements restores nothing.
		changed, content := !same(&o.object.Status, status), contentOf(o.object.UID, status)
		if changed && r.statuses.Wait(name, content, time.Now()) > 0 {
			writes.left = true
			continue
		}
		if !r.Holding() || ctx.Err() != nil {
			writes.left = true
			return recorded
		}
		writing, cancel := context.WithTimeout(ctx, kube.APITimeout)
		after, err := objectClient{r.Client}.writeStatus(writing, o.object, status)
		cancel()
		r.writes.Count(ctx, kindStatus, err)
		if err != nil {
			writes.add(fmt.Errorf("writing the status of Orchestration %s: %w", name, err))
			continue
		}
		if changed {
			r.statuses.Wrote(name, content, "", time.Now())
		}
		r.events.chosen(o.object, status)
		r.caches.orchestrations.Wrote(after)
		recorded[name] = true
	}
	return recorded
}

// apply writes the NamespaceOffloadings whose choice is recorded.
func (r *reconciler) apply(ctx context.Context, p *plan, recorded map[string]bool, writes *outcome) {
	until := r.Now().Add(observePeriod) // What has been read is old by then: the next pass goes on.
	for _, next := range p.writes {
		if r.Now().After(until) {
			writes.left = true
			return
		}
		content := next.content()
		_, exists := p.statuses[next.orchestration]
		if exists && !recorded[next.orchestration] || r.offloadings.Wait(next.namespace, content, time.Now()) > 0 {
			writes.left = true
			continue
		}
		if r.limiter.Wait(ctx) != nil || !r.Holding() {
			writes.left = true
			return
		}
		writing, cancel := context.WithTimeout(ctx, kube.APITimeout)
		after, err := objectClient{r.Client}.write(writing, next)
		cancel()
		r.writes.Count(ctx, kindOffloading, err)
		if err != nil {
			writes.add(fmt.Errorf("writing the NamespaceOffloading of %s: %w", next.namespace, err))
			continue
		}
		r.offloadings.Wrote(next.namespace, content, next.manager(), time.Now())
		if after != nil {
			r.caches.offloadings.Wrote(after)
		}
	}
}
