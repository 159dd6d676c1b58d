// Package pair runs a consumer and a provider with the real Liqo v1.2.0 on one machine, for the tutorial
// docs/tutorials/first-slice.md: rome is a consumer of milan, on which the operator runs. Each has Liqo's controllers,
// webhook, crd-replicator and virtual kubelets, a kube-scheduler, and a node that KWOK plays.
package pair

import (
	"context"
	_ "embed"
	"fmt"
	"io"

	"proffer.dev/proffer/test/slices/lab"
)

// Tour says what to do in a shell of the lab.
//
//go:embed tour.txt
var Tour string

// Lab holds the running clusters, and milan's operator.
type Lab struct {
	Rome, Milan *lab.Cluster
	Operator    *lab.Operator
}

// Clusters starts the clusters as Start does, for a person.
func Clusters(ctx context.Context, p lab.Programs, dir string, progress io.Writer) ([]*lab.Cluster, error) {
	l, err := Start(ctx, p, dir, progress)
	if err != nil {
		return nil, err
	}
	return l.all(), nil
}

// all returns the clusters.
func (l *Lab) all() []*lab.Cluster { return []*lab.Cluster{l.Rome, l.Milan} }

// Start starts the clusters. Pods run until ctx ends.
func Start(ctx context.Context, p lab.Programs, dir string, progress io.Writer) (*Lab, error) {
	const nodes = 1
	clusters, err := lab.Start(ctx, p, dir, progress, nodes, "rome", "milan")
	if err != nil {
		return nil, err
	}
	l := &Lab{Rome: clusters[0], Milan: clusters[1]}
	if err := l.Rome.Peer(ctx, l.Milan); err != nil {
		return nil, err
	}
	if l.Operator, err = l.Milan.RunOperator(ctx, 1); err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintln(progress, "lab: rome is peered with milan, and the operator runs on milan")
	return l, nil
}
