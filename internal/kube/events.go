package kube

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"proffer.dev/proffer/internal/visible"
)

// EventEmitter records Events with one action. It shows what is not visible in their notes, which repeat
// texts of consumers, and cuts them to MaxNote.
type EventEmitter struct {
	Recorder events.EventRecorder
	Action   string
}

// Emit records an Event about the object. The type is one of corev1.EventTypeNormal and
// corev1.EventTypeWarning.
func (e EventEmitter) Emit(about runtime.Object, eventType, reason, note string) {
	e.Recorder.Eventf(about, nil, eventType, reason, e.Action, "%s", Shorten(visible.Escape(note, ""), MaxNote))
}
