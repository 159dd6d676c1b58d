package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/metasync"
	"proffer.dev/proffer/internal/plugins/filters"
	"proffer.dev/proffer/internal/plugins/reconcilers"
	"proffer.dev/proffer/internal/rehearse/world"
	"proffer.dev/proffer/internal/table"
	"proffer.dev/proffer/plugin"
)

// pluginTimeout bounds how long the factory of a plugin takes.
const pluginTimeout = 10 * time.Second

// Plugins holds the plugins that the configuration file switches on.
type Plugins struct {
	// ClusterID is given to each plugin.
	ClusterID string
	// Filters are the chains of filters. Each name there, except Basic and Affinity, has a factory.
	Filters         config.Filters
	NodeFilters     map[string]plugin.NodeFilterFactory
	ConsumerFilters map[string]plugin.ConsumerFilterFactory
	SliceFilters    map[string]plugin.SliceFilterFactory
	// Reconcilers holds the factories of the reconcilers that run.
	Reconcilers map[string]plugin.ReconcilerFactory
	// Args are the arguments of each plugin.
	Args map[string]json.RawMessage
	// MetaSync keeps the books in a database. Nil is for no books.
	MetaSync *metasync.Options
}

// stateReader reads the state that plugins get.
type stateReader struct {
	table   *table.Table
	ledger  *capacity.Ledger
	version string
	// chain is set once the filters are made, before the first evaluation.
	chain atomic.Pointer[filters.Chain]
}

// read returns a copy of the state, by way of what /snapshot writes.
func (s *stateReader) read() (*rest.World, error) {
	snapshot := s.table.Current()
	if snapshot == nil {
		return nil, table.ErrNotReady
	}
	from, to := io.Pipe()
	go func() {
		to.CloseWithError(world.Encode(to, snapshot, s.ledger.Copy(), s.version, s.chain.Load().Names()))
	}()
	state := &rest.World{}
	err := json.NewDecoder(from).Decode(state)
	_ = from.Close() // It ends the writer after an error.
	if err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	return state, nil
}

// buildPlugins calls the factories, and sets the chain of filters and the reconcilers.
func (p *parts) buildPlugins(mgr ctrl.Manager) error {
	// The client of the manager would cache, and so watch, all objects of a kind that a plugin reads.
	api, err := client.New(mgr.GetConfig(), client.Options{
		Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return fmt.Errorf("making the client of plugins: %w", err)
	}
	state := &stateReader{table: p.table, ledger: p.ledger, version: p.Version}
	all, log := &p.Plugins, mgr.GetLogger().WithName("plugins")
	handle := func(name string) plugin.Handle {
		return plugin.Handle{
			Client: api, Recorder: mgr.GetEventRecorder(eventSource), Logger: log.WithName(name),
			Clock: clock.RealClock{}, ClusterID: all.ClusterID, State: state.read,
		}
	}
	nodeFilters, err := startAll(all.NodeFilters, all.Args, handle)
	if err != nil {
		return err
	}
	consumerFilters, err := startAll(all.ConsumerFilters, all.Args, handle)
	if err != nil {
		return err
	}
	sliceFilters, err := startAll(all.SliceFilters, all.Args, handle)
	if err != nil {
		return err
	}
	if order := all.Filters; len(order.Nodes)+len(order.Consumers)+len(order.Slices) > 0 {
		late := filters.Late{Reconsider: p.ledger.Reconsider, Wake: p.debouncer.Wake}
		p.chain = filters.New(order, nodeFilters, consumerFilters, sliceFilters, late, ctrl.Log.WithName("filters"))
	}
	state.chain.Store(p.chain)
	p.reconcilers, err = startAll(all.Reconcilers, all.Args, handle)
	return err
}

// startAll calls the factories in the order of their names, up to the first that fails.
func startAll[T named, F ~func(json.RawMessage, plugin.Handle) (T, error)](
	factories map[string]F, args map[string]json.RawMessage, handle func(name string) plugin.Handle,
) (map[string]T, error) {
	all := make(map[string]T, len(factories))
	for _, name := range slices.Sorted(maps.Keys(factories)) {
		p, err := start(name, args[name], handle(name), factories[name])
		if err != nil {
			return nil, err
		}
		all[name] = p
	}
	return all, nil
}

// named is the method that each plugin has.
type named interface {
	comparable
	Name() string
}

// start calls a factory. Its error is one line, also if the factory panics or does not return.
func start[T named, F ~func(json.RawMessage, plugin.Handle) (T, error)](
	name string, args json.RawMessage, h plugin.Handle, factory F,
) (T, error) {
	type result struct {
		plugin T
		err    error
	}
	var none T
	done := make(chan result, 1)
	go func() {
		r := result{err: errors.New("its factory ends its goroutine instead of returning")}
		defer func() {
			if v := recover(); v != nil {
				h.Logger.Error(nil, "The factory of the plugin panicked", "stack", string(debug.Stack()))
				r = result{err: errors.New("its factory panics: " + oneLine(fmt.Sprint(v)))}
			}
			done <- r
		}()
		p, err := factory(args, h)
		switch {
		case err != nil:
			r.err = errors.New(oneLine(err.Error()))
		case p == none:
			r.err = errors.New("its factory returns nil")
		case p.Name() != name:
			r.err = fmt.Errorf("it is registered as %s and calls itself %q: use one name",
				name, kube.Shorten(p.Name(), kube.MaxShown))
		default:
			r = result{plugin: p}
		}
	}()
	timer := time.NewTimer(pluginTimeout)
	defer timer.Stop()
	select {
	case r := <-done:
		if r.err != nil {
			return none, fmt.Errorf("plugin %s: %w", name, r.err)
		}
		return r.plugin, nil
	case <-timer.C:
		return none, fmt.Errorf("plugin %s: its factory does not return within %v", name, pluginTimeout)
	}
}

// oneLine makes a text of a plugin fit for the line that ends the process.
func oneLine(text string) string {
	return kube.Shorten(strings.Join(strings.Fields(kube.Shorten(text, 2*kube.MaxMessage)), " "), kube.MaxMessage)
}

// ofPlugins returns the additions of the plugins to an operator.
func (h *house) ofPlugins() (r room, err error) {
	log := h.log.WithName("reconcilers")
	for _, name := range slices.Sorted(maps.Keys(h.reconcilers)) {
		config := reconcilers.Config{Name: name, Reconciler: h.reconcilers[name], Table: h.table, Log: log}
		where := &r.everywhere
		if !reconcilers.OfEveryReplica(config.Reconciler) {
			where, config.Holding = &r.leading, h.tenure.Holds
		}
		runner := reconcilers.New(config)
		*where = append(*where, runner)
		r.published, r.collectors = append(r.published, onSnapshot(runner.Wake)), append(r.collectors, runner)
	}
	if h.Plugins.MetaSync != nil {
		books := metasync.New(metasync.Config{
			Options: *h.Plugins.MetaSync, Table: h.table, Holding: h.tenure.Holds, Log: log.WithName(metasync.Name),
		})
		r.leading, r.collectors = append(r.leading, books), append(r.collectors, books.Metrics()...)
		r.published = append(r.published, onSnapshot(books.Wake))
		history := metasync.NewHistory(*h.Plugins.MetaSync, log.WithName(metasync.Name))
		r.everywhere = append(r.everywhere, history)
		h.vitals.books, h.vitals.history = books, history
	}
	if h.chain != nil {
		r.collectors = append(r.collectors, h.chain)
	}
	return r, nil
}
