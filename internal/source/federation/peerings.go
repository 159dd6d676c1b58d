package federation

import (
	"cmp"
	"maps"
	"path"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/liqo"
)

// accepted is the status of a condition of a ResourceSlice that the provider has granted.
const accepted = "Accepted"

// modules are Liqo's, sorted.
var modules = []string{"authentication", "networking", "offloading"}

// peerings has what Liqo keeps in this cluster about its providers.
type peerings struct {
	ids      *kube.ObjectCache[identity]
	clusters *kube.ObjectCache[cluster]
	nodes    *kube.ObjectCache[string]
	slices   *kube.ObjectCache[slice]
}

// identity is an Identity that can read Offers, if ok.
type identity struct {
	Identity
	ok bool
}

// cluster is what a ForeignCluster says of a provider.
type cluster struct {
	id, apiServer, role string
	modules             []string
	conditions          map[string]string
}

// slice is a ResourceSlice of this cluster.
type slice struct {
	provider string
	rest.FederationSlice
}

// liqoClass is the class that Liqo takes a ResourceSlice without one to have.
const liqoClass = "default"

// watchPeerings returns empty caches, and informers that keep them up to date. They call wake when an
// identity has changed, and ours when a ResourceSlice has.
func watchPeerings(objects dynamic.Interface, wake, ours func(), log logr.Logger) (*peerings, kube.CRDInformers) {
	p := &peerings{
		kube.NewObjectCache(parseIdentity), kube.NewObjectCache(parseCluster),
		kube.NewObjectCache(func(u *unstructured.Unstructured) string { return kube.Text(u, "spec", "clusterID") }),
		kube.NewObjectCache(parseSlice),
	}
	informer := func(k kube.Kind, wake func(), h kube.Handler) *kube.CRDInformer {
		return kube.NewCRDInformer(objects, k, wake, log, h)
	}
	none := func() {}
	return p, kube.CRDInformers{
		informer(kube.Kind{GroupVersionResource: liqo.Identities, Strip: kube.KeepFields(
			[]string{"spec", "clusterID"}, []string{"spec", "type"}, []string{"status", "kubeconfigSecretRef", "name"},
		)}, wake, p.ids),
		informer(kube.Kind{GroupVersionResource: liqo.ForeignClusters, Strip: kube.KeepFields(
			[]string{"spec", "clusterID"}, []string{"status"},
		)}, none, p.clusters),
		informer(kube.Kind{GroupVersionResource: liqo.VirtualNodes, Strip: kube.KeepFields(
			[]string{"spec", "clusterID"},
		)}, none, p.nodes),
		// Those of this cluster's consumers have ReplicatedLabel instead.
		informer(kube.Kind{
			GroupVersionResource: liqo.ResourceSlices, Selector: liqo.ReplicationLabel + "=true",
			Strip: kube.KeepFields(
				[]string{"spec", "class"}, []string{"spec", "providerClusterID"}, []string{"status", "conditions"},
			),
		}, ours, p.slices),
	}
}

func parseIdentity(u *unstructured.Unstructured) identity {
	id, ok := identityOf(u)
	return identity{id, ok}
}

func parseCluster(u *unstructured.Unstructured) cluster {
	c := cluster{
		id: kube.Text(u, "spec", "clusterID"), role: kube.Text(u, "status", "role"),
		apiServer: tidy(kube.Text(u, "status", "apiServerUrl"), maxURL), conditions: map[string]string{},
	}
	c.addConditions(u, "status")
	for _, module := range modules {
		if on, _, _ := unstructured.NestedBool(u.Object, "status", "modules", module, "enabled"); on {
			c.modules = append(c.modules, module)
			c.addConditions(u, "status", "modules", module)
		}
	}
	return c
}

// addConditions adds the conditions of a part of a ForeignCluster. Their types and values are enumerations of Liqo.
func (c *cluster) addConditions(u *unstructured.Unstructured, of ...string) {
	maps.Copy(c.conditions, conditions(u, append(of, "conditions")...))
}

// conditions returns the status of each condition by type.
func conditions(u *unstructured.Unstructured, at ...string) map[string]string {
	list, _, _ := unstructured.NestedSlice(u.Object, at...)
	all := map[string]string{}
	for _, item := range list[:min(len(list), maxItems)] {
		if c, ok := item.(map[string]any); ok {
			kind, _ := c["type"].(string)
			status, _ := c["status"].(string)
			all[tidy(kind, maxName)] = tidy(status, maxName)
		}
	}
	return all
}

func parseSlice(u *unstructured.Unstructured) slice {
	states := conditions(u, "status", "conditions")
	return slice{kube.Text(u, "spec", "providerClusterID"), rest.FederationSlice{
		Name: u.GetName(), Class: tidy(kube.Text(u, "spec", "class"), maxName), Accepted: states["Resources"] == accepted,
	}}
}

// identities returns the identities that can read Offers, sorted.
func (p *peerings) identities() (all []Identity) {
	for _, id := range p.ids.All() {
		if id.ok {
			all = append(all, id.Identity)
		}
	}
	sortIdentities(all)
	return all
}

// ours returns the ResourceSlices of this cluster, by key: those in the namespace of an identity at their provider.
// Liqo lets each consumer write any ResourceSlice, with its status, into a namespace of its own.
func (p *peerings) ours() map[string]slice {
	at := map[[2]string]bool{}
	for _, id := range p.identities() {
		at[[2]string{id.Namespace, id.Provider}] = true
	}
	all := map[string]slice{}
	for key, s := range p.slices.All() {
		if at[[2]string{path.Dir(key), s.provider}] {
			all[key] = s
		}
	}
	return all
}

// accepted returns the classes in which this cluster has an accepted ResourceSlice, by provider.
func (p *peerings) accepted() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, s := range p.ours() {
		if !s.Accepted {
			continue
		}
		if all[s.provider] == nil {
			all[s.provider] = map[string]bool{}
		}
		all[s.provider][cmp.Or(s.Class, liqoClass)] = true
	}
	return all
}

// byProvider returns what Liqo knows of each provider, by cluster ID.
func (p *peerings) byProvider() map[string]*rest.FederationProvider {
	all := map[string]*rest.FederationProvider{}
	for _, c := range p.clusters.All() {
		if c.role == "Provider" || c.role == "ConsumerAndProvider" {
			all[c.id] = &rest.FederationProvider{Liqo: &rest.FederationPeering{
				APIServer: c.apiServer, Conditions: c.conditions, Modules: c.modules,
			}}
		}
	}
	of := func(id string) *rest.FederationPeering {
		if all[id] == nil {
			all[id] = &rest.FederationProvider{Liqo: &rest.FederationPeering{}}
		}
		return all[id].Liqo
	}
	nodes, ours := p.nodes.All(), p.ours()
	for _, key := range slices.Sorted(maps.Keys(nodes)) {
		if id := nodes[key]; id != "" {
			known := of(id)
			known.VirtualNodes = append(known.VirtualNodes, path.Base(key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		known := of(ours[key].provider)
		known.Slices = append(known.Slices, ours[key].FederationSlice)
	}
	return all
}
