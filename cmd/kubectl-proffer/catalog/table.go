package catalog

import (
	"fmt"
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

// table has a row for each Offer. A wide one also has the other resources, what the consumer holds,
// and the provider's words.
func (c *Catalog) table(isWide bool, now time.Time) *output.Table {
	t := &output.Table{
		Header: []string{"PROVIDER", "CLASS", "CPU", "MEMORY", "PODS", "LARGEST-POD", "PRICE", "VALID-UNTIL", "AGE"},
		Text:   isWide,
	}
	if isWide {
		t.Header = slices.Insert(t.Header, 5, "OTHERS", "HELD", "CEILING")
		t.Header = append(t.Header, "DETAILS")
	}
	for i := range c.Providers {
		for j := range c.Providers[i].Offers {
			e := &c.Providers[i].Offers[j]
			cells := []string{
				c.Providers[i].ClusterID, e.Class,
				amount(e.Available, corev1.ResourceCPU), amount(e.Available, corev1.ResourceMemory), amount(e.Available, corev1.ResourcePods),
				amounts(only(e.LargestPod, corev1.ResourceCPU, corev1.ResourceMemory)), e.Price, validity(e), age(now, e.ObservedTime),
			}
			if isWide {
				cells[5] = amounts(without(e.LargestPod, corev1.ResourcePods))
				cells = slices.Insert(cells, 5, amounts(without(e.Available, required...)), amounts(e.Held), amounts(e.Ceiling))
				cells = append(cells, details(e))
			}
			row := output.Row{Cells: cells}
			if e.Expired {
				row.Style = output.Red
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// validity returns until when an Offer is kept up to date.
func validity(e *Entry) string {
	if e.Expired {
		return "expired"
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
	add("labels: ", pairs(e.Labels))
	add("reason: ", string(e.Reason))
	add("", e.Message)
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
	texts := make([]string, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		texts = append(texts, string(name)+"="+amount(of, name))
	}
	return strings.Join(texts, ",")
}

func only(of v1alpha1.Quantities, names ...corev1.ResourceName) v1alpha1.Quantities {
	of = maps.Clone(of)
	maps.DeleteFunc(of, func(name corev1.ResourceName, _ v1alpha1.Quantity) bool { return !slices.Contains(names, name) })
	return of
}

func without(of v1alpha1.Quantities, names ...corev1.ResourceName) v1alpha1.Quantities {
	of = maps.Clone(of)
	maps.DeleteFunc(of, func(name corev1.ResourceName, _ v1alpha1.Quantity) bool { return slices.Contains(names, name) })
	return of
}

func pairs(labels v1alpha1.Labels) string {
	texts := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, fmt.Sprintf("%s=%s", key, labels[key]))
	}
	return strings.Join(texts, ",")
}
