package slices

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication/forge"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/slices/lab"
)

// With the component the API server rejects all other classes, and Liqo negotiates as without it.
func TestConsumersCanOnlyRequestServedClasses(t *testing.T) {
	newPolicy(t, "trusting", `{class: gold, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}}`)
	withServedClasses(t)
	s := newSlice(t, rome, "served", "gold", amounts{"cpu": "2", "memory": "1Gi", "pods": "5"})
	s.awaitGrant(t, granted("trusting", amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}))
	lab.Eventually(t, "a consumer cannot ask for class default", func(ctx context.Context) error {
		return refused(askAtProvider(ctx, "default"), metav1.StatusReasonInvalid, notServed("default"))
	})
	lab.Check(t, refused(askAtProvider(t.Context(), "silver"), metav1.StatusReasonInvalid, notServed("silver")))

	t.Run("Liqo's own class is not answered", func(t *testing.T) {
		own := newSlice(t, rome, "own-class", "default", amounts{"cpu": "64", "memory": "1Gi", "pods": "5"})
		own.awaitRefusal(t, "default")
		own.requireNoUse(t)
		lab.Check(t, isGone(t.Context(), provider, forge.ResourceSlice(own.name, lab.TenantNamespace(rome.ID))))
		own.move(t, "gold")
		own.awaitGrant(t, capped(
			"granted 6 of 64 cpu: policy trusting gives this cluster at most 8, of which its other slices have 2",
			amounts{"cpu": "6", "memory": "1Gi", "pods": "5"}))
	})
	t.Run("a class is accepted once a policy serves it", func(t *testing.T) {
		early := newSlice(t, rome, "early", "silver", amounts{"cpu": "1", "memory": "1Gi", "pods": "5"})
		early.awaitRefusal(t, "silver")
		newPolicy(t, "silvern", `{class: silver, offer: {fixed: {cpu: "8", memory: 8Gi, pods: "20"}}}`)
		early.awaitGrant(t, granted("silvern", amounts{"cpu": "1", "memory": "1Gi", "pods": "5"}))
	})
	t.Run("a slice that moves to an unserved class keeps its grant", func(t *testing.T) {
		before, err := s.replica(t.Context())
		lab.Must(t, err)
		s.move(t, "platinum")
		s.awaitRefusal(t, "platinum")
		s.awaitGrant(t, granted("trusting", amounts{"cpu": "2", "memory": "1Gi", "pods": "5"}))
		after, err := s.replica(t.Context())
		lab.Must(t, err)
		lab.Check(t, differ("the provider's replica", before.Spec, after.Spec))
		s.move(t, "gold")
	})
	requireNegotiation(t, s)
}

// withComponent installs a component on the provider until the end of the test. It removes the
// component as docs/how-to/hold-consumers-to-their-part.md says: the admission policy before the list that it reads.
func withComponent(t *testing.T, component string) {
	t.Helper()
	lab.Cleanup(t, func(ctx context.Context) error {
		return errors.Join(provider.Do(ctx, "delete", "--ignore-not-found",
			"validatingadmissionpolicybinding,validatingadmissionpolicy", "proffer-"+component), provider.Install(ctx))
	})
	lab.Must(t, provider.Install(t.Context(), component))
}

// withServedClasses installs the component served-classes, with an operator that writes the list.
func withServedClasses(t *testing.T) {
	t.Helper()
	lab.Cleanup(t, func(ctx context.Context) error {
		err := lab.Await(ctx, "every class is accepted again", func(ctx context.Context) error {
			return askAtProvider(ctx, "default")
		})
		return errors.Join(err, provider.RestartOperator(ctx), provider.Do(ctx, "-n", "proffer-system",
			"delete", "rolebinding,role,admissionparams", "proffer-served-classes"))
	})
	withComponent(t, "served-classes")
	lab.Must(t, provider.RestartOperator(t.Context()))
}

// requireNegotiation tests that slices are created, changed and deleted, and that certificates are
// renewed.
func requireNegotiation(t *testing.T, s slice) {
	t.Helper()
	fresh := newSlice(t, rome, "fresh", "gold", amounts{"cpu": "1", "memory": "1Gi", "pods": "5"})
	fresh.awaitGrant(t, granted("trusting", amounts{"cpu": "1", "memory": "1Gi", "pods": "5"}))
	fresh.remove(t)
	s.ask(t, amounts{"cpu": "3", "memory": "1Gi", "pods": "5"})
	s.awaitGrant(t, granted("trusting", amounts{"cpu": "3", "memory": "1Gi", "pods": "5"}))

	var renews authv1beta1.RenewList
	err := provider.Client.List(t.Context(), &renews, client.InNamespace(lab.TenantNamespace(rome.ID)))
	if err != nil || len(renews.Items) != 1 {
		t.Fatalf("%d Renews, %v, want 1", len(renews.Items), err)
	}
	before := &renews.Items[0]
	lab.Must(t, provider.Client.Delete(t.Context(), before))
	lab.Eventually(t, "Liqo renews the certificate", func(ctx context.Context) error {
		var after authv1beta1.Renew
		if err := provider.Client.Get(ctx, client.ObjectKeyFromObject(before), &after); err != nil {
			return err
		}
		if after.UID == before.UID || after.Status.AuthParams == nil {
			return errors.New("not yet")
		}
		return nil
	})
}

// answerItself tries to write the answer to the slice on the provider as the consumer.
func (s slice) answerItself(ctx context.Context) error {
	consumer, err := s.consumer.At(ctx, provider)
	if err != nil {
		return err
	}
	rs, err := s.replica(ctx)
	if err != nil {
		return err
	}
	rs.Status.Resources["cpu"] = resource.MustParse("999")
	return consumer.Status().Update(ctx, rs)
}

// askAtProvider returns the provider's answer to a dry-run create of a slice of this class by rome.
func askAtProvider(ctx context.Context, class string) error {
	consumer, err := rome.At(ctx, provider)
	if err != nil {
		return err
	}
	rs := forge.ResourceSlice("asked", lab.TenantNamespace(rome.ID))
	rs.Labels = map[string]string{
		"liqo.io/replication": "false", "liqo.io/replicated": "true", "liqo.io/originID": rome.ID,
		"liqo.io/remote-cluster-id": rome.ID,
	}
	rs.Spec.Class = authv1beta1.ResourceSliceClass(class)
	return consumer.Create(ctx, rs, client.DryRunAll)
}

// refused returns an error unless err is this rejection.
func refused(err error, reason metav1.StatusReason, message string) error {
	if err == nil {
		return errors.New("the request was accepted")
	}
	if apierrors.ReasonForError(err) != reason || !strings.Contains(err.Error(), message) {
		return fmt.Errorf("%w; want a rejection with reason %s: %s", err, reason, message)
	}
	return nil
}

func notServed(class string) string {
	return "this cluster does not serve class " + class +
		": set spec.class to a class that it serves, and ask its admin which these are"
}

// awaitRefusal waits until the consumer's crd-replicator has logged that the provider rejects the
// class.
func (s slice) awaitRefusal(t *testing.T, class string) {
	t.Helper()
	lab.Eventually(t, "the provider rejects the class", func(context.Context) error {
		log, err := s.consumer.Log("crd-replicator")
		if err != nil {
			return err
		}
		for line := range strings.Lines(log) {
			if strings.Contains(line, "with name "+s.name+":") && strings.Contains(line, notServed(class)) {
				return nil
			}
		}
		return fmt.Errorf("the log of crd-replicator has no such rejection")
	})
}
