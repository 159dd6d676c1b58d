package orchestration

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/kube/restore"
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

// statusWrite is the write of a status.
type statusWrite struct {
	kind     string
	resource schema.GroupVersionResource
	// object has the status to write.
	object client.Object
	pacer  *restore.Pacer
	// changed is set unless the write only renews measurements, which restores nothing. content is what
	// the pacer compares.
	changed bool
	content string
}

// record writes the statuses of Orchestrations that are due. It returns the Orchestrations whose choices
// are recorded.
func (r *reconciler) record(ctx context.Context, p *plan, writes *outcome) (recorded map[string]bool) {
	recorded = map[string]bool{}
	for _, o := range p.orchestrations {
		name, before, status := o.object.Name, &o.object.Status, p.statuses[o.object.Name]
		if !ofOrchestrations.due(before, status) {
			recorded[name] = true
			continue
		}
		next := o.object.DeepCopy()
		next.Status = *status
		after := r.writeStatus(ctx, statusWrite{
			kindStatus, orchestrations, next, r.statuses,
			!ofOrchestrations.same(before, status), ofOrchestrations.content(o.object.UID, status),
		}, writes)
		if after == nil {
			continue
		}
		r.events.chosen(o.object, status)
		r.caches.orchestrations.Wrote(after)
		recorded[name] = true
	}
	return recorded
}

// recordChoices writes the statuses of ProviderChoices that are due.
func (r *reconciler) recordChoices(ctx context.Context, p *plan, writes *outcome) {
	for _, c := range p.choices {
		before := &c.object.Status
		if !ofChoices.due(before, c.status) {
			continue
		}
		next := c.object.DeepCopy()
		next.Status = *c.status
		after := r.writeStatus(ctx, statusWrite{
			kindChoice, providerChoices, next, r.choices,
			!ofChoices.same(before, c.status), ofChoices.content(c.object.UID, c.status),
		}, writes)
		if after != nil {
			r.caches.choices.Wrote(after)
		}
	}
}

// writeStatus writes a status, and returns the object as it is then, nil if it is not written.
func (r *reconciler) writeStatus(ctx context.Context, s statusWrite, writes *outcome) *unstructured.Unstructured {
	key := klog.KObj(s.object).String()
	if s.changed && s.pacer.Wait(key, s.content, time.Now()) > 0 || !r.Holding() || ctx.Err() != nil {
		writes.left = true
		return nil
	}
	after, err := r.updateStatus(ctx, s)
	r.writes.Count(ctx, s.kind, err)
	switch {
	case err == nil:
	case s.kind == kindChoice && kube.RefusedContent(err):
		return nil // Its consumer has made it too large. The others do not wait for it.
	default:
		writes.add(fmt.Errorf("writing the status of %s %s: %w", s.kind, key, err))
		return nil
	}
	if s.changed {
		s.pacer.Wrote(key, s.content, "", time.Now())
	}
	return after
}

// updateStatus writes the status of an object, of the version that was read.
func (r *reconciler) updateStatus(ctx context.Context, s statusWrite) (*unstructured.Unstructured, error) {
	u, err := kube.Encode(v1alpha1.GroupVersion.WithKind(s.kind), s.object)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, kube.APITimeout)
	defer cancel()
	api := r.Client.Resource(s.resource).Namespace(s.object.GetNamespace())
	return api.UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: proffer})
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
		after, err := r.write(ctx, next)
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

// write makes one write, of the version that it was planned for. It returns the object as it is then,
// nil for one that is deleted.
func (r *reconciler) write(ctx context.Context, w write) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, kube.APITimeout)
	defer cancel()
	api := r.Client.Resource(liqo.NamespaceOffloadings).Namespace(w.namespace)
	switch w.action {
	case create:
		return api.Create(ctx, w.object(), metav1.CreateOptions{FieldManager: proffer})
	case update:
		return kube.MergePatch(ctx, api, offloadingName, w.patch())
	default:
		at := metav1.Preconditions{UID: &w.have.uid, ResourceVersion: &w.have.version}
		return nil, client.IgnoreNotFound(api.Delete(ctx, offloadingName, metav1.DeleteOptions{Preconditions: &at}))
	}
}
