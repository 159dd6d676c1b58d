// Package offered keeps a record of the resources that are offered, by class, in a ConfigMap that
// outlives policies. A process that starts learns from it what a policy offered that is gone. A class
// that no policy serves leaves the record when no consumer is owed a 0 any longer.
package offered

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/leading"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

const (
	// ConfigMap is the name of the record of what was offered, in the namespace of the Grants.
	ConfigMap = "proffer-offered"
	// dataKey is the key of the names in the ConfigMap, withdrawnKey the key of the withdrawals, askedKey the key
	// of the consumers that external sources were asked about, and nodesKey the key of the nodes that policies grant
	// from. An earlier version ignores the keys that it does not know.
	dataKey      = "offered.json"
	withdrawnKey = "withdrawn.json"
	askedKey     = "asked.json"
	nodesKey     = "nodes.json"

	// period is the minimum time between two writes of new names.
	period = 50 * time.Millisecond
	// laterAfter delays what changes of withdrawals, and of the consumers that external sources were asked
	// about. Until withdrawals are written, a restart takes more to have been offered than was.
	laterAfter = time.Second
	// retryAfter is the wait after a failed read.
	retryAfter = 5 * time.Second
)

// +kubebuilder:rbac:roleName=proffer-grants,namespace=proffer-system,groups="",resources=configmaps,resourceNames=proffer-offered,verbs=get;create;update;patch

// Monitors knows whom external sources were asked about, by address. The first consumers of a list matter
// most. Resume adds those that an earlier leader recorded.
type Monitors interface {
	Asked() map[string][]string
	Resume(asked map[string][]string)
}

// Record is the record of the resources that are offered, or were and are still owed as 0. Every replica
// reads it once, and the leader writes it.
type Record struct {
	// Monitors is nil, or set before the Writer starts.
	Monitors Monitors

	reader client.Reader
	writer client.Writer
	key    client.ObjectKey
	// requests has the one request of the controller that writes the record.
	requests *leading.Trigger
	now      func() time.Time
	log      logr.Logger

	// read is its content when this process started; it is set before done is closed.
	read content
	done chan struct{}

	mu sync.Mutex
	// seen has what the policies of the latest snapshot offer, and what those before offered in the
	// classes that it serves or still owes.
	seen resourceNames
	// served holds the names that the policies of the latest snapshot have offered.
	served offeredNames
	// nodes are of the policies and the former ones of the latest snapshot.
	nodes  granterOffers
	latest *table.Snapshot
	full   sync.Once
	// nodesFull is for the nodes what full is for the names.
	nodesFull sync.Once
}

// NewRecord returns a Record that is empty until Start has read the ConfigMap.
func NewRecord(reader client.Reader, writer client.Writer, namespace string, log logr.Logger) *Record {
	key := client.ObjectKey{Namespace: namespace, Name: ConfigMap}
	return &Record{
		reader: reader, writer: writer, key: key, requests: leading.NewTrigger(period, leading.Single(key)), now: time.Now,
		log: log.WithValues("configmap", key), done: make(chan struct{}),
	}
}

// Name implements toolscache.DoneChecker.
func (r *Record) Name() string { return "record of what was offered" }

// Done implements toolscache.DoneChecker: it is closed once the record is read.
func (r *Record) Done() <-chan struct{} { return r.done }

// Start reads the record once, and retries until it succeeds or the context ends.
func (r *Record) Start(ctx context.Context) error {
	// It fails only with the error of the context.
	_ = wait.PollUntilContextCancel(ctx, retryAfter, true, func(ctx context.Context) (done bool, err error) {
		_, read, err := r.get(ctx)
		if err == nil || apierrors.IsNotFound(err) {
			r.read = read
			close(r.done)
			return true, nil
		}
		if ctx.Err() == nil {
			r.log.Error(err, "Cannot read the record of offered resources; nothing is offered until it is read")
		}
		return false, nil
	})
	return nil
}

// get returns the ConfigMap and what it records.
func (r *Record) get(ctx context.Context) (*corev1.ConfigMap, content, error) {
	ctx, cancel := context.WithTimeout(ctx, kube.APITimeout)
	defer cancel()
	var object corev1.ConfigMap
	if err := r.reader.Get(ctx, r.key, &object); err != nil {
		return nil, content{}, err
	}
	var recorded content
	names, err := parse[map[string][]string](object.Data[dataKey])
	if err != nil {
		r.log.Error(err, "The record of offered resources is corrupt; starting a new one", "key", dataKey)
	}
	recorded.names = boundNames(names)
	if recorded.withdrawn, err = parse[withdrawals](object.Data[withdrawnKey]); err != nil {
		r.log.Error(err, "The record of withdrawn classes is corrupt; starting a new one", "key", withdrawnKey)
	}
	if recorded.asked, err = parse[askedConsumers](object.Data[askedKey]); err != nil {
		r.log.Error(err, "The record of consumers of external sources is corrupt; starting a new one", "key", askedKey)
	}
	if recorded.nodes, err = parse[granterOffers](object.Data[nodesKey]); err != nil {
		r.log.Error(err, "The record of the nodes of policies is corrupt; starting a new one", "key", nodesKey)
	}
	return &object, recorded, nil
}

