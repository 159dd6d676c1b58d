package classlist

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"proffer.dev/proffer/internal/kube/kept"
	"proffer.dev/proffer/internal/offer"
	"proffer.dev/proffer/internal/table"
)

// servedByProffer is the value of the entries that the operator keeps. Entries with any other value belong
// to others.
const servedByProffer = "proffer"

// servedClasses returns the classes of the policies in force, of those that are awaited and the given others,
// sorted, each once. It omits the unnamed class, which is for Liqo v0.
func servedClasses(list []table.Policy, awaited map[string]offer.Awaited, others []string) []string {
	classes := sets.New(others...)
	add := func(p *offer.Policy) {
		if p != nil && !p.DryRun && p.Class != "" {
			classes.Insert(p.Class)
		}
	}
	for i := range list {
		add(list[i].Parsed)
	}
	for _, p := range awaited {
		add(p.Policy)
	}
	return sets.List(classes)
}

// amendments returns the changes after which the list has these classes. Entries of others stay,
// also for a class that both serve.
func amendments(listed map[string]string, served []string) map[string]any {
	want := map[string]string{}
	for class, by := range listed {
		if by != servedByProffer {
			want[class] = by
		}
	}
	for _, class := range served {
		if _, theirs := want[class]; !theirs {
			want[class] = servedByProffer
		}
	}
	return kept.Changes(listed, want)
}
