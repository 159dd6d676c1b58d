// Package offered keeps a record of the resources that were ever offered, by class, in a ConfigMap
// that outlives policies. A process that starts learns from it what a policy offered that is gone.
package offered

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

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

const (
	// ConfigMap is the name of the record of what was offered, in the namespace of the Grants.
	ConfigMap = "proffer-offered"
	// fieldManager is who applies the ConfigMap.
	fieldManager = "proffer"
	// dataKey is its key in the ConfigMap.
	dataKey = "offered.json"

	// debouncePeriod is the debounce period of new names.
	debouncePeriod = 50 * time.Millisecond
	// conflictAfter is the wait after a conflict; retryAfter that after any other failed write or
	// read.
	conflictAfter = 500 * time.Millisecond
	retryAfter    = 5 * time.Second
	// apiTimeout bounds one read or write.
	apiTimeout = 10 * time.Second
)

// +kubebuilder:rbac:roleName=proffer-grants,namespace=proffer-system,groups="",resources=configmaps,resourceNames=proffer-offered,verbs=get;create;update;patch

// Record is the record of the resources that were ever offered. Every replica reads it once, and
// the leader adds to it.
type Record struct {
	reader    client.Reader
	writer    client.Writer
	key       client.ObjectKey
	debouncer *debounce.Debouncer
	log       logr.Logger

	// read is its content when this process started; it is set before done is closed.
	read resourceNames
	done chan struct{}

	mu sync.Mutex
	// seen is what this process saw offered, which is what it writes. edition counts its changes.
	seen    resourceNames
	edition int
	full    sync.Once
}

// NewRecord returns a Record that is empty until Start has read the ConfigMap.
func NewRecord(reader client.Reader, writer client.Writer, namespace string, log logr.Logger) *Record {
	key := client.ObjectKey{Namespace: namespace, Name: ConfigMap}
	return &Record{
		reader: reader, writer: writer, key: key, debouncer: debounce.New(debouncePeriod),
		log: log.WithValues("configmap", key), done: make(chan struct{}),
	}
}

// Name implements toolscache.DoneChecker.
func (r *Record) Name() string { return "record of what was offered" }

// Done implements toolscache.DoneChecker: it is closed once the record is read.
func (r *Record) Done() <-chan struct{} { return r.done }

// NeedLeaderElection is false: every replica needs the record.
func (r *Record) NeedLeaderElection() bool { return false }

// Start reads the record once, and retries until it succeeds or the context ends.
func (r *Record) Start(ctx context.Context) error {
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
			r.log.Error(err, "Cannot read the record of offered resources; nothing is offered until it is read")
		}
		retry.Reset(retryAfter)
	}
}

// get returns the ConfigMap and what it records.
func (r *Record) get(ctx context.Context) (*corev1.ConfigMap, resourceNames, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	var object corev1.ConfigMap
	if err := r.reader.Get(ctx, r.key, &object); err != nil {
		return nil, resourceNames{}, err
	}
	recorded, err := parse(object.Data[dataKey])
	if err != nil {
		r.log.Error(err, "The record of offered resources is corrupt; starting a new one", "key", dataKey)
	}
	return &object, recorded, nil
}

// Previous returns, for the first evaluation, what statuses record, and what was offered by
// policies that are gone. The unwritten are the classes of policies that have no status yet. It may
// be called once Done is closed.
func (r *Record) Previous(statuses []offer.PreviousOffers, unwritten []string) []offer.PreviousOffers {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range statuses {
		r.add(p.Class, p.Names) // A version without this record may have written the status.
	}
	return slices.Concat(statuses, r.read.retired(statuses, unwritten))
}

// Note adds the resources that the policies of the snapshot offer. A dry run offers nothing.
func (r *Record) Note(s *table.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range s.Policies {
		p, report := &s.Policies[i], s.Reports[s.Policies[i].Name]
		if p.Parsed == nil || report == nil || report.Outcome == offer.DryRun {
			continue
		}
		all, _ := table.AddNames(p.Offered, report.Offered, v1alpha1.MaxOfferedResources)
		r.add(p.Parsed.Class, all)
	}
}

func (r *Record) add(class string, names []string) {
	more, room := r.seen.add(class, names)
	if !room {
		r.complain()
	}
	if more {
		r.edition++
		r.debouncer.Wake()
	}
}

func (r *Record) complain() {
	r.full.Do(func() {
		r.log.Info("The record of offered resources is full: a resource that is not recorded is not withdrawn with an "+
			"explicit 0 if its policy is deleted and the operator restarts",
			"maxClasses", maxClasses, "maxNamesOfAClass", maxNames, "maxBytes", maxBytes)
	})
}

// wanted returns what must be on record, and its edition.
func (r *Record) wanted() (resourceNames, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return resourceNames{byClass: maps.Clone(r.seen.byClass)}, r.edition
}

// write adds to the record what it lacks.
func (r *Record) write(ctx context.Context, wanted resourceNames) error {
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
	if object.Data[dataKey], err = recorded.encode(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	if err := r.writer.Update(ctx, object); err != nil {
		return err
	}
	r.log.Info("Recorded resources that are offered for the first time", "classes", len(recorded.byClass))
	return nil
}

// create creates an empty record, unless it exists. It uses apply, because RBAC can restrict apply
// to a name, but not a create request.
func (r *Record) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	empty := corev1apply.ConfigMap(r.key.Name, r.key.Namespace)
	if err := r.writer.Apply(ctx, empty, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("making the ConfigMap: %w", err)
	}
	return nil
}

// Writer writes the record. It is work for the leader, because one writer is enough. Two writers
// would be harmless, since they only add names.
type Writer struct{ *Record }

// Start writes until the context ends, and can be started again. It begins with what is not on
// record yet.
func (w Writer) Start(ctx context.Context) error {
	later := time.AfterFunc(0, w.debouncer.Wake)
	defer later.Stop()
	written := 0
	for {
		if _, err := w.debouncer.Wait(ctx); err != nil {
			return nil // The context has ended: the normal end.
		}
		wanted, edition := w.wanted()
		if edition == written {
			continue
		}
		switch err := w.write(ctx, wanted); {
		case err == nil:
			written = edition
		case apierrors.IsConflict(err):
			later.Reset(conflictAfter)
		default:
			if ctx.Err() == nil {
				w.log.Error(err, "Cannot write the record of offered resources; will retry")
			}
			later.Reset(retryAfter)
		}
	}
}
