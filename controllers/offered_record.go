package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/offer"
)

const (
	// OfferedConfigMap is the name of the record of what was offered, in the namespace of the Grants.
	OfferedConfigMap = "proffer-offered"
	// offeredKey is where it stands in the ConfigMap.
	offeredKey = "offered.json"

	// offeredBatch is the period in which new names are looked at once at most.
	offeredBatch = 50 * time.Millisecond
	// offeredConflict is how long a write waits that met a newer version; offeredRetry is how long one waits, or a read, that failed in any
	// other way.
	offeredConflict = 500 * time.Millisecond
	offeredRetry    = 5 * time.Second
	// offeredTimeout bounds one read and one write.
	offeredTimeout = 10 * time.Second
)

// offeredRecord is the record of what was ever offered, by class, in a ConfigMap that outlives policies: so a process that starts knows of
// what a policy offered that is gone. Every replica reads it once, and the leader adds to it.
type offeredRecord struct {
	reader    client.Reader
	writer    client.Writer
	key       client.ObjectKey
	debouncer *debounce.Debouncer
	log       logr.Logger

	// read is what stood in it when this process started; it is set before done is closed.
	read offered
	done chan struct{}

	mu sync.Mutex
	// seen is what this process saw offered, which is what it writes. edition counts how often that became more.
	seen    offered
	edition int
	full    sync.Once
}

func newOfferedRecord(reader client.Reader, writer client.Writer, namespace string, log logr.Logger) *offeredRecord {
	return &offeredRecord{
		reader: reader, writer: writer, key: client.ObjectKey{Namespace: namespace, Name: OfferedConfigMap}, debouncer: debounce.New(offeredBatch),
		log: log.WithValues("configmap", client.ObjectKey{Namespace: namespace, Name: OfferedConfigMap}), done: make(chan struct{}),
	}
}

// Name and Done make the record something to wait for.
func (r *offeredRecord) Name() string          { return "record of what was offered" }
func (r *offeredRecord) Done() <-chan struct{} { return r.done }

// NeedLeaderElection is false: every replica has to know.
func (r *offeredRecord) NeedLeaderElection() bool { return false }

// Start reads the record once, however long that takes.
func (r *offeredRecord) Start(ctx context.Context) error {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-retry.C:
		}
		_, read, err := r.get(ctx)
		if err == nil || apierrors.IsNotFound(err) {
			r.read = read
			close(r.done)
			return nil
		}
		if ctx.Err() == nil {
			r.log.Error(err, "Cannot read what was offered before; nothing is offered until that is known")
		}
		retry.Reset(offeredRetry)
	}
}

// get returns the ConfigMap and what it records.
func (r *offeredRecord) get(ctx context.Context) (*corev1.ConfigMap, offered, error) {
	ctx, cancel := context.WithTimeout(ctx, offeredTimeout)
	defer cancel()
	var object corev1.ConfigMap
	if err := r.reader.Get(ctx, r.key, &object); err != nil {
		return nil, offered{}, err
	}
	recorded, err := parseOffered(object.Data[offeredKey])
	if err != nil {
		r.log.Error(err, "The record of what was offered is not what was written; it begins anew", "key", offeredKey)
	}
	return &object, recorded, nil
}

// pasts returns, for the first evaluation, what statuses tell of, and what was offered by what has no status any more. Unwritten are the classes
// of policies that have no status yet. It may be called when Done is closed.
func (r *offeredRecord) pasts(statuses []offer.Past, unwritten []string) []offer.Past {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range statuses {
		r.add(p.Class, p.Names) // A version without the record may have written the status.
	}
	return slices.Concat(statuses, r.read.retired(statuses, unwritten))
}

// note adds what the policies of the list turned out to offer. A dry run offers nothing.
func (r *offeredRecord) note(list []policy, reports map[string]*offer.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list {
		p, report := list[i], reports[list[i].name]
		if p.parsed == nil || report == nil || report.Outcome == offer.DryRun {
			continue
		}
		p.addOffered(report.Offered)
		r.add(p.parsed.Class, p.offered)
	}
}

func (r *offeredRecord) add(class string, names []string) {
	more, room := r.seen.add(class, names)
	if !room {
		r.complain()
	}
	if more {
		r.edition++
		r.debouncer.Wake()
	}
}

func (r *offeredRecord) complain() {
	r.full.Do(func() {
		r.log.Info("No room to record all that is offered: what is beyond is not taken back by an explicit 0 if its policy is deleted and the operator restarts",
			"maxClasses", maxOfferedClasses, "maxNamesOfAClass", maxOfferedNames, "maxBytes", maxOfferedBytes)
	})
}

// wanted returns what has to be on record, and its edition.
func (r *offeredRecord) wanted() (offered, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return offered{byClass: maps.Clone(r.seen.byClass)}, r.edition
}

// write adds to the record what is not in it.
func (r *offeredRecord) write(ctx context.Context, wanted offered) error {
	object, recorded, err := r.get(ctx)
	if apierrors.IsNotFound(err) {
		if err := r.create(ctx); err != nil {
			return err
		}
		object, recorded, err = r.get(ctx)
	}
	if err != nil {
		return err
	}
	more, room := recorded.addAll(wanted)
	if !room {
		r.complain()
	}
	if !more {
		return nil
	}
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	if object.Data[offeredKey], err = recorded.encode(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, offeredTimeout)
	defer cancel()
	if err := r.writer.Update(ctx, object); err != nil {
		return err
	}
	r.log.Info("Recorded what is offered for the first time", "classes", len(recorded.byClass))
	return nil
}

// create makes an empty record, unless somebody else has made one. It is applied and not created, because who may apply can be held to a
// name.
func (r *offeredRecord) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, offeredTimeout)
	defer cancel()
	if err := r.writer.Apply(ctx, corev1apply.ConfigMap(r.key.Name, r.key.Namespace), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("making the ConfigMap: %w", err)
	}
	return nil
}

// offeredWriter brings the record up to date. It is work for the leader, since one writer is enough: two only ever add.
type offeredWriter struct{ *offeredRecord }

// Start writes until the context ends, and can be started again: then it looks first whether all is on record.
func (w offeredWriter) Start(ctx context.Context) error {
	later := time.AfterFunc(0, w.debouncer.Wake)
	defer later.Stop()
	written := 0
	for {
		if _, err := w.debouncer.Wait(ctx); err != nil {
			return nil // The context is over, which is how this ends.
		}
		wanted, edition := w.wanted()
		if edition == written {
			continue
		}
		switch err := w.write(ctx, wanted); {
		case err == nil:
			written = edition
		case apierrors.IsConflict(err):
			later.Reset(offeredConflict)
		default:
			if ctx.Err() == nil {
				w.log.Error(err, "Cannot record what is offered; it is tried again")
			}
			later.Reset(offeredRetry)
		}
	}
}
