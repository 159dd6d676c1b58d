package leading

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/internal/kube"
)

// calls runs a controller with these sources for an hour, and returns when Reconcile was called.
func calls(t *testing.T, meanwhile func(), sources ...source.Source) (at []time.Duration) {
	t.Helper()
	start := time.Now()
	c := Controller{Name: t.Name(), Sources: sources, Reconciler: reconcile.Func(
		func(context.Context, reconcile.Request) (reconcile.Result, error) {
			at = append(at, time.Since(start))
			return reconcile.Result{}, nil
		})}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	synctest.Wait()
	meanwhile()
	time.Sleep(time.Hour) //nolint:forbidigo // the clock of the bubble
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return at
}

func TestARequestIsReconciledAtTheEarliestOfItsTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := reconcile.Request{NamespacedName: types.NamespacedName{Name: "one"}}
		trigger := NewTrigger(0, Single(one.NamespacedName))
		got := calls(t, func() {
			trigger.EnqueueAfter(time.Minute, one)
			trigger.EnqueueAfter(time.Second, one)
			trigger.EnqueueAfter(2*time.Minute, one)
		}, trigger)
		if diff := cmp.Diff([]time.Duration{0, time.Second}, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestNothingIsReconciledBeforeTheListsAndTheLogSaysWhatTheyWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
		things := kube.Kind{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}}
		lists := Lists{
			Informers: kube.CRDInformers{kube.NewCRDInformer(nil, things, func() {}, log)}, Waiting: "Nothing is done yet", Log: log,
		}
		trigger := NewTrigger(0, Single(types.NamespacedName{Name: "one"}))
		if got := calls(t, func() {}, trigger, lists); len(got) > 0 {
			t.Errorf("Reconcile was called after %v", got)
		}
		want := `"level"=0 "msg"="Nothing is done yet" "waitingFor"="objects of things.example.com"`
		if len(lines) != 12 || slices.ContainsFunc(lines, func(line string) bool { return line != want }) {
			t.Errorf("%d lines in an hour: %q", len(lines), lines)
		}
	})
}