// Former returns the policies on record that records of grants name. It may be called once Done is closed.
func (r *Record) Former(
	named map[string]struct{}, parse func(*v1alpha1.ResourcePolicy) *offer.Policy,
) []offer.Policy {
	return r.read.nodes.policies(named, parse)
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
	return slices.Concat(statuses, r.read.names.retired(statuses, unwritten, r.read.withdrawn))
}

// Note notes what the policies of the snapshot offer, and what is still owed. A dry run offers nothing.
func (r *Record) Note(s *table.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	served := offeredNames{}
	for i := range s.Policies {
		p, report := &s.Policies[i], s.Reports[s.Policies[i].Name]
		if p.Parsed == nil || report == nil || report.Outcome == offer.DryRun {
			continue
		}
		class := p.Parsed.Class
		all, _ := table.AddNames(p.Offered, report.Offered, v1alpha1.MaxOfferedResources)
		r.add(class, all)
		if served[class] == nil {
			served[class] = map[string][]string{}
		}
		served[class][p.Name] = all
	}
	before, servedBefore := r.latest, r.served
	r.latest, r.served = s, served
	switch {
	case before == nil:
		r.noteNodes(s, r.read.nodes)
	case !samePolicies(before, s):
		r.noteNodes(s, r.nodes)
		r.requests.Wake()
	}
	anyNames := func(_, _ map[string][]string) bool { return true }
	if before == nil || !maps.EqualFunc(served, servedBefore, anyNames) {
		r.requests.Wake()
	}
	sameNames := func(a, b map[string][]string) bool { return maps.EqualFunc(a, b, slices.Equal) }
	if before == nil || !maps.EqualFunc(served, servedBefore, sameNames) ||
		!sameOffers(before, s) && (leavesAny(before, servedBefore) || leavesAny(s, served)) {
		r.WriteLater()
	}
}

// noteNodes notes the nodes that the policies of the snapshot grant from.
func (r *Record) noteNodes(s *table.Snapshot, before granterOffers) {
	var full bool
	if r.nodes, full = granterOffersIn(s, before); full {
		r.nodesFull.Do(func() {
			r.log.Info("The record of the nodes that policies grant from is full: a grant whose policy is edited or deleted "+
				"may count on all nodes after the operator restarts", "maxBytes", maxNodesBytes)
		})
	}
}

// WriteLater schedules a write of what has changed. It never blocks.
func (r *Record) WriteLater() {
	r.requests.EnqueueAfter(laterAfter, reconcile.Request{NamespacedName: r.key})
}

func (r *Record) add(class string, names []string) {
	more, room := r.seen.add(class, names)
	if !room {
		r.complain()
	}
	if more {
		r.requests.Wake()
	}
}

func (r *Record) complain() {
	r.full.Do(func() {
		r.log.Info("The record of offered resources is full: a resource that is not recorded is not withdrawn with an "+
			"explicit 0 if its policy is deleted and the operator restarts",
			"maxClasses", maxClasses, "maxNamesOfAClass", maxNames, "maxBytes", maxBytes)
	})
}

// wanted returns what must be on record.
func (r *Record) wanted() wanted {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := wanted{content: content{nodes: r.nodes}, served: r.served, now: r.now()}
	if r.Monitors != nil {
		w.asked = boundAsked(r.Monitors.Asked())
	}
	if r.latest != nil {
		w.withdrawn, w.owed = withdrawnIn(r.latest, r.served)
		for class := range r.seen.byClass {
			if !has(w.served, class) && !has(w.owed, class) {
				r.seen.remove(class)
			}
		}
	}
	w.names.byClass = maps.Clone(r.seen.byClass)
	for class := range w.owed { // This process may have seen only their zeros.
		w.names.add(class, r.read.names.byClass[class])
	}
	for class := range w.served {
		w.names.add(class, r.read.names.byClass[class])
		of, listed := w.withdrawn[class]
		for _, name := range w.names.byClass[class] {
			if !w.served.offers(class, name) {
				of.Dropped = append(of.Dropped, name)
			}
		}
		if listed || len(of.Dropped) > 0 && !has(w.owed, class) {
			of.Served = true
			w.withdrawn[class] = of
		}
	}
	return w
}
