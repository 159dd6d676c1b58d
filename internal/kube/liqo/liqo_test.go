package liqo_test

import (
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"

	"proffer.dev/proffer/internal/kube/liqo"
)

// OriginLabel is in a package with too many imports, and the API of Connections too: tests beside the
// real Liqo and with its CustomResourceDefinitions hold them.
func TestTheNamesAreThoseOfLiqo(t *testing.T) {
	for got, want := range map[any]any{
		liqo.RemoteClusterIDLabel:            consts.RemoteClusterID,
		liqo.TenantNamespaceLabel:            consts.TenantNamespaceLabel,
		liqo.RemoteTenantNamespaceAnnotation: consts.RemoteTenantNamespaceAnnotKey,
		liqo.ManagedByMapAnnotation:          consts.RemoteNamespaceManagedByAnnotationKey,
		liqo.OriginalNameAnnotation:          consts.RemoteNamespaceOriginalNameAnnotationKey,
		liqo.NodeTypeLabel:                   consts.TypeLabel,
		liqo.VirtualNodeType:                 consts.TypeNode,
		liqo.VirtualNodeTaint:                consts.VirtualNodeTolerationKey,
		liqo.StorageProvisioner:              consts.StorageProvisionerName,
		liqo.ResourceSliceLabel:              consts.ResourceSliceNameLabelKey,
		liqo.ReplicatedLabel:                 consts.ReplicationStatusLabel,
		liqo.OriginIDLabel:                   consts.ReplicationOriginLabel,
		liqo.ReplicationLabel:                consts.ReplicationRequestedLabel,
		liqo.CreatorLabel:                    consts.CreatorLabelKey,
		liqo.ComponentLabel:                  consts.OffloadingComponentKey,
		liqo.VirtualKubelet:                  consts.VirtualKubeletComponentValue,

		liqo.ResourceSlices:       authv1beta1.ResourceSliceGroupVersionResource,
		liqo.Tenants:              authv1beta1.TenantGroupVersionResource,
		liqo.Identities:           authv1beta1.IdentityGroupVersionResource,
		liqo.ForeignClusters:      liqov1beta1.ForeignClusterGroupVersionResource,
		liqo.VirtualNodes:         offloadingv1beta1.VirtualNodeGroupVersionResource,
		liqo.NamespaceMaps:        offloadingv1beta1.NamespaceMapGroupVersionResource,
		liqo.ShadowPods:           offloadingv1beta1.ShadowPodGroupVersionResource,
		liqo.NamespaceOffloadings: offloadingv1beta1.NamespaceOffloadingGroupVersionResource,
	} {
		if got != want {
			t.Errorf("%v is %v in Liqo", got, want)
		}
	}
}
