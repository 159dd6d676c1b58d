// Package plugin is the API for filters and reconcilers. They are compiled into an operator of your own
// by package operator, and switched on by the operator's configuration file:
//
//	func main() {
//		operator.Main(
//			operator.WithNodeFilter("Custom", custom.New),
//			operator.WithReconciler("Audit", audit.New),
//		)
//	}
//
// A filter leaves nodes or consumers out of policies, or refuses requests. A reconciler receives the
// changes of policies, offers, grants and consumers. Neither can stop the operator or delay it for long:
// calls of filters have a bound, panics are recovered, and each reconciler has a queue and a goroutine of
// its own.
//
// docs/how-to/write-a-filter.md shows the whole way, and examples/custom-operator is a program to begin with.
package plugin

import (
	"encoding/json"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/rest"
)

// Handle gives plugins access to the operator.
type Handle struct {
	// Client reads from the API server, without a cache, and writes to it. It has the rights of the
	// operator's service account: a plugin that needs more needs a Role of its own.
	Client client.Client
	// Recorder emits Events.
	Recorder events.EventRecorder
	// Logger has the name of the plugin.
	Logger logr.Logger
	// Clock is the time. Tests inject their own.
	Clock clock.WithTicker
	// ClusterID is the ID of this cluster in the configuration file, empty if it is not set there.
	ClusterID string
	// State returns everything that the latest evaluation depended on, and what it offered, as GET
	// /snapshot has it. Nodes and pods are read now: they may be newer. The World is the caller's own
	// copy. It grows with the cluster, so read it now and then, and not with each event. Filters must
	// not read it: their answers depend on nothing else than their arguments. It returns an error
	// before the first evaluation.
	State func() (*rest.World, error)
}

// The factories make a plugin when the process starts. The arguments come from the plugin's entry in
// the configuration file as JSON, nil for none. A factory must return within ten seconds, and start
// nothing that a process that is not the leader must not do. An error ends the process.
type (
	// NodeFilterFactory makes a NodeFilter.
	NodeFilterFactory func(args json.RawMessage, h Handle) (NodeFilter, error)
	// ConsumerFilterFactory makes a ConsumerFilter.
	ConsumerFilterFactory func(args json.RawMessage, h Handle) (ConsumerFilter, error)
	// SliceFilterFactory makes a SliceFilter.
	SliceFilterFactory func(args json.RawMessage, h Handle) (SliceFilter, error)
	// ReconcilerFactory makes a Reconciler.
	ReconcilerFactory func(args json.RawMessage, h Handle) (Reconciler, error)
)
