package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/source/federation"
)

// header returns the header of the table.
func header(format string, fits bool) []string {
	others, nodes, last := []string(nil), []string(nil), "PRICE"
	if format == output.Wide {
		others, last = []string{"OTHERS"}, "DETAILS"
	}
	if fits {
		nodes = []string{"NODES"}
	}
	return slices.Concat([]string{"PROVIDER", "CLASS", "CPU", "MEMORY", "PODS"}, others, []string{"LARGEST-POD"}, nodes,
		[]string{"VALID-UNTIL", "AGE", last})
}

// table has a row for each Offer, with the number of nodes for one pod if amounts have to fit. In
// format output.Wide it has exact amounts, the other resources, and everything else that the
// provider says.
func table(c *rest.Federation, format string, fits bool, now time.Time) *output.Table {
	t := &output.Table{Header: header(format, fits), Text: true}
	for i := range c.Providers {
		for j := range c.Providers[i].Offers {
			e := &c.Providers[i].Offers[j]
			texts := output.Notation(format, "").Lists(federation.AmountsOf(e.Available), federation.AmountsOf(e.LargestPod))
			available, largest := texts[0], texts[1]
			row := output.Row{Red: e.Expired, Cells: []string{
				c.Providers[i].ClusterID, e.Class,
				available[capacity.CPU], available[capacity.Memory], available[capacity.Pods],
			}}
			last := e.Price
			if format == output.Wide {
				maps.DeleteFunc(available, func(name, _ string) bool {
					return slices.Contains(federation.Required, corev1.ResourceName(name))
				})
				delete(largest, capacity.Pods)
				row.Cells, last = append(row.Cells, output.Pairs(available)), details(e)
			} else {
				maps.DeleteFunc(largest, func(name, _ string) bool { return name != capacity.CPU && name != capacity.Memory })
			}
			row.Cells = append(row.Cells, output.Pairs(largest))
			if fits {
				row.Cells = append(row.Cells, nodesText(e.FitNodes))
			}
			row.Cells = append(row.Cells, validity(e, now), age(now, e.ObservedTime), last)
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// nodesText writes a number of nodes, empty for an unknown one.
func nodesText(nodes *int) string {
	if nodes == nil {
		return ""
	}
	return strconv.Itoa(*nodes)
}

// sameDay is the largest distance of a time that is shown without its date.
const sameDay = 12 * time.Hour

// validity returns until when an Offer is kept up to date.
func validity(e *rest.FederationOffer, now time.Time) string {
	switch {
	case e.Expired:
		return "expired"
	case e.ValidUntil.Sub(now) < sameDay:
		return e.ValidUntil.UTC().Format("15:04:05Z")
	}
	return e.ValidUntil.UTC().Format(time.RFC3339)
}

// age returns how long ago the amounts were worked out. The clock of the provider may be ahead.
func age(now time.Time, observed metav1.Time) string {
	return duration.HumanDuration(max(0, now.Sub(observed.Time)))
}

// details are the provider's words, a line for each kind.
func details(e *rest.FederationOffer) string {
	var lines []string
	add := func(title, text string) {
		if text != "" {
			lines = append(lines, title+text)
		}
	}
	add("", string(e.Title))
	add("price: ", e.Price)
	add("labels: ", output.Pairs(e.Labels))
	add("reason: ", string(e.Reason))
	add("", e.Message)
	add("nodes: ", shapesOf(e))
	add("held: ", exact(e.Held))
	add("ceiling: ", exact(e.Ceiling))
	add("on excess: ", string(e.OnExcess))
	add("defaults: ", exact(e.Defaults))
	add("providers: ", providersOf(e))
	add("storage classes: ", kube.First(e.StorageClasses))
	add("ingress classes: ", kube.First(e.IngressClasses))
	add("load balancer classes: ", kube.First(e.LoadBalancerClasses))
	add("", string(e.URL))
	return strings.Join(lines, "\n")
}

// shapesOf counts nodes by what is free on each of them, as in "7 with cpu=20,memory=200Gi; 1 with
// cpu=8".
func shapesOf(e *rest.FederationOffer) string {
	texts := make([]string, len(e.Shapes))
	for i, shape := range e.Shapes {
		texts[i] = fmt.Sprintf("%d with %s", shape.Nodes, exact(shape.Free))
	}
	return strings.Join(texts, "; ")
}

// providersOf lists who stands behind an Offer, with the prices of cpu.
func providersOf(e *rest.FederationOffer) string {
	ids := make([]string, len(e.Providers))
	for i := range e.Providers {
		ids[i] = e.Providers[i].ClusterID
		if price := e.Providers[i].Prices[corev1.ResourceCPU]; price != "" {
			ids[i] += fmt.Sprintf(" (cpu %s %s)", price, e.Providers[i].Currency)
		}
	}
	return strings.Join(ids, ", ")
}

// amounts returns amounts as they are written, as in cpu=2,memory=4Gi, sorted by resource.
func amounts(of v1alpha1.Quantities) string {
	texts := make(map[corev1.ResourceName]string, len(of))
	for name, q := range of {
		texts[name] = q.Text()
	}
	return output.Pairs(texts)
}

// exact is amounts in the notation of the table.
func exact(of v1alpha1.Quantities) string {
	return output.Pairs(output.Notation(output.Wide, "").Lists(federation.AmountsOf(of))[0])
}
