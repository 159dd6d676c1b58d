package nodes

import (
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// maxSources bounds how many namespaces and nodes are logged for an object that names more
// resources than are counted.
const maxSources = 256

// excess reports objects that name more resources than are counted: every one in a metric, and the
// first of each namespace or node in the log.
type excess struct {
	read *prometheus.CounterVec
	log  logr.Logger

	mu     sync.Mutex
	logged map[source]struct{}
}

// source is a namespace of pods, or a node.
type source struct{ kind, name string }

func newExcess(log logr.Logger) *excess {
	e := &excess{
		read: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "proffer_objects_with_uncounted_resources_total",
			Help: "Number of reads of a pod or node with more resources than are counted: 64 of a pod, 256 of a node.",
		}, []string{"kind"}),
		log: log, logged: map[source]struct{}{},
	}
	for _, kind := range []string{"pod", "node"} {
		e.read.WithLabelValues(kind)
	}
	return e
}

func (e *excess) report(kind, of, name string, named, counted int) {
	e.read.WithLabelValues(kind).Inc()
	if !e.first(source{kind, of}) {
		return
	}
	values := []any{"kind", kind, "name", name, "resources", named, "counted", counted}
	if of != name {
		values = append(values, "namespace", of)
	}
	e.log.Info("An object has more resources than are counted; cpu and memory always count. "+
		"Further objects of this namespace, or of this node, are not logged", values...)
}

// first reports whether the source was not logged before and there is room for it.
func (e *excess) first(s source) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, logged := e.logged[s]; logged || len(e.logged) == maxSources {
		return false
	}
	e.logged[s] = struct{}{}
	return true
}
