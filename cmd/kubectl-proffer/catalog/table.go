package catalog

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/output"
	"proffer.dev/proffer/internal/kube"
)

// table has a row for each Offer. A wide one also has the other resources, and everything else that
// the provider says.
func (c *Catalog) table(isWide bool, now time.Time) *output.Table {
	t := &output.Table{
		Header: []string{"PROVIDER", "CLASS", "CPU", "MEMORY", "PODS", "LARGEST-POD", "VALID-UNTIL", "AGE", "PRICE"},
		Text:   true,
	}
	if isWide {
		t.Header = []string{
			"PROVIDER", "CLASS", "CPU", "MEMORY", "PODS", "OTHERS", "LARGEST-POD", "VALID-UNTIL", "AGE", "DETAILS",
		}
	}
	for i := range c.Providers {
		for j := range c.Providers[i].Offers {
			e := &c.Providers[i].Offers[j]
			row := output.Row{Red: e.Expired, Cells: []string{
				c.Providers[i].ClusterID, e.Class,
				amount(e.Available, corev1.ResourceCPU), amount(e.Available, corev1.ResourceMemory),
				amount(e.Available, corev1.ResourcePods),
			}}
			if isWide {
				row.Cells = append(row.Cells, amounts(omitNames(e.Available, required...)),
					amounts(omitNames(e.LargestPod, corev1.ResourcePods)), validity(e, now), age(now, e.ObservedTime), details(e))
			} else {
				row.Cells = append(row.Cells, amounts(selectNames(e.LargestPod, corev1.ResourceCPU, corev1.ResourceMemory)),
					validity(e, now), age(now, e.ObservedTime), e.Price)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// sameDay is the largest distance of a time that is shown without its date.
const sameDay = 12 * time.Hour

// validity returns until when an Offer is kept up to date.
func validity(e *Entry, now time.Time) string {
	switch {
	case e.Expired:
		return "expired"
	case e.ValidUntil.Sub(now) < sameDay:
		return e.ValidUntil.UTC().Format("15:04:05Z")
	}
	return stamp(e.ValidUntil)
}

func stamp(t metav1.Time) string { return t.UTC().Format(time.RFC3339) }

// age returns how long ago the amounts were worked out. The clock of the provider may be ahead.
func age(now time.Time, observed metav1.Time) string {
	return duration.HumanDuration(max(0, now.Sub(observed.Time)))
}

// details are the provider's words, a line for each kind.
func details(e *Entry) string {
	var lines []string
	add := func(title, text string) {
		if text != "" {
			lines = append(lines, title+text)
		}
	}
	add("", string(e.Title))
	add("price: ", e.Price)
	add("labels: ", output.Pairs(e.Labels, func(value v1alpha1.LabelValue) string { return string(value) }))
	add("reason: ", string(e.Reason))
	add("", e.Message)
	add("held: ", amounts(e.Held))
	add("ceiling: ", amounts(e.Ceiling))
	add("on excess: ", string(e.OnExcess))
	add("defaults: ", amounts(e.Defaults))
	add("storage classes: ", kube.First(e.StorageClasses))
	add("ingress classes: ", kube.First(e.IngressClasses))
	add("load balancer classes: ", kube.First(e.LoadBalancerClasses))
	add("", string(e.URL))
	return strings.Join(lines, "\n")
}

// amount returns the amount of a resource, empty if there is none.
func amount(of v1alpha1.Quantities, name corev1.ResourceName) string {
	q, ok := of[name]
	if !ok {
		return ""
	}
	return q.Text()
}

// amounts returns amounts as in cpu=2,memory=4Gi, sorted by resource.
func amounts(of v1alpha1.Quantities) string {
	return output.Pairs(of, func(q v1alpha1.Quantity) string { return q.Text() })
}

func selectNames(of v1alpha1.Quantities, names ...corev1.ResourceName) v1alpha1.Quantities {
	of = maps.Clone(of)
	maps.DeleteFunc(of, func(name corev1.ResourceName, _ v1alpha1.Quantity) bool { return !slices.Contains(names, name) })
	return of
}

func omitNames(of v1alpha1.Quantities, names ...corev1.ResourceName) v1alpha1.Quantities {
	of = maps.Clone(of)
	maps.DeleteFunc(of, func(name corev1.ResourceName, _ v1alpha1.Quantity) bool { return slices.Contains(names, name) })
	return of
}
