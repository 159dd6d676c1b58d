// Package operator runs Proffer's operator. Command proffer is this package alone; a program with
// plugins of its own is a few lines over it.
package operator

import (
	"os"

	"proffer.dev/proffer/internal/command"
	"proffer.dev/proffer/plugin"
)

// Main runs the operator with the process's command line until SIGINT or SIGTERM, and ends the
// process: with exit code 0, 2 for a wrong command line or configuration, and 1 for any other
// failure.
func Main(options ...Option) {
	var p program
	for _, option := range options {
		option(&p)
	}
	os.Exit(command.Run(os.Args[1:], p.Program))
}

// Option adds something to the operator.
type Option func(*program)

type program struct{ command.Program }

// WithNodeFilter adds a filter of nodes, which is asked if filters.nodes of the configuration file lists
// the name.
func WithNodeFilter(name string, factory plugin.NodeFilterFactory) Option {
	return func(p *program) {
		p.NodeFilters = append(p.NodeFilters, command.Registered[plugin.NodeFilterFactory]{Name: name, Factory: factory})
	}
}

// WithConsumerFilter adds a filter of consumers, which is asked if filters.consumers of the
// configuration file lists the name.
func WithConsumerFilter(name string, factory plugin.ConsumerFilterFactory) Option {
	return func(p *program) {
		p.ConsumerFilters = append(p.ConsumerFilters,
			command.Registered[plugin.ConsumerFilterFactory]{Name: name, Factory: factory})
	}
}

// WithSliceFilter adds a filter of requests, which is asked if filters.slices of the configuration file
// lists the name.
func WithSliceFilter(name string, factory plugin.SliceFilterFactory) Option {
	return func(p *program) {
		p.SliceFilters = append(p.SliceFilters, command.Registered[plugin.SliceFilterFactory]{Name: name, Factory: factory})
	}
}

// WithReconciler adds a reconciler, which runs if reconcilers of the configuration file lists the name.
func WithReconciler(name string, factory plugin.ReconcilerFactory) Option {
	return func(p *program) {
		p.Reconcilers = append(p.Reconcilers, command.Registered[plugin.ReconcilerFactory]{Name: name, Factory: factory})
	}
}

// WithVersion sets the version that --version, a metric and the log show. Without it, they show the
// version of the program's main module.
func WithVersion(version string) Option {
	return func(p *program) { p.Version = version }
}
