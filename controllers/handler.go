package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// handle tells of each object that is there and of each that is gone. An object that was replaced by another of its name while the
// watch was away comes as an update; it is told as one gone and one there.
func handle[T metav1.Object](set, remove func(T)) toolscache.ResourceEventHandler {
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
			// The last state that was seen, when the deletion itself was missed.
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if o, ok := obj.(T); ok {
				remove(o)
			}
		},
	}
}
