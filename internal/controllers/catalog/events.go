package catalog

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/table"
)

// Reasons of Events.
const (
	eventNotOurs   = "NotProffers"
	eventAmbiguous = "NotPublished"
	actionPublish  = "Publish"
)

// eventWriter emits one Event about each thing that keeps the catalog from being published. It is
// safe for concurrent use.
type eventWriter struct {
	emitter kube.EventEmitter

	mu sync.Mutex
	// foreigners are the objects that are not ours, and tenants the Tenants without a catalog.
	foreigners map[id]types.UID
	tenants    map[types.UID]struct{}
}

func newEvents(recorder events.EventRecorder) *eventWriter {
	return &eventWriter{
		emitter:    kube.EventEmitter{Recorder: recorder, Action: actionPublish},
		foreigners: map[id]types.UID{},
		tenants:    map[types.UID]struct{}{},
	}
}

// foreign reports an object that is in the place of one of ours.
func (w *eventWriter) foreign(o *wantedObject, have observed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.foreigners[o.id] == have.UID {
		return
	}
	w.foreigners[o.id] = have.UID
	w.emitter.Emit(&corev1.ObjectReference{
		APIVersion: o.resource().GroupVersion().String(), Kind: string(o.kind), Namespace: o.namespace, Name: o.name,
		UID: have.UID,
	}, corev1.EventTypeWarning, eventNotOurs, fmt.Sprintf(
		"Proffer publishes an object of this name, and does not change this one, which has no label %s=%s: "+
			"delete it, or give it another name",
		managedByLabel, proffer))
}

// forget has an object reported again when it comes back.
func (w *eventWriter) forget(i id) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.foreigners, i)
}

// unpublished reports the Tenants for which nothing is published.
func (w *eventWriter) unpublished(tenants []table.Tenant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := make(map[types.UID]struct{}, len(tenants))
	for _, t := range tenants {
		now[types.UID(t.UID)] = struct{}{}
		if _, known := w.tenants[types.UID(t.UID)]; known {
			continue
		}
		w.emitter.Emit(&corev1.ObjectReference{
			APIVersion: tenantAPIVersion, Kind: tenantKind, Namespace: t.Namespace, Name: t.Name, UID: types.UID(t.UID),
		}, corev1.EventTypeWarning, eventAmbiguous,
			"Neither the catalog nor a RoleBinding is written for this Tenant: its cluster ID must be a DNS label, and no "+
				"other Tenant may have the same cluster ID or namespace; leave one")
	}
	w.tenants = now
}
