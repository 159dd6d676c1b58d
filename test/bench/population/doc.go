// Package population fills a control plane with nodes and pods as a cluster in use has them. They are written through the API server, as
// controllers and kubelets write them: created, then given a status, with managed fields of both. What decodes them pays what it would pay in
// production: some 5 KB for a pod and 10 KB for a node, in protobuf.
package population

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Size is how much there is of everything.
type Size struct {
	// Nodes are those of the cluster itself. One in 250 is added that stands for another cluster.
	Nodes int
	// Pods are those that count: bound and not finished. Of each 100, two more are finished, which a client does not have to be sent, and two
	// are shadows of pods that run elsewhere, on the nodes that stand for other clusters.
	Pods int
	// Consumers are how many have sent the fifth of the pods that is not the cluster's own.
	Consumers int
	// Small is for pods with no more than what the account needs: more events of them can be had in the same time.
	Small bool
}

func (s Size) virtualNodes() int { return (s.Nodes + 249) / 250 }
func (s Size) finished() int     { return (s.Pods + 49) / 50 }
func (s Size) shadows() int      { return (s.Pods + 49) / 50 }

// Consumer returns the cluster ID of the i-th consumer.
func Consumer(i int) string { return fmt.Sprintf("32f0b45b-5c06-4cc4-84b6-%012d", i) }

// digest is what a hash of something looks like, the same each time.
func digest(what string, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", what, i))
	return hex.EncodeToString(sum[:])
}

// since is when the cluster was set up. Objects do not depend on when they are made.
var since = metav1.NewTime(time.Date(2026, time.March, 2, 8, 30, 0, 0, time.UTC))

func after(d time.Duration) metav1.Time { return metav1.NewTime(since.Add(d)) }
