package orchestration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/broker"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/quantity"
)

// maxLatencyAge is the maximum age of a latency. Liqo's gateways update it every ten seconds by
// default.
const maxLatencyAge = 5 * time.Minute

// podPage is the number of pods that one request reads.
const podPage = 500

// asScheduler counts requests like kube-scheduler with its default feature gates.
var asScheduler = podresource.PodResourcesOptions{
	UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
}

// bound are the pods on virtual nodes that are not finished.
type bound struct {
	// requests are sums by node, and pods numbers by node and namespace.
	requests map[string]capacity.Amounts
	pods     map[string]map[string]int
}

// podsOn reads the pods on these nodes. No label decides what counts: a consumer may set any label of
// its pods.
func podsOn(ctx context.Context, api client.Reader, names []string) (*bound, error) {
	b := &bound{requests: map[string]capacity.Amounts{}, pods: map[string]map[string]int{}}
	for _, name := range names {
		b.requests[name], b.pods[name] = capacity.Amounts{}, map[string]int{}
		for token, more := "", true; more; more = token != "" {
			var page corev1.PodList
			if err := api.List(ctx, &page,
				client.MatchingFields{"spec.nodeName": name}, client.Limit(podPage), client.Continue(token)); err != nil {
				return nil, fmt.Errorf("listing the pods on virtual node %s: %w", name, err)
			}
			for i := range page.Items {
				b.add(name, &page.Items[i])
			}
			token = page.Continue
		}
	}
	return b, nil
}

func (b *bound) add(node string, p *corev1.Pod) {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	b.pods[node][p.Namespace]++
	sum := b.requests[node]
	for name, v := range quantity.AmountsOf(podresource.PodRequests(p, asScheduler), quantity.Up) {
		sum[name] = capacity.Sum(sum[name], v)
	}
	sum[capacity.Pods]++
}

// provider is a provider with what is measured of it, apart from its uptime, which each Orchestration
// keeps for itself.
type provider struct {
	broker.Provider
	// ready is set while one of its virtual nodes is Ready.
	ready bool
	nodes []string
	// expires is when the first of its values is no longer measured, zero for never.
	expires time.Time
	// offers are the Offers of the classes that this cluster has there.
	offers []rest.FederationOffer
}

// providers returns the providers with virtual nodes, by ID. Without pods, what remains is not
// measured.
func (c *caches) providers(pods *bound, now time.Time) []provider {
	behind := map[string]virtualNode{}
	for key, v := range c.virtualNodes.All() {
		behind[path.Base(key)] = v
	}
	byID := map[string]*provider{}
	nodes := c.nodes.All()
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		v, known := behind[name]
		if !known || !isID(v.cluster) {
			continue
		}
		p := byID[v.cluster]
		if p == nil {
			p = &provider{Provider: broker.Provider{
				ID: v.cluster, Labels: map[string]string{}, Values: map[broker.Measure]int64{},
				Notes: map[broker.Measure]string{},
			}}
			byID[v.cluster] = p
		}
		p.add(n, v, pods, len(p.nodes) == 0)
	}
	latencies, annotated := c.latencies(now), c.annotated()
	out := make([]provider, 0, len(byID))
	for id, p := range byID {
		if latency, measured := latencies[id]; measured {
			p.Values[broker.Measure{KPI: broker.Latency}] = latency
		}
		p.addAnnotations(annotated[id], now)
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b provider) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// add adds a virtual node. The nodes come sorted by name.
func (p *provider) add(n node, v virtualNode, pods *bound, first bool) {
	p.nodes = append(p.nodes, n.name)
	why := unusable(p.ID, n, v)
	switch {
	case why == "":
		p.Unusable = ""
	case first:
		p.Unusable = why
	}
	if n.labels[liqo.RemoteClusterIDLabel] != p.ID {
		return // Its labels are not to be trusted.
	}
	p.ready = p.ready || n.ready
	for key, value := range n.labels {
		if _, set := p.Labels[key]; !set {
			p.Labels[key] = value
		}
	}
	if why != "" || pods == nil || pods.requests[n.name] == nil {
		return
	}
	for name, amount := range n.allocatable {
		m := broker.Measure{KPI: broker.Remaining, Of: name}
		p.Values[m] = capacity.Sum(p.Values[m], max(0, amount-pods.requests[n.name][name]))
	}
}

// addAnnotations adds what an admin has written of the provider.
func (p *provider) addAnnotations(f foreignCluster, now time.Time) {
	for name, price := range f.prices {
		m := broker.Measure{KPI: broker.Price, Of: name}
		if p.Notes[m] = price.problem; price.problem == "" {
			p.Values[m], p.Notes[m] = price.value, "of its annotation"
		}
	}
	for name, got := range f.measured {
		expired := got.problem == "" && !now.Before(got.until)
		if expired {
			got.problem = "its annotation has expired at " + got.until.Format(time.RFC3339)
		} else if got.problem == "" && (p.expires.IsZero() || got.until.Before(p.expires)) {
			p.expires = got.until
		}
		for _, kpi := range []broker.KPI{broker.MeasuredLower, broker.MeasuredHigher} {
			m := broker.Measure{KPI: kpi, Of: name}
			if got.problem != "" {
				p.Notes[m] = got.problem
			} else {
				p.Values[m] = got.value
			}
		}
	}
}

// unusable returns why a virtual node cannot be used, empty if it can.
func unusable(id string, n node, v virtualNode) string {
	switch claimed := n.labels[liqo.RemoteClusterIDLabel]; {
	case id == broker.None:
		return "its ID stands for no provider"
	case claimed != id:
		return fmt.Sprintf("its virtual node %s has the label %s=%s of another cluster",
			n.name, liqo.RemoteClusterIDLabel, claimed)
	case v.deleting:
		return fmt.Sprintf("its virtual node %s is drained", n.name)
	case !n.ready:
		return fmt.Sprintf("its virtual node %s is not Ready", n.name)
	case n.cordoned:
		return fmt.Sprintf("its virtual node %s is cordoned", n.name)
	}
	return ""
}

// latencies returns the latency to each cluster in microseconds, the largest if there are several
// connections.
func (c *caches) latencies(now time.Time) map[string]int64 {
	out := map[string]int64{}
	for _, connection := range c.connections.All() {
		if connection.latency > 0 && now.Sub(connection.measured) <= maxLatencyAge {
			out[connection.cluster] = max(out[connection.cluster], connection.latency)
		}
	}
	return out
}

// annotated returns what the first ForeignCluster of each provider has.
func (c *caches) annotated() map[string]foreignCluster {
	out := map[string]foreignCluster{}
	clusters := c.foreignClusters.All()
	for _, key := range slices.Sorted(maps.Keys(clusters)) {
		if _, known := out[clusters[key].cluster]; !known {
			out[clusters[key].cluster] = clusters[key]
		}
	}
	return out
}

// running returns the numbers of pods that are not finished, by namespace and provider, nil if the
// pods are not known.
func running(all []provider, pods *bound) map[string]map[string]int {
	if pods == nil {
		return nil
	}
	out := map[string]map[string]int{}
	for _, p := range all {
		for _, name := range p.nodes {
			for ns, n := range pods.pods[name] {
				if out[ns] == nil {
					out[ns] = map[string]int{}
				}
				out[ns][p.ID] += n
			}
		}
	}
	return out
}
