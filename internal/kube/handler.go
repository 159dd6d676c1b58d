package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OnEvents returns an event handler that calls set for each object that exists or changes, and
// remove for each that is gone. An object that was replaced by another of its name while the watch
// was interrupted arrives as an update: remove is called with the old one, then set with the new.
func OnEvents[T metav1.Object](set, remove func(T)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if o, ok := obj.(T); ok {
				set(o)
			}
		},
		UpdateFunc: func(was, is any) {
			before, hadBefore := was.(T)
			now, ok := is.(T)
			if !ok {
				return
			}
			if hadBefore && before.GetUID() != now.GetUID() {
				remove(before)
			}
			set(now)
		},
		DeleteFunc: func(obj any) {
			// The last known state, if the deletion itself was missed.
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if o, ok := obj.(T); ok {
				remove(o)
			}
		},
	}
}

// ListThenWatch has an informer or a reflector request a list and follow the changes from there, even where the API
// server could stream the objects (WatchList).
type ListThenWatch struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported is called by client-go, see k8s.io/client-go/util/watchlist.
func (ListThenWatch) IsWatchListSemanticsUnSupported() bool { return true }

// InformerOf returns the informer of a kind of ours. It does not wait for it.
func InformerOf(informers cache.Informers, of client.Object) (cache.Informer, error) {
	informer, err := informers.GetInformer(context.Background(), of, cache.BlockUntilSynced(false))
	switch {
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("install the CRDs first, with kubectl apply -k config/crd: %w", err)
	case err != nil:
		return nil, fmt.Errorf("watching %T: %w", of, err)
	}
	return informer, nil
}
