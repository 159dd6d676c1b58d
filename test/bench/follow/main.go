// Command follow watches a cluster in place of the operator. Its arguments are a way and the path of a
// kubeconfig. It writes a line once it knows all objects, and answers each line of its input with the
// bytes of its live heap. It ends with its input.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/test/bench/population"
)

// ways are the ways to learn a cluster's nodes and pods that are compared with the operator's. All of
// them request the same objects in protobuf, and call known when they have all.
var ways = map[string]func(ctx context.Context, config *rest.Config, known func()) error{
	// client-go's reflector, which decodes whole objects, with a store that keeps only entries.
	"reflector": reflector(entryOf),
	// The same, but it keeps reduced objects until all have arrived, and only then builds the entries.
	"stripped": reflector(stripped),
	// controller-runtime's cache with a transform that reduces the objects.
	"cache": cacheObjects,
	// Lists whose bytes are discarded: the lower bound of a start.
	"list": readLists,
	// A watch of pods whose bytes are discarded: the lower bound of an event.
	"watch": readWatch,
}

// podFields selects the pods that are bound and not finished.
const podFields = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

func main() {
	log.SetLogger(logr.Discard()) // errors are returned
	if err := follow(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "follow:", err)
		os.Exit(1)
	}
}

func follow(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("want a way and the path of a kubeconfig")
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[1])
	if err != nil {
		return err
	}
	config.ContentType, config.AcceptContentTypes = kuberuntime.ContentTypeProtobuf, kuberuntime.ContentTypeProtobuf
	way := ways[args[0]]
	if way == nil {
		return fmt.Errorf("unknown way %q", args[0])
	}
	ctx, cancel := context.WithCancel(context.Background())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return way(ctx, config, func() { fmt.Fprintln(out, "known") }) })
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		fmt.Fprintln(out, stats.HeapAlloc)
	}
	cancel()
	return group.Wait()
}

// entry is the part of a pod or a node that accounting needs.
type entry struct {
	key, node, consumer string
	cpu, memory         int64
}

func entryOf(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.Pod:
		e := &entry{key: string(o.UID), node: o.Spec.NodeName, consumer: o.Labels["offloading.liqo.io/origin"]}
		for i := range o.Spec.Containers {
			e.cpu += o.Spec.Containers[i].Resources.Requests.Cpu().MilliValue()
			e.memory += o.Spec.Containers[i].Resources.Requests.Memory().Value()
		}
		return e, nil
	case *corev1.Node:
		allocatable := o.Status.Allocatable
		return &entry{key: o.Name, cpu: allocatable.Cpu().MilliValue(), memory: allocatable.Memory().Value()}, nil
	}
	return obj, nil
}

// account is a reflector's store. A reflector calls it from one goroutine.
type account struct {
	known func()
	// keep reduces the first objects until all have arrived.
	keep    toolscache.TransformFunc
	entries map[string]entry
	// cpu is one sum; it stands for those that an operator adds up.
	cpu int64
}

// Transformer implements toolscache.TransformingStore.
func (a *account) Transformer() toolscache.TransformFunc { return a.keep }

func (a *account) Add(obj any) error {
	e, err := a.entry(obj)
	if err == nil {
		a.cpu += e.cpu - a.entries[e.key].cpu
		a.entries[e.key] = *e
	}
	return err
}

func (a *account) Update(obj any) error { return a.Add(obj) }

func (a *account) Delete(obj any) error {
	e, err := a.entry(obj)
	if err == nil {
		a.cpu -= a.entries[e.key].cpu
		delete(a.entries, e.key)
	}
	return err
}

func (a *account) Replace(objs []any, _ string) error {
	a.entries, a.cpu = make(map[string]entry, len(objs)), 0
	for _, obj := range objs {
		if err := a.Add(obj); err != nil {
			return err
		}
	}
	a.known()
	return nil
}

func (a *account) Resync() error { return nil }

func (a *account) entry(obj any) (*entry, error) {
	small, err := entryOf(obj)
	if err != nil {
		return nil, err
	}
	e, ok := small.(*entry)
	if !ok {
		return nil, fmt.Errorf("%T is neither a pod nor a node", obj)
	}
	return e, nil
}

