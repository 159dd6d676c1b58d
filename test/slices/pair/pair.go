// Package pair runs a consumer and a provider with the real Liqo v1.2.0 on one machine, for the tutorial
// docs/tutorials/first-slice.md: rome is a consumer of milan, on which the operator runs. Each has Liqo's controllers,
// webhook, crd-replicator and virtual kubelets, a kube-scheduler, and a node that KWOK plays.
package pair

import (
	"context"
	_ "embed"
	"fmt"

	"proffer.dev/proffer/test/slices/lab"
)

//go:embed tour.txt
var text string

// Tour is the lab for a person.
var Tour = lab.Tour{Start: Start, Text: text}

// Start starts the clusters, and the operator on milan. Pods run until ctx ends.
func Start(ctx context.Context, l *lab.Lab) error {
	const nodes = 1
	clusters, err := l.Start(ctx, nodes, "rome", "milan")
	if err != nil {
		return err
	}
	rome, milan := clusters[0], clusters[1]
	if err := rome.Peer(ctx, milan); err != nil {
		return err
	}
	if err := milan.RunOperator(ctx); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(l.Progress, "lab: rome is peered with milan, and the operator runs on milan")
	return nil
}
