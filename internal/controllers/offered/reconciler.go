package offered

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/leading"
)

// Writer writes the record. It is work for the leader, because one writer is enough. Two writers
// would be harmless: they add names, remove only a class whose time is over, and lack at most nodes
// of former policies, whose grants count on all nodes then.
type Writer struct{ *Record }

// Start writes until the context ends, and can be started again. It begins with what is not on
// record yet.
func (w Writer) Start(ctx context.Context) error {
	c := leading.Controller{
		Name: "offered", Reconciler: &reconciler{Record: w.Record}, Sources: []source.Source{w.requests}, Log: w.log,
	}
	return c.Start(ctx)
}

// reconciler writes the record during one term.
type reconciler struct {
	*Record
	// text identifies what is on record.
	text string
	// resumed is set once the consumers that an earlier leader recorded are known.
	resumed bool
}

// Reconcile writes what is wanted, unless it is on record.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if err := r.resume(ctx); err != nil {
		return leading.Written(ctx, fmt.Errorf("reading the record of offered resources: %w", err))
	}
	wanted := r.wanted()
	text := wanted.text()
	if text != r.text {
		if err := r.write(ctx, wanted); err != nil {
			return leading.Written(ctx, fmt.Errorf("writing the record of offered resources: %w", err))
		}
	}
	r.text = text
	return reconcile.Result{RequeueAfter: day}, nil
}

// resume reads once which consumers are to be removed from external sources if they are gone.
func (r *reconciler) resume(ctx context.Context) error {
	if r.resumed || r.Monitors == nil {
		return nil
	}
	_, recorded, err := r.get(ctx)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	r.Monitors.Resume(recorded.asked)
	r.resumed = true
	return nil
}

// write writes what is wanted, unless it is on record.
func (r *Record) write(ctx context.Context, wanted wanted) error {
	object, recorded, err := r.get(ctx)
	if apierrors.IsNotFound(err) {
		if len(wanted.names.byClass)+len(wanted.asked)+len(wanted.nodes) == 0 {
			return nil
		}
		if err := r.create(ctx); err != nil {
			return err
		}
		object, recorded, err = r.get(ctx)
	}
	if err != nil {
		return err
	}
	if !wanted.change(&recorded) {
		r.complain()
	}
	if !recorded.encode(object) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kube.APITimeout)
	defer cancel()
	if err := r.writer.Update(ctx, object); err != nil {
		return err
	}
	r.log.Info("Updated the record of what is offered", "classes", len(recorded.names.byClass),
		"withdrawn", len(recorded.withdrawn))
	return nil
}

// create creates an empty record, unless it exists. It uses apply, because RBAC can restrict apply
// to a name, but not a create request.
func (r *Record) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kube.APITimeout)
	defer cancel()
	empty := corev1apply.ConfigMap(r.key.Name, r.key.Namespace)
	if err := r.writer.Apply(ctx, empty, client.FieldOwner(kube.FieldManager)); err != nil {
		return fmt.Errorf("making the ConfigMap: %w", err)
	}
	return nil
}
