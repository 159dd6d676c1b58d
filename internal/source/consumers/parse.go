// Package consumers follows the objects of Liqo that describe peer clusters, and merges them into
// one list of consumers.
package consumers

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/offer"
)

// maxClusterID bounds the cluster IDs read from objects, in bytes. It is the bound of those in a
// policy.
const maxClusterID = 253

var errNoClusterID = errors.New("no cluster ID yet")

// kind is a kind of Liqo object that describes a peer cluster.
type kind struct {
	schema.GroupVersionResource
	// clusterID is the path of the cluster ID.
	clusterID []string
}

// kinds are read without Liqo's types: only the labels and one string matter, and Liqo v0's types
// cannot be linked together with a current apimachinery.
var kinds = []kind{
	{liqo.ForeignClusters, []string{"spec", "clusterID"}},
	{liqo.ForeignClustersV0, []string{"spec", "clusterIdentity", "clusterID"}},
	{liqo.Tenants, []string{"spec", "clusterID"}},
}

// parse reads the consumer that an object of the kind describes.
func (k kind) parse(u *unstructured.Unstructured) (offer.Consumer, error) {
	id, found, err := unstructured.NestedString(u.Object, k.clusterID...)
	switch {
	case err != nil:
		return offer.Consumer{}, fmt.Errorf("%s: %w", strings.Join(k.clusterID, "."), err)
	case !found || id == "":
		return offer.Consumer{}, errNoClusterID
	case len(id) > maxClusterID:
		return offer.Consumer{}, fmt.Errorf("%s: %d characters, want at most %d",
			strings.Join(k.clusterID, "."), len(id), maxClusterID)
	}
	return offer.Consumer{ID: id, Labels: u.GetLabels()}, nil
}

// strip is a transform that keeps the labels, the cluster ID and these other fields.
func (k kind) strip(others ...[]string) func(obj any) (any, error) {
	return kube.KeepFields(append([][]string{k.clusterID}, others...)...)
}
