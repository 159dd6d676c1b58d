package orchestration

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
)

var (
	orchestrations  = v1alpha1.GroupVersion.WithResource("orchestrations")
	providerChoices = v1alpha1.GroupVersion.WithResource("providerchoices")
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	nodes           = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// caches have everything that is watched.
type caches struct {
	orchestrations  *kube.ObjectCache[orchestration]
	choices         *kube.ObjectCache[providerChoice]
	namespaces      *kube.ObjectCache[namespace]
	nodes           *kube.ObjectCache[node]
	virtualNodes    *kube.ObjectCache[virtualNode]
	connections     *kube.ObjectCache[networkConnection]
	foreignClusters *kube.ObjectCache[foreignCluster]
	offloadings     *kube.ObjectCache[offloading]
}

// watches holds the informers, including the informers of kinds that may not exist.
type watches struct {
	all                         kube.CRDInformers
	orchestrations, offloadings *kube.CRDInformer
}

// watch returns empty caches, and informers that keep them up to date and call wake after each change
// that matters.
func watch(api dynamic.Interface, wake func(), log logr.Logger) (*caches, watches) {
	c := &caches{
		kube.NewObjectCache(parseOrchestration), kube.NewObjectCache(parseChoice),
		kube.NewObjectCache(parseNamespace), kube.NewObjectCache(parseNode),
		kube.NewObjectCache(parseVirtualNode), kube.NewObjectCache(parseConnection),
		kube.NewObjectCache(parseForeignCluster), kube.NewObjectCache(parseOffloading),
	}
	annotations := []string{"metadata", "annotations"}
	informer := func(k kube.Kind, h kube.Handler) *kube.CRDInformer { return kube.NewCRDInformer(api, k, wake, log, h) }
	w := watches{
		orchestrations: informer(kube.Kind{GroupVersionResource: orchestrations}, c.orchestrations),
		offloadings: informer(kube.Kind{
			GroupVersionResource: liqo.NamespaceOffloadings, Name: offloadingName,
			Strip: kube.KeepFields(annotations, []string{"metadata", "managedFields"}, []string{"spec"},
				[]string{"status", remoteConditions}),
		}, c.offloadings),
	}
	w.all = kube.CRDInformers{
		w.orchestrations, w.offloadings,
		informer(kube.Kind{
			GroupVersionResource: providerChoices, Name: v1alpha1.ChoiceName, Strip: stripChoice,
		}, c.choices),
		informer(kube.Kind{
			GroupVersionResource: namespaces, Builtin: true, Selector: liqo.RemoteClusterIDLabel,
			Strip: stripNamespace,
		}, c.namespaces),
		informer(kube.Kind{
			GroupVersionResource: nodes, Builtin: true, Selector: liqo.NodeTypeLabel + "=" + liqo.VirtualNodeType,
			Strip: kube.KeepFields([]string{"spec", "unschedulable"},
				[]string{"status", "conditions"}, []string{"status", "allocatable"}),
		}, c.nodes),
		informer(kube.Kind{
			GroupVersionResource: liqo.VirtualNodes, Strip: kube.KeepFields([]string{"spec", "clusterID"}),
		}, c.virtualNodes),
		informer(kube.Kind{
			GroupVersionResource: liqo.Connections,
			Strip:                kube.KeepFields([]string{"status", "value"}, []string{"status", "latency"}),
		}, c.connections),
		informer(kube.Kind{
			GroupVersionResource: liqo.ForeignClusters, Strip: kube.KeepFields([]string{"spec", "clusterID"}, annotations),
		}, c.foreignClusters),
	}
	return c, w
}
