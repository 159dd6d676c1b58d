package population

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// writers is the number of concurrent requests: enough to keep the API server and etcd busy.
const writers = 64

// The field managers of a pod.
const (
	controller = "kube-controller-manager"
	kubelet    = "kubelet"
)

// Client writes nodes and pods at the highest rate that the API server takes.
type Client struct{ rest *rest.RESTClient }

// NewClient returns a client that speaks protobuf and has no rate limit.
func NewClient(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := Core(config)
	if err != nil {
		return nil, fmt.Errorf("a client for nodes and pods: %w", err)
	}
	return &Client{rest: client}, nil
}

// Core returns a client of Kubernetes' own kinds that speaks protobuf.
func Core(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(config)
}

// Create writes everything that the size asks for and reports its progress. The admission plugin
// TaintNodesByCondition must be off, because no controller would remove the taint of new nodes.
// ServiceAccount should be on, because it adds the usual token volume to pods.
func (c *Client) Create(ctx context.Context, s Size, progress io.Writer) error {
	if err := c.createNamespaces(ctx); err != nil {
		return err
	}
	for _, kind := range []struct {
		name  string
		count int
		write func(int) error
	}{
		{"nodes", s.Nodes, func(i int) error { return c.createNode(ctx, node(i)) }},
		{"virtual nodes", s.virtualNodes(), func(i int) error { return c.createNode(ctx, virtualNode(i)) }},
		{"pods", s.Pods, func(i int) error { return c.createPod(ctx, pod(i, s)) }},
		{"finished pods", s.finished(), func(i int) error { return c.createPod(ctx, finishedPod(i, s)) }},
		{"shadow pods", s.shadows(), func(i int) error { return c.createPod(ctx, shadowPod(i, s)) }},
	} {
		if err := each(ctx, kind.count, progressOf(progress, kind.name, kind.count), kind.write); err != nil {
			return fmt.Errorf("creating %s: %w", kind.name, err)
		}
	}
	return nil
}

// createNamespaces creates namespaces and the ServiceAccount that their pods run as; no controller
// creates it here.
func (c *Client) createNamespaces(ctx context.Context) error {
	for i := range namespaces {
		if err := c.create(ctx, "namespaces",
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(i)}}); err != nil {
			return err
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespaceName(i)}}
		if err := c.create(ctx, "serviceaccounts", account); err != nil {
			return err
		}
	}
	return nil
}

// each calls write for all numbers below n, concurrently, until one call fails. It reports the
// number of finished calls after each.
func each(ctx context.Context, n int, done func(int64), write func(int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next, written atomic.Int64
	for range min(writers, n) {
		group.Go(func() error {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := write(i); err != nil {
					return err
				}
				done(written.Add(1))
			}
			return context.Cause(ctx)
		})
	}
	return group.Wait()
}

// progressOf returns a function that prints a line after each tenth of the objects.
func progressOf(w io.Writer, what string, n int) func(int64) {
	start, step := time.Now(), max(int64(n)/10, 1000)
	return func(done int64) {
		if done%step == 0 || done == int64(n) {
			fmt.Fprintf(w, "bench: %d of %d %s created after %v\n", done, n, what, time.Since(start).Round(100*time.Millisecond))
		}
	}
}

func (c *Client) create(ctx context.Context, resource string, obj object) error {
	err := c.rest.Post().NamespaceIfScoped(obj.GetNamespace(), obj.GetNamespace() != "").Resource(resource).
		Param("fieldManager", controller).Body(obj).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("creating %s %s: %w", resource, obj.GetName(), err)
	}
	return nil
}

type object interface {
	runtime.Object
	metav1.Object
}

func (c *Client) createNode(ctx context.Context, n *corev1.Node) error {
	status := n.Status
	n.Status = corev1.NodeStatus{} // written by the kubelet
	if err := c.create(ctx, "nodes", n); err != nil {
		return err
	}
	n.Status = status
	return c.updateStatus(ctx, "nodes", n)
}

func (c *Client) createPod(ctx context.Context, p *corev1.Pod) error {
	status := p.Status
	p.Status = corev1.PodStatus{} // written by the kubelet
	if err := c.create(ctx, "pods", p); err != nil {
		return err
	}
	p.Status = status
	return c.updateStatus(ctx, "pods", p)
}

// updateStatus writes the status unconditionally, as the kubelet. The kubelet manages no field
// outside of the status.
func (c *Client) updateStatus(ctx context.Context, resource string, obj object) error {
	err := c.rest.Put().NamespaceIfScoped(obj.GetNamespace(), obj.GetNamespace() != "").
		Resource(resource).Name(obj.GetName()).SubResource("status").
		Param("fieldManager", kubelet).Body(obj).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("the status of %s %s: %w", resource, obj.GetName(), err)
	}
	return nil
}
