// Package kept keeps the data of one object, and undoes what others write there.
package kept

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/leading"
	"proffer.dev/proffer/internal/kube/restore"
)

// Object is the object to keep. Its data is a map of texts.
type Object struct {
	Client   dynamic.Interface
	Resource schema.GroupVersionResource
	Kind     string
	Name     types.NamespacedName
	Pacer    *restore.Pacer
	Log      logr.Logger
	// Content names the data in log lines and errors, such as "the list of placements".
	Content string
	// Mark is the key of an entry that binds the data to the object, "" for none. The entry names the uid and
	// the generation with which the data was written. The API server changes the generation with each change
	// of the data, so that the entry fits neither a copy of earlier data nor what others write.
	Mark string

	// Controller calls the reconciler.
	*leading.Controller
	trigger  *leading.Trigger
	informer leading.Informer
	// version is the one that was last written or read, empty for none.
	version string
}

// Control sets the controller of the object. The reconciler is called after Wake, which is debounced
// by this period, and when the object has changed. It reads the object with Present, and writes it with
// Amend.
func (o *Object) Control(name string, period time.Duration, reconciler reconcile.Reconciler) {
	o.trigger = leading.NewTrigger(period, leading.Single(o.Name))
	o.informer = leading.Informer{Client: o.Client, Log: o.Log, Kind: kube.Kind{
		GroupVersionResource: o.Resource, Namespace: o.Name.Namespace, Name: o.Name.Name,
	}}
	o.Controller = &leading.Controller{
		Name: name, Reconciler: reconciler, Sources: []source.Source{o.trigger, &o.informer}, Log: o.Log,
	}
}

// Wake schedules a call of the reconciler. It never blocks.
func (o *Object) Wake() { o.trigger.Wake() }

// Present returns the object and its data, nil if there is none.
func (o *Object) Present(ctx context.Context) (*unstructured.Unstructured, map[string]string, error) {
	object, err := o.latest(ctx)
	if err != nil {
		return nil, nil, err
	}
	data, err := dataOf(object)
	return object, data, err
}

// latest returns the object. The watch may not have brought the last write yet. If etcd is restored from a backup, it
// never does, because versions begin again at an earlier one. So the API server is asked if an earlier one was seen.
func (o *Object) latest(ctx context.Context) (*unstructured.Unstructured, error) {
	seen := o.informer.Get(o.Name)
	if o.version == "" {
		return seen, nil
	}
	if seen != nil {
		order, err := resourceversion.CompareResourceVersion(seen.GetResourceVersion(), o.version)
		if err == nil && order >= 0 {
			return seen, nil
		}
	}
	reading, cancel := context.WithTimeout(ctx, kube.APITimeout)
	defer cancel()
	var one metav1.ListOptions
	o.informer.Kind.Select(&one)
	list, err := o.Client.Resource(o.Resource).Namespace(o.Name.Namespace).List(reading, one)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", o.Content, err)
	}
	if o.version = ""; len(list.Items) == 0 {
		return nil, nil
	}
	o.version = list.Items[0].GetResourceVersion()
	return &list.Items[0], nil
}

// dataOf returns the data of an object, nil if there is no object.
func dataOf(object *unstructured.Unstructured) (map[string]string, error) {
	if object == nil {
		return nil, nil
	}
	data, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil {
		return nil, reconcile.TerminalError(err)
	}
	return data, nil
}

// Changes returns the changes for Amend after which the data has these entries and no others.
func Changes(data, want map[string]string) map[string]any {
	changes := map[string]any{}
	for key := range data {
		if _, stays := want[key]; !stays {
			changes[key] = nil
		}
	}
	for key, value := range want {
		if now, there := data[key]; !there || now != value {
			changes[key] = value
		}
	}
	return changes
}

