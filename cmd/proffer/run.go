package main

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"proffer.dev/proffer/operator"
)

// runOperator runs the operator until the context ends.
func runOperator(ctx context.Context, config *rest.Config, o options) error {
	return o.inUse(operator.Run(ctx, config, o.operator()))
}

// operator returns the options of the operator for this command line.
func (o *options) operator() operator.Options {
	out := operator.Options{
		Version: versionOf(), Endpoints: o.endpoints, TLS: o.tls,
		MetricsAddress: o.metrics, ProbeAddress: o.probes, PprofAddress: o.pprof,
		BatchPeriod: time.Duration(o.batchPeriod), ServedClasses: o.servedClasses, Catalog: o.catalog,
	}
	if o.publishOffers {
		out.PublishOffers = &operator.PublishOffers{Subjects: o.offersTo, QPS: o.offersQPS}
	}
	if o.leaderElect {
		out.LeaderElection = &o.election
	}
	return out
}
