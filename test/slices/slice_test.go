package slices

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication/forge"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// stepTimeout bounds each step. No test depends on the speed of the machine.
const stepTimeout = time.Minute

// amounts are quantities in canonical form, by resource.
type amounts map[string]string

func amountsOf(l corev1.ResourceList) amounts {
	a := amounts{}
	for name, q := range l {
		a[string(name)] = q.String()
	}
	return a
}

// A slice is a consumer's ResourceSlice for the provider, with a virtual node.
type slice struct {
	consumer *lab.Cluster
	name     string
}

// newSlice creates a slice, which is deleted after the test.
func newSlice(t testing.TB, consumer *lab.Cluster, name, class string, request amounts) slice {
	t.Helper()
	s := slice{consumer, name}
	t.Cleanup(func() { s.remove(t) })
	lab.Must(t, s.create(t.Context(), class, request))
	return s
}

func (s slice) create(ctx context.Context, class string, request amounts) error {
	rs := forge.ResourceSlice(s.name, lab.TenantNamespace(provider.ID))
	err := forge.MutateResourceSlice(rs, liqov1beta1.ClusterID(provider.ID), &forge.ResourceSliceOptions{
		Class: authv1beta1.ResourceSliceClass(class), Resources: quantities(request),
	}, true)
	if err != nil {
		return err
	}
	return s.consumer.Client.Create(ctx, rs)
}

func quantities(a amounts) map[corev1.ResourceName]string {
	m := map[corev1.ResourceName]string{}
	for name, text := range a {
		m[corev1.ResourceName(name)] = text
	}
	return m
}

// remove deletes the slice and waits until both clusters have deleted everything that belongs to
// it.
func (s slice) remove(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stepTimeout)
	defer cancel()
	rs := forge.ResourceSlice(s.name, lab.TenantNamespace(provider.ID))
	lab.Check(t, client.IgnoreNotFound(s.consumer.Client.Delete(ctx, rs)))
	err := lab.Await(ctx, "the slice "+s.name+" is deleted", func(ctx context.Context) error {
		for _, gone := range []struct {
			cluster *lab.Cluster
			object  client.Object
		}{
			{s.consumer, forge.ResourceSlice(s.name, lab.TenantNamespace(provider.ID))},
			{s.consumer, s.emptyVirtualNode()},
			{provider, forge.ResourceSlice(s.name, lab.TenantNamespace(s.consumer.ID))},
			{provider, s.emptyQuota()},
		} {
			if err := isGone(ctx, gone.cluster, gone.object); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// isGone returns an error while the cluster has the object.
func isGone(ctx context.Context, c *lab.Cluster, object client.Object) error {
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if err == nil {
		return fmt.Errorf("%s has %T %s", c.ID, object, client.ObjectKeyFromObject(object))
	}
	return client.IgnoreNotFound(err)
}

// seen returns the consumer's slice.
func (s slice) seen(ctx context.Context) (*authv1beta1.ResourceSlice, error) {
	rs := forge.ResourceSlice(s.name, lab.TenantNamespace(provider.ID))
	return rs, s.consumer.Client.Get(ctx, client.ObjectKeyFromObject(rs), rs)
}

// replica returns the provider's replica of the slice.
func (s slice) replica(ctx context.Context) (*authv1beta1.ResourceSlice, error) {
	rs := forge.ResourceSlice(s.name, lab.TenantNamespace(s.consumer.ID))
	return rs, provider.Client.Get(ctx, client.ObjectKeyFromObject(rs), rs)
}

// ask changes the consumer's request.
func (s slice) ask(t *testing.T, request amounts) {
	t.Helper()
	patch(t, s.consumer, forge.ResourceSlice(s.name, lab.TenantNamespace(provider.ID)), "/spec/resources", request)
}

// move changes the class of the consumer's slice.
func (s slice) move(t *testing.T, class string) {
	t.Helper()
	patch(t, s.consumer, forge.ResourceSlice(s.name, lab.TenantNamespace(provider.ID)), "/spec/class", class)
}

// An answer is what the status of a slice says, and what it grants.
type answer struct {
	Status  authv1beta1.ResourceSliceConditionStatus
	Reason  string
	Message string
	Granted amounts
}

func answerOf(rs *authv1beta1.ResourceSlice) answer {
	a := answer{Granted: amountsOf(rs.Status.Resources)}
	if c := authentication.GetCondition(rs, authv1beta1.ResourceSliceConditionTypeResources); c != nil {
		a.Status, a.Reason, a.Message = c.Status, c.Reason, c.Message
	}
	return a
}

// granted, capped and denied return answers of the operator.
func granted(policy string, what amounts) answer {
	message := "granted in full by policy " + policy
	return answer{authv1beta1.ResourceSliceConditionAccepted, "ProfferGranted", message, what}
}

func capped(message string, what amounts) answer {
	return answer{authv1beta1.ResourceSliceConditionAccepted, "ProfferCapped", message, what}
}

func denied(message string) answer {
	return answer{authv1beta1.ResourceSliceConditionDenied, "ProfferDenied", message, amounts{}}
}

// awaitAnswer waits until the consumer's slice has this answer.
func (s slice) awaitAnswer(t *testing.T, want answer) {
	t.Helper()
	lab.Eventually(t, s.consumer.ID+" is answered", func(ctx context.Context) error {
		rs, err := s.seen(ctx)
		if err != nil {
			return err
		}
		return differ("the answer", want, answerOf(rs))
	})
}

// awaitAuthentication waits until Liqo has authenticated the slice, before which it must not be
// answered.
func (s slice) awaitAuthentication(t *testing.T) {
	t.Helper()
	lab.Eventually(t, "Liqo authenticates the slice", func(ctx context.Context) error {
		rs, err := s.replica(ctx)
		if err != nil {
			return err
		}
		c := authentication.GetCondition(rs, authv1beta1.ResourceSliceConditionTypeAuthentication)
		if c == nil || c.Status != authv1beta1.ResourceSliceConditionAccepted {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
}

// awaitGrant waits for the answer and for its effect in both clusters.
func (s slice) awaitGrant(t *testing.T, want answer) {
	t.Helper()
	s.awaitAnswer(t, want)
	s.awaitUse(t, want.Granted)
}

// awaitUse waits until the consumer's virtual node and the provider's Quota have these amounts.
func (s slice) awaitUse(t *testing.T, want amounts) {
	t.Helper()
	lab.Eventually(t, "the virtual node and the quota are updated", func(ctx context.Context) error {
		node, quota := s.emptyVirtualNode(), s.emptyQuota()
		if err := s.consumer.Client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		if err := differ("the virtual node", want, amountsOf(node.Spec.ResourceQuota.Hard)); err != nil {
			return err
		}
		if err := provider.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		return differ("the quota", want, amountsOf(quota.Spec.Resources))
	})
}

func (s slice) emptyVirtualNode() *offloadingv1beta1.VirtualNode {
	node := &offloadingv1beta1.VirtualNode{}
	node.Name, node.Namespace = s.name, lab.TenantNamespace(provider.ID)
	return node
}

func (s slice) emptyQuota() *offloadingv1beta1.Quota {
	id := liqov1beta1.ClusterID(s.consumer.ID)
	rs := forge.ResourceSlice(s.name, "")
	rs.Spec.ConsumerClusterID = &id
	quota := &offloadingv1beta1.Quota{}
	quota.Name, quota.Namespace = authentication.CommonNameResourceSliceCSR(rs), lab.TenantNamespace(s.consumer.ID)
	return quota
}

// differ returns an error with the difference, if there is one.
func differ[T any](what string, want, got T) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
	return nil
}
