package corewatch

import "proffer.dev/proffer/controllers/corewatch/coretest"

var (
	list      = coretest.List
	aNode     = coretest.Node
	nodeLabel = coretest.NodeLabel
	aPod      = coretest.Pod
	podLabel  = coretest.PodLabel
	phase     = coretest.Phase
)
