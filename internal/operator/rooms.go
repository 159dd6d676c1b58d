package operator

import (
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"proffer.dev/proffer/internal/controllers/offered"
	"proffer.dev/proffer/internal/controllers/policy"
	"proffer.dev/proffer/internal/controllers/slice"
	"proffer.dev/proffer/internal/engine"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/source/consumers"
	"proffer.dev/proffer/internal/source/devices"
	"proffer.dev/proffer/internal/source/nodes"
	"proffer.dev/proffer/internal/table"
)

// room lists what one part of the operator is made of.
type room struct {
	// everywhere runs in every replica, and leading while this replica leads.
	everywhere, leading []manager.Runnable
	// sources must be complete before the first evaluation.
	sources []engine.Source
	// published is called after each evaluation, in the order of the rooms.
	published  []func(*table.Snapshot)
	collectors []prometheus.Collector
}

// and returns both rooms as one.
func (r room) and(next room) room {
	return room{
		everywhere: append(r.everywhere, next.everywhere...), leading: append(r.leading, next.leading...),
		sources: append(r.sources, next.sources...), published: append(r.published, next.published...),
		collectors: append(r.collectors, next.collectors...),
	}
}

// house holds what several rooms share.
type house struct {
	parts
	mgr       ctrl.Manager
	log       logr.Logger
	namespace string
	recorder  events.EventRecorder
	restores  restore.Restores
	tenure    *kube.Tenure
	liqo      *slice.Clients
	policies  *policy.Cache
	clusters  *consumers.Cache
	informers kube.CRDInformers
	decider   *slice.Decider
	answers   *slice.Writer
	record    *offered.Record
	monitors  *externals
}

// wake schedules an evaluation.
func (h *house) wake() { h.debouncer.Wake() }

func (h *house) ofNodes() (r room, err error) {
	core, err := nodes.New(h.mgr.GetConfig(), h.ledger, h.NodeGrace, h.wake, h.log.WithName("core"))
	if err != nil {
		return r, err
	}
	for _, s := range core.Sources() {
		r.sources = append(r.sources, s)
	}
	shadowPods := core.ShadowPods(h.liqo)
	drivers, err := devices.New(h.mgr.GetConfig(), devices.Sink{
		SetDevices: core.SetDevices, SetClaim: h.ledger.SetClaim, DeleteClaim: h.ledger.DeleteClaim,
		SetUncounted: h.ledger.SetUncounted,
	}, h.wake, h.log.WithName("devices"))
	if err != nil {
		return r, err
	}
	r.sources = append(r.sources, shadowPods, drivers)
	r.everywhere = []manager.Runnable{core, kube.CRDInformers{shadowPods}, drivers}
	r.collectors = append(core.Metrics(), drivers.Metrics()...)
	return r, nil
}

func (h *house) ofPolicies() (room, error) {
	statuses := policy.NewStatusReconciler(h.mgr.GetClient(), h.table, h.policies.Version, h.recorder, h.restores,
		h.log.WithName("status"))
	parser, err := policy.NewReconciler(h.mgr.GetCache(), h.policies, h.wake, statuses.Check, h.log.WithName("policies"))
	return room{
		everywhere: []manager.Runnable{parser}, leading: []manager.Runnable{statuses}, sources: []engine.Source{parser},
		published:  []func(*table.Snapshot){h.policies.Remember, onSnapshot(statuses.Wake)},
		collectors: []prometheus.Collector{statuses.Writes},
	}, err
}

// ofSources returns the room of the informers, of the record of offered resources, and of external sources.
func (h *house) ofSources() (room, error) {
	r := room{
		everywhere: []manager.Runnable{h.informers, h.record, h.monitors},
		leading:    []manager.Runnable{offered.Writer{Record: h.record}}, sources: []engine.Source{h.record},
		published:  []func(*table.Snapshot){h.record.Note, h.monitors.follow},
		collectors: []prometheus.Collector{h.monitors},
	}
	for _, i := range h.informers {
		r.sources = append(r.sources, i)
	}
	return r, nil
}

func (h *house) ofSlices() (room, error) {
	grants, err := h.decider.WatchGrants(h.mgr.GetCache(), h.wake)
	return room{
		leading: []manager.Runnable{h.answers}, sources: []engine.Source{grants},
		published: []func(*table.Snapshot){h.answers.Commit}, collectors: h.answers.Metrics(),
	}, err
}

// ofEngine returns the room of the engine, which evaluates for all other rooms.
func (h *house) ofEngine(all room) room {
	evaluator := engine.New(engine.Config{
		Ledger: h.ledger, Policies: h.policies, Consumers: h.clusters, Slices: h.decider, Peers: h.decider.Peers,
		Debouncer: h.debouncer, Table: h.table, Grace: h.grace(),
		Previous: func() []offer.PreviousOffers { return h.record.Previous(h.policies.Previous()) },
		Former:   func(named map[string]struct{}) []offer.Policy { return h.record.Former(named, h.policies.Parse) },
		Sources:  h.monitors.and(all.sources), Answers: h.monitors.Answers, Published: all.published,
		Log: h.log.WithName("offers"),
	})
	return room{
		everywhere: []manager.Runnable{evaluator},
		collectors: []prometheus.Collector{h.restores, evaluator, &collector{table: h.table, version: h.Version}},
	}
}

// register registers metrics, if any are served.
func (h *house) register(collectors []prometheus.Collector) error {
	if h.metrics == nil {
		return nil
	}
	for _, c := range collectors {
		if err := h.metrics.Register(c); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}

// add adds everything that runs to the manager. An observer never leads.
func (h *house) add(all room) error {
	if !h.observer {
		log := h.log.WithName("leader")
		leader, err := kube.NewLeader(h.mgr, LeaderElectionID, h.LeaderElection, h.tenure, log, all.leading...)
		if err != nil {
			return err
		}
		all.everywhere = append(all.everywhere, leader)
	}
	var errs []error
	for _, runnable := range all.everywhere {
		errs = append(errs, h.mgr.Add(runnable))
	}
	return errors.Join(errs...)
}
