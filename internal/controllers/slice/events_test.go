package slice

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"

	"proffer.dev/proffer/internal/kube"
)

// TestAConsumerCausesFewEventsByWritingClassAfterClass reports the last class that it has written.
func TestAConsumerCausesFewEventsByWritingClassAfterClass(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	w, now := newEvents(recorder), time.Now()
	write := func(class string) (held bool) {
		s := known(t, "s", "a", 10)
		s.class = class
		return w.reportUnanswered((&trackedSlice{slice: s}).newEntry(), active, false, false, now)
	}
	expect := func(want ...string) {
		t.Helper()
		for _, class := range want {
			select {
			case got := <-recorder.Events:
				if text := "Warning NotServed No ResourcePolicy serves the class " + class + ": create one, unless another controller answers this class"; got != text {
					t.Errorf("got %q, want %q", got, text)
				}
			default:
				t.Errorf("there is no Event about %s", class)
			}
		}
		if len(recorder.Events) > 0 {
			t.Errorf("there is also %s", <-recorder.Events)
		}
	}
	for i := range 100 {
		if held := write(fmt.Sprint("class-", i)); held != (i >= eventBurst) {
			t.Errorf("Event %d is held back: %t", i, held)
		}
		w.reportUnanswered(&sliceEntry{slice: known(t, "s", "a", 10)}, active, true, false, now) // It is answered meanwhile.
	}
	expect("class-0", "class-1", "class-2", "class-3", "class-4")
	now = now.Add(eventInterval)
	write("g\u043eld\x1b[2J")
	write("g\u043eld\x1b[2J")
	expect(`"g\u043eld\x1b[2J"`)
}

func TestEventsShowWhatIsNotVisible(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	kube.EventEmitter{Recorder: recorder, Action: "Test"}.Emit(known(t, "s", "a", 10).object, "Normal", "Reason", "go\u200bld \x1b[2J\n%s")
	if got, want := <-recorder.Events, `Normal Reason go\u200bld \x1b[2J\n%s`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
