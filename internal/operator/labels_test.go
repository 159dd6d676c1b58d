package operator

import "proffer.dev/proffer/internal/kube/liqo"

const (
	originLabel     = liqo.OriginLabel
	originLabelV0   = liqo.OriginLabelV0
	shadowPodLabel  = "liqo.io/shadowPod"
	nodeTypeLabel   = liqo.NodeTypeLabel
	nodeTypeVirtual = liqo.VirtualNodeType
)
