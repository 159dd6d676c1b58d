// Package population fills a control plane with nodes and pods like those of a cluster in use. They
// are written through the API server, as controllers and kubelets write them: created, then given a
// status, with the managed fields of both writers. So decoding them costs what it costs in
// production.
package population

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Size is the number of objects of each kind.
type Size struct {
	// Nodes is the number of the cluster's own nodes. One virtual node is added for every 250.
	Nodes int
	// Pods is the number of pods that count: bound and not finished. For every 100 there are two
	// finished pods, which clients do not need, and two shadow pods on the virtual nodes.
	Pods int
	// Consumers is the number of consumers that share a fifth of the pods.
	Consumers int
	// Small reduces pods to what accounting needs, which allows more events in the same time.
	Small bool
}

func (s Size) virtualNodes() int { return (s.Nodes + 249) / 250 }
func (s Size) finished() int     { return (s.Pods + 49) / 50 }
func (s Size) shadows() int      { return (s.Pods + 49) / 50 }

// Consumer returns the cluster ID of the i-th consumer.
func Consumer(i int) string { return fmt.Sprintf("32f0b45b-5c06-4cc4-84b6-%012d", i) }

// digest returns a reproducible string that looks like a hash.
func digest(what string, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", what, i))
	return hex.EncodeToString(sum[:])
}

// since is when the cluster was set up. It is fixed, so that objects do not depend on the current
// time.
var since = metav1.NewTime(time.Date(2026, time.March, 2, 8, 30, 0, 0, time.UTC))

func after(d time.Duration) metav1.Time { return metav1.NewTime(since.Add(d)) }
