package command

import (
	"context"

	"k8s.io/client-go/rest"

	"proffer.dev/proffer/internal/operator"
)

// runOperator runs the operator until the context ends.
func runOperator(ctx context.Context, config *rest.Config, o commandOptions, p Program) error {
	return o.inUse(operator.Run(ctx, config, o.operator(p)))
}

// operator returns the options of the operator for this command line.
func (o *commandOptions) operator(p Program) operator.Options {
	out := operator.Options{
		Version: p.version(), Endpoints: o.endpoints, TLS: o.tls,
		MetricsAddress: o.metrics, ProbeAddress: o.probes, PprofAddress: o.pprof,
		BatchPeriod: o.batchPeriod.value, NodeGrace: o.nodeGrace.value,
		ServedClasses: o.servedClasses, OtherClasses: o.otherClasses,
		Placements: o.placements, OffloadedPodSecurity: o.podSecurityLevel, Catalog: o.catalog,
		Plugins: o.plugins,
	}
	if o.publishOffers {
		out.PublishOffers = &operator.PublishOffers{Subjects: o.offersTo, QPS: o.offersQPS}
	}
	if o.orchestrate {
		out.OrchestrateAs, out.LegacyToggle = o.clusterID, o.legacyToggle
	}
	if o.leaderElect {
		out.LeaderElection = &o.election
	}
	return out
}
