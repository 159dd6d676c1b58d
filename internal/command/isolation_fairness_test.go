package command

import (
	"fmt"
	"slices"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test"
)

const (
	// flooding is the number of slices in which a consumer keeps granting itself more, eight at a
	// time.
	flooding = 500
	// probes is how many answers to another consumer's slices are timed.
	probes = 20
	// wait is how long another consumer's slice may wait in the operator. roundTrips is the number
	// of requests to the API server until the answer is visible: the slice arrives over the watch,
	// its Grant and its answer are written, and it is read. Beside the flood of a machine with other work
	// it takes up to 25. Waiting for the slices of the flood would take a thousand.
	wait, roundTrips = 100 * time.Millisecond, 60
)

// Without the guards, one consumer keeps the operator writing answers. Another consumer's slice is
// answered as fast as without that load, apart from slower requests to the API server.
func TestABusyConsumerDoesNotDelayTheOthers(t *testing.T) {
	m := newMultitenant(t, false)
	m.startWithGold()
	m.awaitProbe()
	quiet, trip := m.timeAnswers("quiet")
	t.Logf("an answer takes %v, a request %v", quiet, trip)

	var asking errgroup.Group
	asking.SetLimit(8)
	all := make([]*authv1beta1.ResourceSlice, flooding)
	for i := range all {
		all[i] = replicaOf("rome", fmt.Sprint("flood-", i), "gold", "1m")
		asking.Go(func() error { return m.consumers["rome"].Create(t.Context(), all[i]) })
	}
	test.Must(m.t, asking.Wait())
	over := make(chan struct{})
	var flood errgroup.Group
	for first := range 8 {
		flood.Go(func() error {
			for {
				for i := first; i < flooding; i += 8 {
					select {
					case <-over:
						return nil
					default:
					}
					if err := m.writeStatus(m.consumers["rome"], keyOf(all[i]), grants("999")); err != nil {
						return err
					}
				}
			}
		})
	}
	busy, trip := m.timeAnswers("busy")
	close(over)
	test.Must(m.t, flood.Wait())
	t.Logf("while %d slices are forged, an answer takes %v, a request %v", flooding, busy, trip)
	if limit := wait + roundTrips*trip; busy > limit {
		t.Errorf("an answer takes %v, want %v at most", busy, limit)
	}
}

// timeAnswers returns two medians: the time from the authentication of another consumer's slice to
// its answer, and the duration of a write to the API server meanwhile.
func (m *multitenant) timeAnswers(name string) (answer, trip time.Duration) {
	m.t.Helper()
	var answers, trips []time.Duration
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	m.create(config)
	for i := range probes {
		s := m.askOnly("oslo", fmt.Sprint(name, "-", i), spare, "1m")
		m.authenticate(s)
		began := time.Now()
		for {
			now, err := m.get(keyOf(s))
			test.Must(m.t, err)
			if sliceStateOf(now).status != "" {
				break
			}
		}
		answers = append(answers, time.Since(began))
		began = time.Now()
		test.Must(m.t, m.admin.Patch(m.t.Context(), config, patchOf(object{"data": object{"i": fmt.Sprint(i)}})))
		trips = append(trips, time.Since(began))
	}
	test.Must(m.t, client.IgnoreNotFound(m.admin.Delete(m.t.Context(), config)))
	slices.Sort(answers)
	slices.Sort(trips)
	return answers[probes/2], trips[probes/2]
}
