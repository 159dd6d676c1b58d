package slice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/internal/kube/jsonstream"
	"proffer.dev/proffer/internal/kube/liqo"
)

// Clients read and write Liqo's objects, and objects of Kubernetes that are read without their Go
// types.
type Clients struct {
	dynamic.Interface
	// slices reads ResourceSlices, and keeps less of them than the dynamic client would.
	slices *sliceClient
}

// NewClients returns the clients for this API server.
func NewClients(config *rest.Config, httpClient *http.Client) (*Clients, error) {
	config = dynamic.ConfigFor(config)
	config.GroupVersion, config.APIPath = nil, "/apis"
	api, err := rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	return &Clients{Interface: dynamic.New(api), slices: &sliceClient{api: api}}, nil
}

// sliceStream returns what informers read slices from. Read slice by slice, a list takes no more memory than
// the stream of initial events that client-go would request. Nil Clients are for tests that follow none.
func (c *Clients) sliceStream() toolscache.ListerWatcher {
	if c == nil {
		return nil
	}
	return kube.ListThenWatch{ListWatch: &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.slices.list(ctx, o)
		},
		WatchFuncWithContext: c.slices.watch,
	}}
}

// sliceClient reads and writes ResourceSlices. What it returns of one is bounded, whatever a
// consumer fills it with: see decodeSlice. So is the memory that reading takes.
type sliceClient struct{ api rest.Interface }

// path returns the path of all slices, of all in a namespace, or of one and its subresource in it.
func (c *sliceClient) path(namespace string, names ...string) string {
	all := []string{"/apis", liqo.ResourceSlices.Group, liqo.ResourceSlices.Version}
	if namespace != "" {
		all = append(all, "namespaces", namespace)
	}
	return path.Join(append(append(all, liqo.ResourceSlices.Resource), names...)...)
}

// get requests all slices.
func (c *sliceClient) get(ctx context.Context, o metav1.ListOptions) (io.ReadCloser, error) {
	return c.api.Get().AbsPath(c.path("")).
		SpecificallyVersionedParams(&o, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		Stream(ctx)
}

// list returns the slices as decodeSlice keeps them.
func (c *sliceClient) list(ctx context.Context, o metav1.ListOptions) (_ *unstructured.UnstructuredList, err error) {
	body, err := c.get(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	all, err := readSlices(body)
	if err != nil {
		return nil, fmt.Errorf("reading the list of slices: %w", err)
	}
	return all, nil
}

// watch returns the changes of slices. It ends when it is stopped, when the context ends, or with
// its connection, like any watch of client-go.
func (c *sliceClient) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	body, err := c.get(ctx, o)
	if err != nil {
		return nil, err
	}
	return watch.NewStreamWatcher(
		&sliceEvents{body: body, Reader: jsonstream.NewReader(body)},
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding"),
	), nil
}

// each visits every slice, read from the API server and not from a cache. If the kind is not
// defined there are none.
func (c *sliceClient) each(ctx context.Context, visit func(slice)) error {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return c.list(ctx, o) })
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("a list of slices contains a %T", object)
		}
		visit(parseSlice(u))
		return nil
	})
	return client.IgnoreNotFound(err)
}

// patchStatus applies a JSON patch to the status of a slice, and returns the result as decodeSlice
// keeps it.
func (c *sliceClient) patchStatus(
	ctx context.Context, namespace, name string, patch []byte,
) (_ *unstructured.Unstructured, err error) {
	body, err := c.api.Patch(types.JSONPatchType).AbsPath(c.path(namespace, name, "status")).Body(patch).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	u, err := decodeSlice(jsonstream.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("reading a slice that was written: %w", err)
	}
	return u, nil
}

// readSlices reads a list while it arrives. It holds in memory only what is kept of the slices.
func readSlices(from io.Reader) (*unstructured.UnstructuredList, error) {
	r := jsonstream.NewReader(from)
	all := &unstructured.UnstructuredList{Object: map[string]any{}}
	isList := false
	_, err := r.Members(func(key string) error {
		switch key {
		case "apiVersion", "kind", "metadata":
			value, _, err := r.Value(maxListMetadata)
			all.Object[key] = value
			return err
		case "items":
			var err error
			isList, err = r.Elements(func() error {
				u, err := decodeSlice(r)
				all.Items = append(all.Items, *u)
				return err
			})
			return err
		}
		return nil
	})
	if err == nil && !isList {
		err = errors.New("the list has no items")
	}
	return all, err
}

// maxListMetadata bounds each field of a list but its items. The largest is the metadata, with a continue token.
const maxListMetadata = 16 << 10

// sliceEvents decodes the events of a watch of slices.
type sliceEvents struct {
	*jsonstream.Reader
	body io.ReadCloser
}

// Decode implements watch.Decoder.
func (e *sliceEvents) Decode() (watch.EventType, runtime.Object, error) {
	var kind string
	var object runtime.Object
	_, err := e.Members(func(key string) (err error) {
		switch {
		case key == "type":
			kind, _, err = e.String(maxField)
		case key == "object" && kind == "":
			err = errors.New("the type of an event comes after its object")
		case key == "object" && kind == string(watch.Error):
			object, err = e.status()
		case key == "object":
			object, err = decodeSlice(e.Reader)
		}
		return err
	})
	if err != nil {
		return "", nil, err
	}
	switch event := watch.EventType(kind); event {
	case watch.Added, watch.Modified, watch.Deleted, watch.Error, watch.Bookmark:
		if object != nil {
			return event, object, nil
		}
	}
	return "", nil, fmt.Errorf("an event of the type %q with an object: %t", kind, object != nil)
}

// status reads the reason for which the API server ends a watch.
func (e *sliceEvents) status() (runtime.Object, error) {
	value, whole, err := e.Value(maxListMetadata)
	if err != nil || !whole {
		return nil, errors.Join(err, errors.New("reading why the watch ended"))
	}
	status := &metav1.Status{}
	fields, _ := value.(map[string]any)
	return status, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, status)
}

// Close implements watch.Decoder.
func (e *sliceEvents) Close() { _ = e.body.Close() }
