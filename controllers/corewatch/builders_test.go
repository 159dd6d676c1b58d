package corewatch

import (
	"github.com/go-logr/logr"

	"proffer.dev/proffer/controllers/corewatch/coretest"
	"proffer.dev/proffer/internal/capacity"
)

var (
	list      = coretest.List
	aNode     = coretest.Node
	nodeLabel = coretest.NodeLabel
	aPod      = coretest.Pod
	podLabel  = coretest.PodLabel
	phase     = coretest.Phase
)

// decoderOf is a decoder for a ledger whose nodes have been seen.
func decoderOf(ledger *capacity.Ledger) *decoder {
	seen := make(chan struct{})
	close(seen)
	return newDecoder(ledger, seen, logr.Discard())
}
