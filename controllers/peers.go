package controllers

import (
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/internal/kube"
)

// peerKind is a kind of Liqo object that describes a peer cluster.
type peerKind struct {
	schema.GroupVersionResource
	// clusterID is where the cluster ID stands.
	clusterID []string
	// also is what else is kept, for other registers.
	also [][]string
}

var tenantResource = schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1", Resource: "tenants"}

// peerKinds are read without Liqo's types: all that counts are the labels and one string, and Liqo v0's types cannot be linked
// together with a current apimachinery.
var peerKinds = []peerKind{
	{schema.GroupVersionResource{Group: "core.liqo.io", Version: "v1beta1", Resource: "foreignclusters"}, []string{"spec", "clusterID"}, nil},
	{schema.GroupVersionResource{Group: "discovery.liqo.io", Version: "v1alpha1", Resource: "foreignclusters"}, []string{"spec", "clusterIdentity", "clusterID"}, nil},
	{tenantResource, []string{"spec", "clusterID"}, [][]string{{"spec", "tenantCondition"}}},
}

// peers keeps the register of consumers by watching Liqo's objects, each kind for as long as its CustomResourceDefinition is there.
type peers struct {
	consumers *consumers
	watches   kube.CRDInformers
}

// newPeers makes the register and its watches. The other register hears of Tenants too, so that they are watched once.
func newPeers(client dynamic.Interface, wake func(), log logr.Logger, ofTenants kube.Handler) *peers {
	p := &peers{consumers: newConsumers(len(peerKinds))}
	for i, k := range peerKinds {
		registers := []kube.Handler{&peerRegister{consumers: p.consumers, index: i, kind: k, log: log}}
		if k.GroupVersionResource == tenantResource {
			registers = append(registers, ofTenants)
		}
		p.watches = append(p.watches, kube.NewCRDInformer(client, kube.Kind{GroupVersionResource: k.GroupVersionResource, Strip: k.strip}, wake, log, registers...))
	}
	return p
}

// peerRegister brings the objects of one kind to the register of consumers.
type peerRegister struct {
	consumers *consumers
	index     int
	kind      peerKind
	log       logr.Logger
}

func (r *peerRegister) Set(u *unstructured.Unstructured) bool {
	consumer, err := r.kind.parseConsumer(u)
	if err != nil {
		if !errors.Is(err, errNoClusterID) {
			r.log.Error(err, "Ignoring an object that describes no consumer", "kind", r.kind.GroupVersionResource.String(), "object", kube.Key(u))
		}
		return r.Remove(u)
	}
	return r.consumers.set(r.index, kube.Key(u), consumer)
}

func (r *peerRegister) Remove(u *unstructured.Unstructured) bool {
	return r.consumers.remove(r.index, kube.Key(u))
}

func (r *peerRegister) RemoveAll() { r.consumers.removeAll(r.index) }

// strip is a transform that keeps the labels, the cluster ID and the other fields to keep.
func (k peerKind) strip(obj any) (any, error) {
	return kube.KeepFields(append([][]string{k.clusterID}, k.also...)...)(obj)
}
