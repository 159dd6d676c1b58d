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
	out := o.Options
	out.Version = p.version()
	if o.publishOffers {
		out.PublishOffers = &o.offers
	}
	if o.leaderElect {
		out.LeaderElection = &o.election
	}
	return out
}
