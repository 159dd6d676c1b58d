package operator

import "proffer.dev/proffer/internal/source/nodes"

const (
	originLabel     = nodes.OriginLabel
	originLabelV0   = nodes.OriginLabelV0
	shadowPodLabel  = "liqo.io/shadowPod"
	nodeTypeLabel   = nodes.NodeTypeLabel
	nodeTypeVirtual = nodes.NodeTypeVirtual
)
