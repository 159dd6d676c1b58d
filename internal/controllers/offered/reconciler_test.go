package offered

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/kubetest"
)

// recordObject returns the ConfigMap of the record.
func recordObject() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: ConfigMap}}
}

// readRecord returns the content and the version of the record, zero values if it does not exist.
func readRecord(t *testing.T) (names map[string][]string, version string) {
	t.Helper()
	object := recordObject()
	if err := kubetest.API(t).Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return nil, ""
	}
	recorded, err := parse[map[string][]string](object.Data[dataKey])
	test.Must(t, err)
	return boundNames(recorded).byClass, object.ResourceVersion
}

// awaitRecord waits until the record has exactly this content.
func awaitRecord(t *testing.T, want map[string][]string) {
	t.Helper()
	test.Eventually(t, func() string {
		got, _ := readRecord(t)
		return cmp.Diff(want, got)
	})
}

func TestConcurrentWritersOfTheRecordLoseNothing(t *testing.T) {
	var writers []*Record
	t.Cleanup(func() { kubetest.Remove(t, recordObject()) })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	want := map[string][]string{}
	for i := range 4 {
		r := NewRecord(kubetest.API(t), kubetest.API(t), metav1.NamespaceDefault, logr.Discard())
		writers = append(writers, r)
		var policies []table.Policy
		for k := range 5 {
			class := fmt.Sprintf("class-%d-%d", i, k)
			policies = append(policies, table.Policy{Name: "p", Parsed: &offer.Policy{Class: class}})
			r.Note(&table.Snapshot{
				Policies: policies,
				Result: &offer.Result{
					Offers: offer.Offers{Default: &offer.Entry{}}, Reports: map[string]*offer.Report{"p": {Offered: []string{"cpu"}}},
				},
			})
			want[class] = []string{"cpu"}
		}
	}
	for _, r := range writers {
		go func() { ended <- Writer{r}.Start(ctx) }()
	}
	awaitRecord(t, want)
	stop()
	for range writers {
		test.Check(t, <-ended)
	}
}

// failingReader returns err for the first reads, and NotFound afterwards.
type failingReader struct {
	client.Reader
	left int
	err  error
}

func (f *failingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	if f.left--; f.left >= 0 {
		return f.err
	}
	return apierrors.NewNotFound(corev1.Resource("configmaps"), ConfigMap)
}

func TestNothingIsOfferedBeforeTheRecordIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, failure := range []error{
			errors.New("the API server is away"),
			apierrors.NewForbidden(corev1.Resource("configmaps"), ConfigMap, errors.New("no role")),
		} {
			r := NewRecord(&failingReader{left: 2, err: failure}, nil, "n", logr.Discard())
			ended := make(chan error, 1)
			go func() { ended <- r.Start(t.Context()) }()
			for range 2 {
				synctest.Wait()
				select {
				case <-r.Done():
					t.Fatal("Done is closed before the record was read")
				default:
				}
				time.Sleep(retryAfter) //nolint:forbidigo // the clock of the bubble
			}
			<-r.Done()
			test.Check(t, <-ended)
		}
	})
}

func TestAReadOfTheRecordEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		r := NewRecord(&failingReader{left: 1 << 30, err: errors.New("away")}, nil, "n", logr.Discard())
		ended := make(chan error, 1)
		go func() { ended <- r.Start(ctx) }()
		synctest.Wait()
		stop()
		test.Check(t, <-ended)
	})
}

func TestPreviousAddsRetiredClassesToTheStatuses(t *testing.T) {
	r := NewRecord(nil, nil, "n", logr.Discard())
	statuses := []offer.PreviousOffers{{Policy: "p", Class: "gold", Names: []string{"cpu"}, Complete: true}}
	r.read.names = offeredOf(t, "gold: cpu", "silver: pods")
	got := r.Previous(statuses, nil)
	want := slices.Concat(statuses, []offer.PreviousOffers{{Class: "silver", Names: []string{"pods"}}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// The names in a status must be recorded, even if the policy no longer offers them.
	if wanted := r.wanted(); !slices.Equal(wanted.names.byClass["gold"], []string{"cpu"}) || len(wanted.names.byClass) != 1 {
		t.Errorf("wanted record %v", wanted.names.byClass)
	}
}
