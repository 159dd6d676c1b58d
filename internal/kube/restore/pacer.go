// Package restore paces the writes with which the operator restores objects that other clients
// change. The first restore follows the change immediately. If the other client changes the object
// again, each restore waits twice as long as the one before, so that two writers that do not know of
// each other do not keep the API server busy. A write of something new never waits.
package restore

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/internal/kube"
)

const (
	// firstDelay is the minimum time between a write and the first write that restores it. It doubles
	// with each further one, up to MaxDelay.
	firstDelay = 50 * time.Millisecond
	// MaxDelay is the longest time between two writes that restore an object.
	MaxDelay = time.Minute
	// calmPeriod is the time for which an object must stay as it was written before the delay starts at
	// its minimum again.
	calmPeriod = 5 * time.Minute
	// noticeInterval is the minimum time between two log lines about objects of one kind.
	noticeInterval = time.Minute
)

// Restores counts restored objects by kind. It is a prometheus.Collector.
type Restores struct{ *prometheus.CounterVec }

// New returns a Restores that counts none yet.
func New() Restores {
	return Restores{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "proffer_restores_total",
		Help: "Objects of the operator that other clients changed and the operator restored, by kind.",
	}, []string{"kind"})}
}

// Pacer returns a Pacer for objects of a kind. Kinds are few: each is a label of the metric.
func (r Restores) Pacer(kind string, log logr.Logger) *Pacer {
	return &Pacer{
		kind: kind, restores: r.WithLabelValues(kind), log: log,
		notices: rate.Sometimes{Interval: noticeInterval}, byObject: map[string]write{},
	}
}

// Pacer paces the writes to objects of a kind. It is safe for concurrent use.
type Pacer struct {
	kind     string
	restores prometheus.Counter
	log      logr.Logger
	notices  rate.Sometimes

	mu sync.Mutex
	// byObject has the last write to each object within calmPeriod.
	byObject map[string]write
	// swept is the time at which the older ones were last removed.
	swept time.Time
}

// write is a write that succeeded.
type write struct {
	content [sha256.Size]byte
	at      time.Time
	// delay is the time until the same content may be written again.
	delay time.Duration
}

// Wait returns how long a write of this content to the object has to wait, 0 to write now. Content is
// all that the write sets, without times that change with each write. It only waits if the last write
// set the same content, which another client must have changed since.
func (p *Pacer) Wait(object, content string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.byObject[object]
	if !known || last.isCalm(now) || last.content != sha256.Sum256([]byte(content)) {
		return 0
	}
	return max(0, last.delay-now.Sub(last.at))
}

// Wrote records a write that succeeded, and reports whether it restored the object. The manager changed
// the object before, see LastManager; it is empty if not known.
func (p *Pacer) Wrote(object, content, manager string, now time.Time) (restored bool) {
	next := write{sha256.Sum256([]byte(content)), now, firstDelay}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.swept) >= calmPeriod {
		maps.DeleteFunc(p.byObject, func(_ string, last write) bool { return last.isCalm(now) })
		p.swept = now
	}
	if last, known := p.byObject[object]; known && !last.isCalm(now) {
		next.delay = last.delay
		if restored = last.content == next.content; restored {
			next.delay = min(2*last.delay, MaxDelay)
		}
	}
	p.byObject[object] = next
	if restored {
		p.restores.Inc()
		p.notices.Do(func() {
			p.log.Info("Another client changed an object that the operator maintains, and the operator restored it; "+
				"further restores are not logged for a while", "kind", p.kind, "object", object,
				"changedBy", cmp.Or(manager, "unknown"), "nextRestoreAfter", next.delay, "silentFor", noticeInterval)
		})
	}
	return restored
}

func (w write) isCalm(now time.Time) bool { return now.Sub(w.at) >= calmPeriod }

// LastManager returns the field manager that changed the object last, apart from the operator and from
// writes of its status, empty if the object names none. One that only removes fields leaves no trace.
func LastManager(object metav1.Object) string {
	name, last := "", time.Time{}
	for _, m := range object.GetManagedFields() {
		if m.Manager != kube.FieldManager && m.Subresource == "" && m.Time != nil && !m.Time.Time.Before(last) {
			name, last = m.Manager, m.Time.Time
		}
	}
	return name
}