// reflector returns a way that keeps one account of pods and one of nodes.
func reflector(keep toolscache.TransformFunc) func(context.Context, *rest.Config, func()) error {
	return func(ctx context.Context, config *rest.Config, known func()) error {
		core, err := population.Core(config)
		if err != nil {
			return err
		}
		var missing atomic.Int32
		missing.Store(2)
		newAccount := func() *account {
			return &account{keep: keep, known: sync.OnceFunc(func() {
				if missing.Add(-1) == 0 {
					known()
				}
			})}
		}
		selected := func(o *metav1.ListOptions) { o.FieldSelector = podFields }
		nodes := toolscache.NewListWatchFromClient(core, "nodes", "", fields.Everything())
		pods := toolscache.NewFilteredListWatchFromClient(core, "pods", "", selected)
		var group sync.WaitGroup
		group.Go(func() { toolscache.NewReflector(nodes, &corev1.Node{}, newAccount(), 0).RunWithContext(ctx) })
		group.Go(func() { toolscache.NewReflector(pods, &corev1.Pod{}, newAccount(), 0).RunWithContext(ctx) })
		group.Wait()
		return nil
	}
}

// cacheObjects keeps reduced objects in controller-runtime's cache.
func cacheObjects(ctx context.Context, config *rest.Config, known func()) error {
	podField, err := fields.ParseSelector(podFields)
	if err != nil {
		return err
	}
	objects, err := cache.New(config, cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Node{}: {Transform: stripped}, &corev1.Pod{}: {Transform: stripped, Field: podField},
	}})
	if err != nil {
		return err
	}
	for _, obj := range []client.Object{&corev1.Node{}, &corev1.Pod{}} {
		if _, err := objects.GetInformer(ctx, obj, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return objects.Start(ctx) })
	if objects.WaitForCacheSync(ctx) {
		known()
	}
	return group.Wait()
}

// stripped removes from an object everything that accounting does not need.
func stripped(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.Pod:
		o.ManagedFields, o.Annotations, o.OwnerReferences = nil, nil, nil
		containers := make([]corev1.Container, len(o.Spec.Containers))
		for i, c := range o.Spec.Containers {
			containers[i] = corev1.Container{Name: c.Name,
				Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests}}
		}
		o.Labels = map[string]string{"offloading.liqo.io/origin": o.Labels["offloading.liqo.io/origin"]}
		o.Spec = corev1.PodSpec{NodeName: o.Spec.NodeName, Containers: containers}
		o.Status = corev1.PodStatus{Phase: o.Status.Phase}
	case *corev1.Node:
		o.ManagedFields, o.Annotations = nil, nil
		o.Spec, o.Status = corev1.NodeSpec{Taints: o.Spec.Taints}, corev1.NodeStatus{Allocatable: o.Status.Allocatable}
	}
	return obj, nil
}

// readLists reads the complete lists of nodes and pods.
func readLists(ctx context.Context, config *rest.Config, known func()) error {
	config = rest.CopyConfig(config)
	config.DisableCompression = true // so that the API server spends no time on it
	core, err := population.Core(config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for resource, selectors := range map[string]map[string]string{"nodes": {}, "pods": {"fieldSelector": podFields}} {
		group.Go(func() error {
			request := core.Get().Resource(resource)
			for name, value := range selectors {
				request.Param(name, value)
			}
			return drain(ctx, request)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	known()
	return nil
}

// readWatch reads a watch of pods until the context ends.
func readWatch(ctx context.Context, config *rest.Config, known func()) error {
	core, err := population.Core(config)
	if err != nil {
		return err
	}
	// Only events from now on.
	now := &corev1.PodList{}
	if err := core.Get().Resource("pods").Param("limit", "1").Do(ctx).Into(now); err != nil {
		return err
	}
	request := core.Get().Resource("pods").Param("watch", "true").Param("resourceVersion", now.ResourceVersion).
		Param("fieldSelector", podFields)
	known()
	if err := drain(ctx, request); ctx.Err() == nil {
		return fmt.Errorf("the watch ended: %w", err)
	}
	return nil
}

func drain(ctx context.Context, request *rest.Request) error {
	body, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}
