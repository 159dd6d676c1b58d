package nodes

import (
	"github.com/go-logr/logr"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test/nodestest"
)

var (
	list      = nodestest.List
	aNode     = nodestest.Node
	nodeLabel = nodestest.NodeLabel
	aPod      = nodestest.Pod
	podLabel  = nodestest.PodLabel
	phase     = nodestest.Phase
)

// decoderOf returns a decoder for a ledger whose nodes have all been seen.
func decoderOf(ledger *capacity.Ledger) *decoder {
	seen := make(chan struct{})
	close(seen)
	return newDecoder(ledger, seen, logr.Discard())
}
