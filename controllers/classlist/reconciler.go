// Package classlist maintains the list of the classes that policies offer. An admission policy
// checks ResourceSlices against it. It is an AdmissionParams with one entry per class, whose value
// names the program that serves the class.
package classlist

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/debounce"
	"proffer.dev/proffer/internal/kube/kept"
	"proffer.dev/proffer/internal/kube/restore"
	"proffer.dev/proffer/internal/table"
)

const (
	// debouncePeriod is short: consumers that ask for a new class wait for it.
	debouncePeriod = 50 * time.Millisecond

	// servedByProffer is the value of the entries that the operator keeps. Entries with any other
	// value belong to others.
	servedByProffer = "proffer"
)

var paramsResource = v1alpha1.GroupVersion.WithResource("admissionparams")

// Writer keeps the list. It is work for the leader.
type Writer struct {
	list      kept.Object
	table     *table.Table
	others    []string
	debouncer *debounce.Debouncer
}

// NewWriter returns a Writer of the AdmissionParams of this name. It also lists the classes of others.
func NewWriter(
	client dynamic.Interface, list types.NamespacedName, from *table.Table, others []string, restores restore.Restores,
	log logr.Logger,
) *Writer {
	const kind = "AdmissionParams"
	return &Writer{
		list: kept.Object{
			Client: client, Resource: paramsResource, Kind: kind, Name: list, Pacer: restores.Pacer(kind, log), Log: log,
			Wrote: "Wrote the list of served classes", Failed: "Cannot write the list of served classes; will retry",
		},
		table: from, others: others, debouncer: debounce.New(debouncePeriod),
	}
}

// Wake schedules a check of the list. It never blocks.
func (w *Writer) Wake() { w.debouncer.Wake() }

// Start writes until the context ends, and can be started again. It watches this one object to
// undo changes by others. Until the list exists, the admission policy refuses all writes of
// ResourceSlices, even Liqo's own.
func (w *Writer) Start(ctx context.Context) error { return w.list.Keep(ctx, w.debouncer, w.write) }

// write brings the list up to date, or returns how long that has to wait.
func (w *Writer) write(ctx context.Context, present *unstructured.Unstructured) (wait time.Duration, err error) {
	latest := w.table.Current()
	if latest == nil {
		return 0, nil // Before every policy has been seen, the class of one could be removed by mistake.
	}
	served := servedClasses(latest.Policies, w.others)
	changes := amendments(nil, served)
	if present != nil {
		listed, _, err := unstructured.NestedStringMap(present.Object, "data")
		if err != nil {
			return 0, err
		}
		if changes = amendments(listed, served); len(changes) == 0 {
			return 0, nil
		}
	}
	_, wait, err = w.list.Amend(ctx, present, changes, strings.Join(served, ","))
	return wait, err
}

// servedClasses returns the classes of the policies in force and the given others, sorted, each once.
// It omits the unnamed class, which is for Liqo v0.
func servedClasses(list []table.Policy, others []string) []string {
	classes := map[string]struct{}{}
	for _, class := range others {
		classes[class] = struct{}{}
	}
	for i := range list {
		if parsed := list[i].Parsed; parsed != nil && !parsed.DryRun && parsed.Class != "" {
			classes[parsed.Class] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(classes))
}

// amendments returns the changes after which the list has these classes. Entries of others stay,
// also for a class that both serve.
func amendments(listed map[string]string, served []string) map[string]any {
	changes := map[string]any{}
	for class, by := range listed {
		if by == servedByProffer && !slices.Contains(served, class) {
			changes[class] = nil
		}
	}
	for _, class := range served {
		if _, there := listed[class]; !there {
			changes[class] = servedByProffer
		}
	}
	return changes
}
