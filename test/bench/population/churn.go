package population

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Churn changes pods, one event at a time. It must be used by one goroutine only.
type Churn struct {
	client *Client
	size   Size
	// pod is the next pod to change; step is the distance to the one after it.
	pod, step int
	// quiet and loud count the events of each kind.
	quiet, loud int
	deleted     *corev1.Pod
}

// Churn returns writer number first of so many writers. They share the pods that Create made; each
// changes only its own.
func (c *Client) Churn(s Size, first, of int) *Churn {
	return &Churn{client: c, size: s, pod: first % s.Pods, step: of}
}

func (c *Churn) next() *corev1.Pod {
	p := pod(c.pod, c.size)
	if c.pod += c.step; c.pod >= c.size.Pods {
		c.pod %= c.step
	}
	return p
}

// Quiet makes an event that does not change what the pod uses: a container has restarted.
func (c *Churn) Quiet(ctx context.Context) error {
	c.quiet++
	p := c.next()
	p.Status.ContainerStatuses[0].RestartCount += int32(c.quiet)
	return c.client.updateStatus(ctx, "pods", p)
}

// Loud makes an event that changes what is used. Of four in a row, two resize a pod, one deletes a
// pod, and one creates it again.
func (c *Churn) Loud(ctx context.Context) error {
	c.loud++
	switch c.loud % 4 {
	case 0:
		return c.Restore(ctx)
	case 3:
		p := c.next()
		if err := c.client.delete(ctx, p); err != nil {
			return err
		}
		c.deleted = p
		return nil
	}
	return c.client.resize(ctx, c.next(), 200+c.loud%300)
}

// Restore creates the deleted pod again, if there is one. The pod is bound and has no status.
func (c *Churn) Restore(ctx context.Context) error {
	if c.deleted == nil {
		return nil
	}
	p := c.deleted
	c.deleted, p.Status = nil, corev1.PodStatus{}
	return c.client.create(ctx, "pods", p)
}

func (c *Client) delete(ctx context.Context, p *corev1.Pod) error {
	err := c.rest.Delete().Namespace(p.Namespace).Resource("pods").Name(p.Name).
		Param("gracePeriodSeconds", "0").Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("deleting pod %s: %w", p.Name, err)
	}
	return nil
}

func (c *Client) resize(ctx context.Context, p *corev1.Pod, milli int) error {
	patch := fmt.Appendf(nil, `{"spec":{"containers":[{"name":%q,"resources":{"requests":{"cpu":"%dm"}}}]}}`,
		p.Spec.Containers[0].Name, milli)
	err := c.rest.Patch(types.StrategicMergePatchType).Namespace(p.Namespace).
		Resource("pods").Name(p.Name).SubResource("resize").Body(patch).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("resizing pod %s: %w", p.Name, err)
	}
	return nil
}