// Wrote reports whether the data has the mark of a write after which others changed the data this many times.
func (o *Object) Wrote(object *unstructured.Unstructured, changes int64) bool {
	data, err := dataOf(object)
	return err == nil && object != nil && data[o.Mark] == markOf(object, object.GetGeneration()-changes)
}

// markOf returns the mark of the data that was written as this generation of the object.
func markOf(object *unstructured.Unstructured, generation int64) string {
	return fmt.Sprintf("%s/%d", object.GetUID(), generation)
}

// Amend makes these changes to the data of the object as it was before, nil for none. The object after is
// nil if that has to wait or failed. An entry with the value nil is removed. Content identifies the data as
// it is then.
func (o *Object) Amend(
	ctx context.Context, before *unstructured.Unstructured, changes map[string]any, content string,
) (after *unstructured.Unstructured, result reconcile.Result, err error) {
	key := o.Name.String()
	if wait := o.Pacer.Wait(key, content, time.Now()); wait > 0 {
		return nil, reconcile.Result{RequeueAfter: wait}, nil
	}
	writing, cancel := context.WithTimeout(ctx, kube.APITimeout)
	defer cancel()
	manager := ""
	if before == nil {
		after, err = o.create(writing, changes)
	} else {
		manager = restore.LastManager(before)
		after, err = o.patch(writing, before, changes)
	}
	if err != nil {
		err = fmt.Errorf("cannot write %s: %w", o.Content, err)
		if before == nil && apierrors.IsNotFound(err) { // Its kind or its namespace is missing: no watch brings that.
			return nil, reconcile.Result{}, err
		}
		result, err = leading.Written(ctx, err)
		return nil, result, err
	}
	o.version = after.GetResourceVersion()
	if restored := o.Pacer.Wrote(key, content, manager, time.Now()); !restored {
		o.Log.Info("Wrote "+o.Content, strings.ToLower(o.Kind), o.Name, "changes", len(changes), "created", before == nil)
	}
	return after, reconcile.Result{}, nil
}

// create creates the object, also after it was deleted. It uses apply, because RBAC can restrict apply to
// a name, but not a create request. Marked data is added by a second write, because its mark needs the uid.
func (o *Object) create(ctx context.Context, entries map[string]any) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if o.Mark == "" {
		u.Object["data"] = entries
	}
	u.SetGroupVersionKind(o.Resource.GroupVersion().WithKind(o.Kind))
	u.SetNamespace(o.Name.Namespace)
	u.SetName(o.Name.Name)
	objects := o.Client.Resource(o.Resource).Namespace(o.Name.Namespace)
	created, err := objects.Apply(ctx, o.Name.Name, u, metav1.ApplyOptions{FieldManager: kube.FieldManager})
	if err != nil || o.Mark == "" {
		return created, err
	}
	return o.patch(ctx, created, entries)
}

// patch makes these changes to the object at its version, and adds the mark.
func (o *Object) patch(
	ctx context.Context, object *unstructured.Unstructured, changes map[string]any,
) (*unstructured.Unstructured, error) {
	if o.Mark != "" {
		mark := markOf(object, object.GetGeneration()+1)
		if data, err := dataOf(object); err == nil && data[o.Mark] == mark {
			// Others have written it. If nothing else changed, the generation would not, so the mark goes first.
			if object, err = o.merge(ctx, object, map[string]any{o.Mark: nil}); err != nil {
				return nil, err
			}
			mark = markOf(object, object.GetGeneration()+1)
		}
		changes[o.Mark] = mark
	}
	return o.merge(ctx, object, changes)
}

// merge writes these changes.
func (o *Object) merge(
	ctx context.Context, object *unstructured.Unstructured, changes map[string]any,
) (*unstructured.Unstructured, error) {
	objects := o.Client.Resource(o.Resource).Namespace(o.Name.Namespace)
	return kube.MergePatch(ctx, objects, o.Name.Name, map[string]any{
		"metadata": map[string]any{"resourceVersion": object.GetResourceVersion()}, "data": changes,
	})
}
